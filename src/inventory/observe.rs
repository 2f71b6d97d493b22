//! Reading the kernel into plain data: the host, and every pod at once.

use std::io;
use std::sync::OnceLock;

use crate::checked;
use crate::inventory::cgroup::Owner;
use crate::inventory::discover::Found;
use crate::inventory::visit::{prove, visit};
use crate::kernel::conf::sysfs;
use crate::kernel::dump::{HostView, Names};
use crate::kernel::netns::nsid;
use crate::kernel::netns::nsid::HostId;
use crate::kernel::{Error, Netns, Socket, ifreq, netns, state};
use crate::matching::PodFacts;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::problem::InventoryCause;
use crate::model::{Link, NetState, NetnsIdentity, NodeIdentity, Parent, PodInfo, Problem};
use crate::plan::snapshot_quality;

/// The host's own namespace, with a socket in it and what it held when it was last read.
#[derive(Debug)]
pub struct Host {
    /// The namespace that netfix runs in.
    pub netns: Netns,
    /// A socket in it.
    pub socket: Socket,
    pub state: NetState,
    /// The neighbour settings of every new link of this machine, once they were read.
    pub initial_settings: Sysctls,
    names: Names,
}

impl Host {
    /// Opens and reads the host's namespace.
    pub fn observe() -> Result<Self, Error> {
        let mut host = Self {
            netns: Netns::host()?,
            socket: Socket::open_here()?,
            state: NetState::default(),
            initial_settings: Sysctls::default(),
            names: Names::new(),
        };
        host.refresh()?;
        Ok(host)
    }

    /// A copy as it was last read, with a socket of its own.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        Ok(Self {
            netns: Netns::host()?,
            socket: Socket::open_here()?,
            state: self.state.clone(),
            initial_settings: self.initial_settings.clone(),
            names: self.names.clone(),
        })
    }

    /// Reads it again.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.state = state::whole(&mut self.socket, None)?;
        sysfs::complete(&mut self.state.links)?;
        self.names = self
            .state
            .links
            .iter()
            .map(|link| (link.index, link.name.clone()))
            .collect();
        Ok(())
    }

    /// Reads the neighbour settings that a new link gets: to be called before links are created.
    pub(crate) fn learn_initial_settings(&mut self) -> Result<(), Error> {
        self.initial_settings = state::initial_neighbour_settings(&mut self.socket)?;
        Ok(())
    }
}

/// A pod's namespace with a socket in it.
#[derive(Debug)]
pub struct Pod {
    pub netns: Netns,
    pub info: PodInfo,
    /// What distinguishes it from every other namespace.
    pub identity: NetnsIdentity,
    /// Every path known to lead to it.
    pub paths: Vec<std::path::PathBuf>,
    /// Whose cgroup its oldest process is in.
    pub(crate) owner: Owner,
    /// A socket in it; `None` while it is closed.
    pub(super) socket: Option<Socket>,
    /// Its whole state, where one look serves several purposes: it is not read again.
    pub(super) seen: Option<NetState>,
    host_id: HostId,
}

/// The state of a pod, and the link that it lost while it was read.
pub(crate) type Observed = Result<(NetState, Option<String>), Error>;

impl Pod {
    /// Reads the pod's namespace; the calling thread must be inside it.
    pub fn observe_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        self.read(host, |socket, view| state::whole(socket, Some(view)))
    }

    /// Reads the links alone; the calling thread must be inside the pod's namespace.
    pub fn observe_links_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        self.read(host, |socket, view| state::links(socket, Some(view)))
    }

    /// Reads, and reads again what was read before the namespace had an id for the host's: its first link on a host link
    /// assigns one, and without it that link seems to be on another namespace's.
    fn read(
        &mut self,
        host: &Host,
        read: impl Fn(&mut Socket, HostView<'_>) -> Result<NetState, Error>,
    ) -> Result<NetState, Error> {
        if let Some(seen) = &self.seen {
            return Ok(seen.clone());
        }
        self.learn_host_id(host)?;
        loop {
            let view = HostView {
                id: self.host_id,
                names: &host.names,
            };
            let state = read(self.socket()?, view)?;
            let is_elsewhere = |link: &Link| link.parent == Some(Parent::Elsewhere);
            if self.host_id != HostId::Unassigned || !state.links.iter().any(is_elsewhere) {
                return Ok(state);
            }
            self.learn_host_id(host)?;
            if self.host_id == HostId::Unassigned {
                return Ok(state);
            }
        }
    }

    /// An id that is assigned stays.
    fn learn_host_id(&mut self, host: &Host) -> Result<(), Error> {
        if self.host_id == HostId::Unassigned {
            self.host_id = nsid::of(self.socket()?, &host.netns)?;
        }
        Ok(())
    }

    /// Whether its state was seen, and is not read again.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// The same, not open.
    pub(super) fn closed_copy(&self) -> Self {
        Self {
            netns: self.netns.closed_copy(),
            info: self.info.clone(),
            identity: self.identity.clone(),
            paths: self.paths.clone(),
            owner: self.owner.clone(),
            socket: None,
            seen: self.seen.clone(),
            host_id: self.host_id,
        }
    }

    /// What stored records are matched with.
    pub(crate) fn facts(&self) -> PodFacts {
        PodFacts {
            info: self.info.clone(),
            identity: self.identity.clone(),
            paths: self.paths.clone(),
        }
    }
}

/// Opens a socket in each namespace and learns its identity. One that cannot be entered is a problem, and among those at
/// the end of the result.
pub fn open_pods(
    mut found: Vec<Found>,
    problems: &mut Vec<Problem>,
) -> (Vec<Pod>, Vec<NetnsIdentity>) {
    let open = |found: &mut Found| {
        let opened = open_inside(found);
        let stays_open = !found.netns.is_transient;
        if !stays_open {
            found.netns.close();
        }
        opened.map(|(socket, cookie)| (Some(socket).filter(|_| stays_open), cookie))
    };
    let opened = netns::visit(&mut found, |found| found.netns.reopen(), open);
    let opened = opened.into_iter().map(|opened| opened?);
    let (mut pods, mut closed) = (Vec::with_capacity(found.len()), Vec::new());
    for (found, opened) in found.into_iter().zip(opened) {
        let Found {
            netns,
            info,
            paths,
            owner,
        } = found;
        match opened {
            Ok((socket, cookie)) => pods.push(Pod {
                identity: netns.identity(cookie),
                netns,
                info,
                paths,
                owner,
                socket,
                seen: None,
                host_id: HostId::Unassigned,
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

/// A socket in the namespace that the calling thread is in, with the namespace's cookie.
fn open_inside(found: &Found) -> Result<(Socket, Option<u64>), Error> {
    let socket = Socket::open_here()?;
    let cookie = socket.netns_cookie()?;
    if found.netns.is_transient {
        // It was closed since it was found.
        prove(&found.netns, &found.netns.identity(None), cookie)?;
    }
    Ok((socket, cookie))
}

/// Reads every pod, side by side; the results are in their order.
pub fn observe_pods(pods: &mut [Pod], host: &Host) -> Vec<Result<NetState, Error>> {
    observe_part(pods, host, state::whole)
}

/// Reads what every pod has that others may claim too, side by side: its links and addresses.
pub fn observe_claims(pods: &mut [Pod], host: &Host) -> Vec<Result<NetState, Error>> {
    observe_part(pods, host, state::links_and_addresses)
}

/// Reads what decides where every pod's packets go, side by side: its links, addresses and routes.
pub fn observe_reach(pods: &mut [Pod], host: &Host) -> Vec<Result<NetState, Error>> {
    observe_part(pods, host, state::links_addresses_and_routes)
}

fn observe_part(
    pods: &mut [Pod],
    host: &Host,
    part: impl Fn(&mut Socket, Option<HostView<'_>>) -> Result<NetState, Error> + Sync,
) -> Vec<Result<NetState, Error>> {
    let read = |pod: &mut Pod| pod.read(host, |socket, view| part(socket, Some(view)));
    let states = visit(pods, read);
    states.into_iter().map(|state| state?).collect()
}

/// Reads every pod, side by side, and asks once more for its links afterwards: the state, and the link that was lost while it
/// was read. The results are in the order of the pods.
pub fn observe_pods_twice(pods: &mut [Pod], host: &Host) -> Vec<Observed> {
    let read = |pod: &mut Pod| {
        let mut state = pod.observe_inside(host)?;
        sysfs::complete(&mut state.links)?;
        let torn = ifreq::lost(pod.socket()?, &state.links)?.map(snapshot_quality::what);
        Ok((state, torn))
    };
    let states = visit(pods, read);
    states.into_iter().map(|state| state?).collect()
}

/// Which machine and which boot this is; both are unknown unless [`know_node`] succeeded.
pub fn node_identity() -> NodeIdentity {
    NODE.get().cloned().unwrap_or_default()
}

/// It is the same for the whole process.
static NODE: OnceLock<NodeIdentity> = OnceLock::new();

/// Reads it, before anything else can use up what reading needs, such as open files.
///
/// # Errors
/// A file is there and cannot be read. A machine or boot that is not known must never be taken for another one, nor be recorded.
pub(crate) fn know_node() -> Result<(), Problem> {
    let read = |path: &str| {
        let text = match checked::text(path) {
            Ok(text) => text,
            // Not every machine has a machine-id.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(super::cannot_observe(path, &error)),
        };
        Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
    };
    let node = NodeIdentity {
        machine_id: read("/etc/machine-id")?,
        boot_id: read("/proc/sys/kernel/random/boot_id")?,
        hostname: read("/proc/sys/kernel/hostname")?,
    };
    NODE.get_or_init(|| node);
    Ok(())
}
