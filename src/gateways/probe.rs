//! Probes gateways from inside the pods, and from the host.
//!
//! netfix makes the kernel resolve the gateway in the namespace: it sends ARP (RFC 826) or neighbour solicitations
//! (RFC 4861) from the interface, with its MAC and address, and reports when the answer came. A packet socket would cost an
//! RCU grace period per pod when it is closed.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::inventory::observe::Pod;
use crate::inventory::{Inventory, visit};
use crate::kernel::address::neighbour_probe::{self, NeighbourEntry, NeighbourEvent};
use crate::kernel::{Error, Socket};
use crate::model::{IfName, Mac};

/// The namespace from which a gateway is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prober {
    Host,
    /// Which of the pods.
    Pod(usize),
}

/// A gateway that a pod or the host has or had.
#[derive(Debug)]
pub(super) struct Question {
    pub place: Prober,
    pub dev: IfName,
    pub gateway: IpAddr,
    /// The interface's index; `None` when the namespace does not have it now.
    pub index: Option<u32>,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// It answered, after so long, with this hardware address.
    Reachable {
        /// From the request to the answer; `None` when it is not known which request was answered.
        rtt: Option<Duration>,
        /// The hardware address of the answer.
        lladdr: Option<Mac>,
        /// When the first answer came.
        at: Instant,
    },
    /// It did not answer in time.
    Silent,
    /// It is a permanent neighbour, so the kernel does not probe it.
    Static,
    /// The kernel refused the probe.
    Refused(nix::errno::Errno),
    /// The namespace does not have the interface.
    NoInterface,
}

struct GatewayProbe<'a> {
    question: &'a Question,
    since: Instant,
    answer: Option<ProbeAnswer>,
    /// It answered late, to an unknown one of several requests; it is probed once more.
    late: Option<ProbeAnswer>,
    /// Whether the kernel's entry was made for the probe.
    is_own: bool,
}

impl<'a> GatewayProbe<'a> {
    fn new(question: &'a Question) -> Self {
        Self {
            answer: question.index.is_none().then_some(ProbeAnswer::NoInterface),
            question,
            since: Instant::now(),
            late: None,
            is_own: false,
        }
    }
}

/// The kernel repeats an unanswered request after this long (`retrans_time_ms`).
const RETRANSMIT: Duration = Duration::from_secs(1);

/// Probes all gateways, those of as many pods at once as can be open; the answers are in the order of the questions. Fails
/// when a socket cannot be opened or fails; single refusals are answers.
pub(super) fn probe(
    inventory: &mut Inventory,
    questions: &[Question],
    timeout: Duration,
) -> Result<Vec<ProbeAnswer>, Error> {
    let room = visit::room(&mut inventory.pods);
    let part_of = |question: &Question| match question.place {
        Prober::Pod(at) => Some(at / room),
        Prober::Host => None,
    };
    let mut answers = Vec::with_capacity(questions.len());
    for part in questions.chunk_by(|a, b| part_of(a) == part_of(b) || part_of(b).is_none()) {
        let answered = probe_at_once(inventory, part, timeout);
        inventory.pods.iter_mut().for_each(Pod::release);
        answers.extend(answered?);
    }
    Ok(answers)
}

fn probe_at_once(
    inventory: &mut Inventory,
    questions: &[Question],
    timeout: Duration,
) -> Result<Vec<ProbeAnswer>, Error> {
    let mut probes: Vec<_> = questions.iter().map(GatewayProbe::new).collect();
    let heard = hear(inventory, &mut probes, timeout);
    forget(inventory, &probes);
    heard?;
    Ok(probes
        .into_iter()
        .map(|probe| probe.answer.or(probe.late).unwrap_or(ProbeAnswer::Silent))
        .collect())
}

/// Sends requests, and takes answers until the last request has had its time, or until all have come.
fn hear(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    timeout: Duration,
) -> Result<(), Error> {
    /// The kernel copies each broadcast to every macvlan on the same parent: a thousand take it a second, and the first
    /// answers must not wait for that.
    const AT_ONCE: usize = 64;
    let mut listeners = Vec::new();
    let mut begin = 0;
    while begin < probes.len() {
        let most = (begin + AT_ONCE).min(probes.len());
        let last = probes[most - 1].question.place;
        let rest = probes[most..].iter();
        let end = most
            + rest
                .take_while(|probe| probe.question.place == last)
                .count();
        start_some(inventory, &mut probes[begin..end], &mut listeners)?;
        take_answers(inventory, probes, &mut listeners, Instant::now())?;
        begin = end;
    }
    let deadline = Instant::now() + timeout;
    while probes.iter().any(|probe| probe.answer.is_none()) && Instant::now() < deadline {
        take_answers(inventory, probes, &mut listeners, deadline)?;
    }
    Ok(())
}

/// Takes the answers that are there, or waits for one.
fn take_answers(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    listeners: &mut [(Prober, Socket)],
    until: Instant,
) -> Result<(), Error> {
    for at in ready(listeners, until)? {
        let (place, listener) = &mut listeners[at];
        for event in neighbour_probe::events(listener)? {
            take(*place, event, probes, inventory)?;
        }
    }
    Ok(())
}

/// The probes of one pod.
struct OfPod<'a, 'q> {
    pod: &'a mut Pod,
    probes: &'a mut [GatewayProbe<'q>],
}

impl AsMut<Pod> for OfPod<'_, '_> {
    fn as_mut(&mut self) -> &mut Pod {
        self.pod
    }
}

/// Sends the first requests of these probes, which are in the order of the pods, side by side. Each namespace gets a second
/// socket, subscribed to its neighbour events, before.
fn start_some(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    listeners: &mut Vec<(Prober, Socket)>,
) -> Result<(), Error> {
    let Inventory { host, pods, .. } = inventory;
    let mut pods = pods.iter_mut().enumerate();
    let mut of_pods = Vec::new();
    for of_place in probes.chunk_by_mut(|a, b| a.question.place == b.question.place) {
        let place = of_place[0].question.place;
        if of_place.iter().all(|probe| probe.answer.is_some()) {
            continue;
        }
        match place {
            Prober::Pod(at) => {
                let pod = pods.find(|(place, _)| *place == at);
                let probes = of_place;
                of_pods.extend(pod.map(|(_, pod)| (place, OfPod { pod, probes })));
            }
            // This thread is in the host's namespace.
            Prober::Host => {
                listeners.push((place, neighbour_probe::subscribe()?));
                for probe in of_place {
                    start(&mut host.socket, probe)?;
                }
            }
        }
    }
    let (places, mut of_pods): (Vec<Prober>, Vec<OfPod<'_, '_>>) = of_pods.into_iter().unzip();
    let started = visit::hold(&mut of_pods, |one| {
        let listener = neighbour_probe::subscribe()?;
        for probe in &mut *one.probes {
            start(one.pod.socket()?, probe)?;
        }
        Ok(listener)
    });
    for ((place, started), of_pod) in places.into_iter().zip(started).zip(of_pods) {
        match (started, of_pod.probes) {
            (Ok(listener), _) => listeners.push((place, listener)),
            // A pod that just ended costs no other its answer.
            (Err(error), probes) => {
                let errno = error.errno().unwrap_or(nix::errno::Errno::EIO);
                for probe in probes {
                    probe.answer.get_or_insert(ProbeAnswer::Refused(errno));
                }
            }
        }
    }
    Ok(())
}

/// Removes the entries that were made for the probe: the kernel never does.
fn forget(inventory: &mut Inventory, probes: &[GatewayProbe<'_>]) {
    for probe in probes.iter().filter(|probe| probe.is_own) {
        let Question { place, gateway, .. } = *probe.question;
        if let (Some(index), Ok(socket)) = (probe.question.index, socket(inventory, place)) {
            // One that is left serves the pod as any other.
            let _ = socket.run_one(neighbour_probe::forget(index, gateway));
        }
    }
}

/// The socket for requests in that namespace.
fn socket(inventory: &mut Inventory, place: Prober) -> Result<&mut Socket, Error> {
    match place {
        Prober::Host => Ok(&mut inventory.host.socket),
        Prober::Pod(at) => inventory.pods[at].socket(),
    }
}

/// Makes the kernel probe: with a new entry where it has none, else again.
fn start(socket: &mut Socket, probe: &mut GatewayProbe<'_>) -> Result<(), Error> {
    let gateway = probe.question.gateway;
    let Some(index) = probe.question.index else {
        return Ok(());
    };
    let request = match neighbour_probe::lookup(socket, index, gateway)? {
        NeighbourEntry::Static => {
            probe.answer = Some(ProbeAnswer::Static);
            return Ok(());
        }
        NeighbourEntry::Unknown => {
            probe.is_own = true;
            neighbour_probe::resolve(index, gateway)
        }
        NeighbourEntry::Known => neighbour_probe::reprobe(index, gateway),
    };
    probe.since = Instant::now();
    if let Err(errno) = socket.run_one(request)? {
        probe.answer = Some(ProbeAnswer::Refused(errno));
    }
    Ok(())
}

fn take(
    place: Prober,
    event: NeighbourEvent,
    probes: &mut [GatewayProbe<'_>],
    inventory: &mut Inventory,
) -> Result<(), Error> {
    let Some(probe) = probes.iter_mut().find(|probe| {
        let question = probe.question;
        question.place == place
            && question.index == Some(event.index)
            && question.gateway == event.dst
            && probe.answer.is_none()
    }) else {
        return Ok(());
    };
    if event.reachable {
        let rtt = probe.since.elapsed();
        let before = match probe.late {
            Some(ProbeAnswer::Reachable { at, .. }) => Some(at),
            _ => None,
        };
        let at = before.unwrap_or_else(Instant::now);
        let answer = |rtt| {
            Some(ProbeAnswer::Reachable {
                rtt,
                lladdr: event.lladdr,
                at,
            })
        };
        if rtt < RETRANSMIT {
            probe.answer = answer(Some(rtt));
        } else {
            probe.late = answer(None);
            start(socket(inventory, place)?, probe)?;
        }
    } else if event.failed {
        // The kernel gives up after three requests; an IPv6 address in duplicate detection needs longer.
        start(socket(inventory, place)?, probe)?;
    }
    Ok(())
}

/// The numbers of the listeners with events; none when the deadline came first.
fn ready(listeners: &[(Prober, Socket)], deadline: Instant) -> Result<Vec<usize>, Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up, so that the last millisecond is not spent in a busy loop.
    let timeout =
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    let mut fds: Vec<_> = listeners
        .iter()
        .map(|(_, s)| PollFd::new(s.as_fd(), PollFlags::POLLIN))
        .collect();
    match poll(&mut fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(fds
        .iter()
        .enumerate()
        .filter(|(_, fd)| fd.revents().is_some_and(|events| !events.is_empty()))
        .map(|(at, _)| at)
        .collect())
}
