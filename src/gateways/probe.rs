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
use crate::kernel::neighbour::{self, Entry, Reachability};
use crate::kernel::{Error, Socket};
use crate::model::{IfName, Mac};

/// The namespace from which a gateway is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Host,
    /// Which of the pods.
    Pod(usize),
}

/// A gateway that a pod or the host has or had.
#[derive(Debug)]
pub(super) struct Question {
    pub place: Place,
    pub dev: IfName,
    pub gateway: IpAddr,
    /// The interface's index; `None` when the namespace does not have it now.
    pub index: Option<u32>,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
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

struct Probe<'a> {
    question: &'a Question,
    since: Instant,
    answer: Option<Answer>,
    /// It answered late, to an unknown one of several requests; it is probed once more.
    late: Option<Answer>,
    /// Whether the kernel's entry was made for the probe.
    is_own: bool,
}

/// The kernel repeats an unanswered request after this long (`retrans_time_ms`).
const RETRANSMIT: Duration = Duration::from_secs(1);

/// Probes all gateways, those of as many pods at once as can be open; the answers are in the order of the questions. Fails
/// when a socket cannot be opened or fails; single refusals are answers.
pub(super) fn probe(
    inventory: &mut Inventory,
    questions: &[Question],
    timeout: Duration,
) -> Result<Vec<Answer>, Error> {
    let room = visit::room(&mut inventory.pods);
    let part_of = |question: &Question| match question.place {
        Place::Pod(at) => Some(at / room),
        Place::Host => None,
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
) -> Result<Vec<Answer>, Error> {
    let mut listeners = listen(inventory, questions)?;
    let begin = |question| Probe {
        question,
        since: Instant::now(),
        answer: None,
        late: None,
        is_own: false,
    };
    let mut probes: Vec<_> = questions.iter().map(begin).collect();
    let heard = hear(inventory, &mut listeners, &mut probes, timeout);
    forget(inventory, &probes);
    heard?;
    Ok(probes
        .into_iter()
        .map(|probe| probe.answer.or(probe.late).unwrap_or(Answer::Silent))
        .collect())
}

/// Sends requests, and takes answers until the last request has had its time, or until all have come.
fn hear(
    inventory: &mut Inventory,
    listeners: &mut [(Place, Socket)],
    probes: &mut [Probe<'_>],
    timeout: Duration,
) -> Result<(), Error> {
    for probe in &mut *probes {
        start(inventory, probe)?;
    }
    let deadline = Instant::now() + timeout;
    while probes.iter().any(|probe| probe.answer.is_none()) && Instant::now() < deadline {
        for at in ready(listeners, deadline)? {
            let (place, listener) = &mut listeners[at];
            for entry in neighbour::events(listener)? {
                take(*place, entry, probes, inventory)?;
            }
        }
    }
    Ok(())
}

/// Removes the entries that were made for the probe: the kernel never does.
fn forget(inventory: &mut Inventory, probes: &[Probe<'_>]) {
    for probe in probes.iter().filter(|probe| probe.is_own) {
        let Question { place, gateway, .. } = *probe.question;
        if let (Some(index), Ok(socket)) = (probe.question.index, socket(inventory, place)) {
            // One that is left serves the pod as any other.
            let _ = socket.run_one(neighbour::forget(index, gateway));
        }
    }
}

/// The socket for requests in that namespace.
fn socket(inventory: &mut Inventory, place: Place) -> Result<&mut Socket, Error> {
    match place {
        Place::Host => Ok(&mut inventory.host.socket),
        Place::Pod(at) => inventory.pods[at].socket(),
    }
}

/// A second socket in each namespace of a question, subscribed to its neighbour events.
fn listen(
    inventory: &mut Inventory,
    questions: &[Question],
) -> Result<Vec<(Place, Socket)>, Error> {
    let is_wanted = |place: Place| {
        let mut questions = questions.iter();
        questions.any(|question| question.place == place && question.index.is_some())
    };
    let pods = inventory.pods.iter_mut().enumerate();
    let wanted = pods.filter(|(at, _)| is_wanted(Place::Pod(*at)));
    let (numbers, mut wanted): (Vec<usize>, Vec<&mut Pod>) = wanted.unzip();
    let sockets = visit::hold(&mut wanted, |_| neighbour::subscribe());
    let of_pods = numbers.into_iter().zip(sockets);
    let mut listeners = of_pods
        .map(|(at, socket)| Ok((Place::Pod(at), socket?)))
        .collect::<Result<Vec<_>, Error>>()?;
    if is_wanted(Place::Host) {
        // This thread is in the host's namespace.
        listeners.push((Place::Host, neighbour::subscribe()?));
    }
    Ok(listeners)
}

/// Makes the kernel probe: with a new entry where it has none, else again.
fn start(inventory: &mut Inventory, probe: &mut Probe<'_>) -> Result<(), Error> {
    let gateway = probe.question.gateway;
    let Some(index) = probe.question.index else {
        probe.answer = Some(Answer::NoInterface);
        return Ok(());
    };
    let socket = socket(inventory, probe.question.place)?;
    let request = match neighbour::lookup(socket, index, gateway)? {
        Reachability::Static => {
            probe.answer = Some(Answer::Static);
            return Ok(());
        }
        Reachability::Unknown => {
            probe.is_own = true;
            neighbour::resolve(index, gateway)
        }
        Reachability::Known => neighbour::reprobe(index, gateway),
    };
    probe.since = Instant::now();
    if let Err(errno) = socket.run_one(request)? {
        probe.answer = Some(Answer::Refused(errno));
    }
    Ok(())
}

fn take(
    place: Place,
    entry: Entry,
    probes: &mut [Probe<'_>],
    inventory: &mut Inventory,
) -> Result<(), Error> {
    let about = |probe: &&mut Probe<'_>| {
        let question = probe.question;
        question.place == place
            && question.index == Some(entry.index)
            && question.gateway == entry.dst
            && probe.answer.is_none()
    };
    let Some(probe) = probes.iter_mut().find(about) else {
        return Ok(());
    };
    if entry.reachable {
        let rtt = probe.since.elapsed();
        let before = match probe.late {
            Some(Answer::Reachable { at, .. }) => Some(at),
            _ => None,
        };
        let at = before.unwrap_or_else(Instant::now);
        let answer = |rtt| {
            Some(Answer::Reachable {
                rtt,
                lladdr: entry.lladdr,
                at,
            })
        };
        if rtt < RETRANSMIT {
            probe.answer = answer(Some(rtt));
        } else {
            probe.late = answer(None);
            start(inventory, probe)?;
        }
    } else if entry.failed {
        // The kernel gives up after three requests; an IPv6 address in duplicate detection needs longer.
        start(inventory, probe)?;
    }
    Ok(())
}

/// The numbers of the listeners with events; none when the deadline came first.
fn ready(listeners: &[(Place, Socket)], deadline: Instant) -> Result<Vec<usize>, Error> {
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
    let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
    Ok(fds
        .iter()
        .enumerate()
        .filter(|(_, fd)| is_ready(fd))
        .map(|(at, _)| at)
        .collect())
}
