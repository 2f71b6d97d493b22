//! Opens pods, and reads many of them side by side.

use std::collections::{BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::discover::FoundNetns;
use crate::inventory::observe::{Host, MOST, Pod, prove};
use crate::inventory::procfs::{self, machine};
use crate::inventory::visit::visit;
use crate::kernel::address::neighbour_probe;
use crate::kernel::conf::sysfs;
use crate::kernel::netns::nsid::{self, HostId};
use crate::kernel::route::ways;
use crate::kernel::state::Reach;
use crate::kernel::{Error, Netns, Socket, devices, ifreq, netns, state};
use crate::model::net::reach;
use crate::model::net::way::Packet;
use crate::model::problem::InventoryCause;
use crate::model::{Link, NetState, NetnsIdentity, Problem};

/// The packets of which records have the ways, by the inode of their namespace.
pub(crate) type KnownPackets = HashMap<u64, Vec<Packet>>;

/// Looks up the ways of a namespace's packets, and of those that its record has.
pub(crate) fn ways(
    socket: &mut Socket,
    state: &mut NetState,
    known: &[Packet],
) -> Result<(), Error> {
    let mut packets = reach::packets(state);
    let others = known.iter().filter(|one| !packets.contains(one));
    packets.extend(others.cloned().collect::<Vec<_>>());
    ways::look_up(socket, state, &packets)
}

/// The state of a pod, and the link that it lost while it was read.
pub(crate) type ObservedPod = Result<(NetState, Option<String>), Error>;

/// Opens a socket in each namespace and learns its identity. One that cannot be entered is a problem, and among those at
/// the end of the result.
pub fn open_pods(
    mut found: Vec<FoundNetns>,
    problems: &mut Vec<Problem>,
) -> (Vec<Pod>, Vec<NetnsIdentity>) {
    let opened = netns::visit(
        &mut found,
        |found| found.netns.reopen(),
        |found| {
            let opened = open_inside(found);
            let stays_open = !found.netns.is_transient;
            if !stays_open {
                found.netns.close();
            }
            opened.map(|(socket, cookie)| (Some(socket).filter(|_| stays_open), cookie))
        },
    );
    let (mut pods, mut closed) = (Vec::with_capacity(found.len()), Vec::new());
    for (found, opened) in found.into_iter().zip(opened) {
        let FoundNetns {
            netns,
            info,
            paths,
            owner,
        } = found;
        match opened.and_then(|opened| opened) {
            Ok((socket, cookie)) => pods.push(Pod {
                identity: netns.identity(cookie),
                netns,
                info,
                paths,
                owner,
                socket,
                seen: None,
                answered: Vec::new(),
                host_id: HostId::Unassigned,
                most: Some(MOST),
            }),
            Err(error) => {
                let error = error.to_string();
                let problem = InventoryCause::CannotEnterNetns { error }.error("");
                problems.push(problem.of(&info.id));
                closed.push(netns.identity(None));
            }
        }
    }
    (pods, closed)
}

/// Namespaces to which a link of the host was moved, and that are not among `pods`. One that is about to end has its id for a moment longer.
pub(super) fn unseen(
    mut ids: BTreeSet<i32>,
    pods: &[Pod],
    host: &mut Host,
) -> Result<Option<Problem>, Error> {
    const ATTEMPTS: usize = 3;
    const PAUSE: Duration = Duration::from_millis(50);
    if ids.is_empty() || pods.iter().any(|pod| pod.netns.is_transient) {
        return Ok(None);
    }
    let machine = Netns::open(&procfs::netns_path(1)).ok();
    let known = pods.iter().map(|pod| &pod.netns);
    for netns in known.chain([&host.netns]).chain(&machine) {
        if let HostId::Known(id) = nsid::of(&mut host.socket, netns)? {
            ids.remove(&id);
        }
    }
    if !ids.is_empty() {
        // The end of a pair is not lost with a device of the host.
        let peers = nsid::of_peers(&mut host.socket)?;
        ids.retain(|id| !peers.contains(id));
    }
    for _ in 0..ATTEMPTS {
        if ids.is_empty() {
            return Ok(None);
        }
        thread::sleep(PAUSE);
        let now = nsid::all(&mut host.socket)?;
        ids.retain(|id| now.contains(id));
    }
    let namespaces = ids.len();
    let cause = InventoryCause::Unseen { namespaces };
    // The other end of a container's lost NIC was in such a namespace too.
    let problem = if machine::is_container() {
        cause.info("host")
    } else {
        cause.warning("host")
    };
    Ok(Some(problem).filter(|_| namespaces > 0))
}

/// A socket in the namespace that the calling thread is in, with the namespace's cookie.
fn open_inside(found: &FoundNetns) -> Result<(Socket, Option<u64>), Error> {
    let mut socket = Socket::open_here()?;
    socket.read_at_most(Some(MOST));
    let cookie = socket.netns_cookie()?;
    if found.netns.is_transient {
        // It was closed since it was found.
        prove(&found.netns, &found.netns.identity(None), cookie)?;
    }
    Ok((socket, cookie))
}

/// Reads every pod, side by side; the results are in their order.
pub fn observe_pods(pods: &mut [Pod], host: &Host) -> Vec<Result<NetState, Error>> {
    let states = visit(pods, |pod| pod.observe_inside(host)).into_iter();
    states.map(|state| state?).collect()
}

/// Reads every pod like [`observe_pods`]; of one with a table that is not read whole all links and addresses.
pub fn observe_at_least_claims(pods: &mut [Pod], host: &Host) -> Vec<Result<NetState, Error>> {
    let read = |pod: &mut Pod| match pod.observe_inside(host) {
        Err(Error::TooMany(_)) => {
            pod.read_all(true);
            let claims = claims(pod, host);
            pod.read_all(false);
            claims
        }
        state => state,
    };
    let states = visit(pods, read).into_iter();
    states.map(|state| state?).collect()
}

/// Reads what every pod has that others may claim too, side by side: its links and addresses.
pub fn observe_claims<T: AsMut<Pod> + Send>(
    pods: &mut [T],
    host: &Host,
) -> Vec<Result<NetState, Error>> {
    let states = visit(pods, |pod| claims(pod.as_mut(), host)).into_iter();
    states.map(|state| state?).collect()
}

fn claims(pod: &mut Pod, host: &Host) -> Result<NetState, Error> {
    pod.read(host, |socket, view| {
        state::links_and_addresses(socket, Some(view))
    })
}

/// Reads what decides where every pod's packets go, side by side: its links, addresses and routes. Each may cost this `budget`, and
/// comes with what it has cost.
pub fn observe_reach(
    pods: &mut [Pod],
    host: &Host,
    budget: Duration,
) -> Vec<(Result<Reach, Error>, Duration)> {
    let read = |pod: &mut Pod| {
        let whole = pod.read(host, |socket, view| {
            state::links_addresses_and_routes(socket, Some(view))
        });
        if let Err(Error::TooMany(most)) = whole {
            let state = claims(pod, host)?;
            let hops = state::next_hops(pod.socket()?, &state)?;
            return Ok(Reach {
                state,
                router: None,
                long: Some((most, hops)),
            });
        }
        let state = whole?;
        let router = state::router(pod.socket()?, &state)?;
        Ok(Reach {
            state,
            router,
            long: None,
        })
    };
    let visited = visit(pods, |pod| {
        let begin = Instant::now();
        let limited = pod
            .socket()
            .map(|socket| socket.limit(Some(begin + budget)));
        let reach = limited.and_then(|()| read(pod));
        let unlimited = pod.socket().map(|socket| socket.limit(None));
        (unlimited.and(reach), begin.elapsed())
    });
    let failed = |error| (Err(error), Duration::ZERO);
    let visited = visited.into_iter();
    visited.map(|one| one.unwrap_or_else(failed)).collect()
}

/// Reads every pod, side by side, and its links once more afterwards: the state, with the ways of these packets too, and the link that
/// was lost while it was read. The results are in the order of the pods.
pub fn observe_pods_twice<T: AsMut<Pod> + Send>(
    pods: &mut [T],
    host: &Host,
    known: &KnownPackets,
) -> Vec<ObservedPod> {
    visit(pods, |pod| {
        let pod = pod.as_mut();
        let mut state = pod.observe_inside(host)?;
        sysfs::complete(&mut state.links)?;
        devices::complete(&mut state);
        let known = known.get(&pod.identity.inode);
        ways(pod.socket()?, &mut state, known.map_or(&[], Vec::as_slice))?;
        pod.answered = neighbour_probe::answered(pod.socket()?).unwrap_or_default();
        let torn = ifreq::lost(pod.socket()?, &state.links)?.map(Link::title);
        Ok((state, torn))
    })
    .into_iter()
    .map(|state| state?)
    .collect()
}
