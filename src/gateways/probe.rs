//! Probes gateways from inside the pods, and from the host, all side by side.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::answers::ProbeLimits;
use super::question::{Prober, Question};
use super::redirected;
use super::trial::{GatewayProbe, ProbeAnswer};
use crate::inventory::observe::Pod;
use crate::inventory::{Inventory, visit};
use crate::kernel::address::neighbour_probe;
use crate::kernel::{Error, Socket};

/// Probes all gateways, those of as many pods at once as can be open; the answers are in the order of the questions. Fails
/// when a socket cannot be opened or fails; single refusals are answers.
pub(super) fn probe(
    inventory: &mut Inventory,
    questions: &[Question],
    limits: ProbeLimits<'_>,
    spent: &[Duration],
) -> Result<Vec<ProbeAnswer>, Error> {
    let room = visit::room(&mut inventory.pods);
    let part_of = |question: &Question| match question.place {
        Prober::Pod(at) => Some(at / room),
        Prober::Host => None,
    };
    let mut answers = Vec::with_capacity(questions.len());
    for part in questions.chunk_by(|a, b| part_of(a) == part_of(b) || part_of(b).is_none()) {
        let answered = probe_at_once(inventory, part, limits, spent);
        inventory.pods.iter_mut().for_each(Pod::release);
        answers.extend(answered?);
    }
    Ok(answers)
}

fn probe_at_once(
    inventory: &mut Inventory,
    questions: &[Question],
    limits: ProbeLimits<'_>,
    spent: &[Duration],
) -> Result<Vec<ProbeAnswer>, Error> {
    let mut probes: Vec<_> = questions.iter().map(GatewayProbe::new).collect();
    let heard = hear(inventory, &mut probes, limits, spent);
    forget(inventory, &probes);
    heard?;
    Ok(probes.into_iter().map(GatewayProbe::outcome).collect())
}

/// Sends requests, and takes answers until the last request has had its time, or until all have come.
fn hear(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    limits: ProbeLimits<'_>,
    spent: &[Duration],
) -> Result<(), Error> {
    /// The kernel copies each broadcast to every macvlan on the same parent: a thousand take it a second, and the first
    /// answers must not wait for that.
    const AT_ONCE: usize = 64;
    /// netfix looks for a redirected answer where there is no other: half of the time is left for it.
    const SUSPICION: Duration = Duration::from_millis(500);
    /// How often it is asked whether the network was lost.
    const LOST: Duration = Duration::from_millis(100);
    let mut listeners = AnswerListeners::default();
    let about = by_gateway(probes);
    let left = |at: usize| limits.pod.saturating_sub(spent[at]);
    let (mut begin, spare) = (0, AtomicUsize::new(spare(probes)));
    while begin < probes.len() {
        let most = (begin + AT_ONCE).min(probes.len());
        let last = probes[most - 1].question.place;
        let rest = probes[most..].iter();
        let end = most
            + rest
                .take_while(|probe| probe.question.place == last)
                .count();
        let some = &mut probes[begin..end];
        start_some(inventory, some, &mut listeners.kernel, (&spare, &left))?;
        take_answers(inventory, probes, &about, &mut listeners, Instant::now())?;
        begin = end;
    }
    let deadline = Instant::now() + limits.answer;
    let mut suspicion = Some(Instant::now() + SUSPICION.min(limits.answer / 2));
    let is_lost = || limits.is_lost.is_some_and(|is_lost| is_lost());
    // Nothing else wakes the wait for answers when the network is lost.
    let turn = limits.is_lost.map(|_| LOST);
    while probes.iter().any(GatewayProbe::is_open) && Instant::now() < deadline && !is_lost() {
        if suspicion.take_if(|at| Instant::now() >= *at).is_some() {
            listeners.frames = redirected::listen(inventory, probes)?;
        }
        let next = probes.iter().filter_map(GatewayProbe::next);
        let turn = turn.map(|turn| Instant::now() + turn);
        let next = next.chain(suspicion).chain(turn).min();
        let until = next.map_or(deadline, |next| next.min(deadline));
        take_answers(inventory, probes, &about, &mut listeners, until)?;
        let now = Instant::now();
        let is_due = |probe: &GatewayProbe<'_>| probe.next().is_some_and(|next| next <= now);
        in_places(inventory, probes, is_due, |_, socket, probes| {
            for probe in probes.iter_mut().filter(|probe| is_due(probe)) {
                let repeated = probe.repeat(socket);
                probe.note(repeated);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// What answers are heard by.
#[derive(Default)]
struct AnswerListeners {
    /// The kernel's reports of each namespace.
    kernel: Vec<(Prober, Socket)>,
    frames: redirected::FrameListeners,
}

/// How many sockets for pings may be open beside those that the probes need anyway.
fn spare(probes: &[GatewayProbe<'_>]) -> usize {
    visit::room_for(1).saturating_sub(probes.len())
}

/// The numbers of the probes, by namespace and gateway: over different links, the same neighbour may be meant more than once.
type ByGateway = HashMap<(Prober, IpAddr), Vec<usize>>;

fn by_gateway(probes: &[GatewayProbe<'_>]) -> ByGateway {
    let mut all = ByGateway::new();
    for (at, probe) in probes.iter().enumerate() {
        let key = (probe.question.place, probe.question.gateway);
        all.entry(key).or_default().push(at);
    }
    all
}

/// Takes the answers that are there, or waits for one.
fn take_answers(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    about: &ByGateway,
    listeners: &mut AnswerListeners,
    until: Instant,
) -> Result<(), Error> {
    let ready = ready(listeners, probes, until)?;
    for at in ready.frames {
        redirected::take(&listeners.frames, at, probes);
    }
    for at in ready.kernel {
        let (place, listener) = &mut listeners.kernel[at];
        let events = neighbour_probe::events(listener).unwrap_or_else(|error| {
            // More events than the socket holds: it costs no other namespace its answers.
            let own = probes.iter_mut();
            own.filter(|probe| probe.question.place == *place)
                .for_each(|probe| probe.give_up(&error));
            Vec::new()
        });
        for event in events {
            for at in about.get(&(*place, event.dst)).into_iter().flatten() {
                if probes[*at].is_about(&event) {
                    let taken = socket(inventory, *place)
                        .and_then(|socket| probes[*at].take(&event, socket));
                    probes[*at].note(taken);
                }
            }
        }
    }
    for at in ready.pings {
        let place = probes[at].question.place;
        let taken = socket(inventory, place).and_then(|socket| probes[at].take_ping(socket));
        probes[at].note(taken);
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

/// Sends the first requests of these probes. Each namespace gets a second socket, subscribed to its neighbour events, before.
fn start_some(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    listeners: &mut Vec<(Prober, Socket)>,
    (spare, left): (&AtomicUsize, &(dyn Fn(usize) -> Duration + Sync)),
) -> Result<(), Error> {
    let started = in_places(
        inventory,
        probes,
        |probe: &GatewayProbe<'_>| probe.is_open(),
        |place, socket, probes| {
            let listener = neighbour_probe::subscribe()?;
            if let Prober::Pod(at) = place {
                socket.limit(Some(Instant::now() + left(at)));
            }
            for (at, probe) in probes.iter_mut().enumerate() {
                let is_granted = at < PINGS && !socket.is_late() && take_one(spare);
                let begun = probe.begin(socket, is_granted);
                probe.note(begun);
            }
            socket.limit(None);
            Ok(listener)
        },
    );
    listeners.extend(started?);
    Ok(())
}

/// Works in the namespaces of these probes, which are in the order of the pods, side by side, where one is `wanted`. A pod that has just
/// ended costs no other its answer.
pub(super) fn in_places<R: Send>(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
    wanted: impl Fn(&GatewayProbe<'_>) -> bool,
    work: impl Fn(Prober, &mut Socket, &mut [GatewayProbe<'_>]) -> Result<R, Error> + Sync,
) -> Result<Vec<(Prober, R)>, Error> {
    let Inventory { host, pods, .. } = inventory;
    let mut pods = pods.iter_mut().enumerate();
    let (mut done, mut of_pods) = (Vec::new(), Vec::new());
    let places = probes.chunk_by_mut(|a, b| a.question.place == b.question.place);
    for probes in places.filter(|probes| probes.iter().any(&wanted)) {
        let place = probes[0].question.place;
        match place {
            Prober::Pod(at) => {
                let pod = pods.find(|(own, _)| *own == at);
                of_pods.extend(pod.map(|(_, pod)| OfPod { pod, probes }));
            }
            // This thread is in the host's namespace.
            Prober::Host => done.push((place, work(place, &mut host.socket, probes)?)),
        }
    }
    let worked = visit::hold(&mut of_pods, |one| {
        let place = one.probes[0].question.place;
        Ok((place, work(place, one.pod.socket()?, one.probes)?))
    });
    for (worked, OfPod { probes, .. }) in worked.into_iter().zip(of_pods) {
        match worked {
            Ok(worked) => done.push(worked),
            Err(error) => probes.iter_mut().for_each(|probe| probe.give_up(&error)),
        }
    }
    Ok(done)
}

/// How many gateways of one namespace are pinged: each costs a socket.
const PINGS: usize = 8;

/// Takes one of what is left.
fn take_one(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        .is_ok()
}

/// Removes the entries that were made for the probe: the kernel never does.
fn forget(inventory: &mut Inventory, probes: &[GatewayProbe<'_>]) {
    for probe in probes {
        let Question { place, gateway, .. } = *probe.question;
        if let (Some(index), Ok(socket)) = (probe.made_entry(), socket(inventory, place)) {
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

/// What there is to take: the numbers of the listeners with events and with frames, and of the probes with an answer to a ping.
struct ReadySockets {
    kernel: Vec<usize>,
    frames: Vec<usize>,
    pings: Vec<usize>,
}

/// Waits until there is something; there is nothing when the deadline came first.
fn ready(
    listeners: &AnswerListeners,
    probes: &[GatewayProbe<'_>],
    deadline: Instant,
) -> Result<ReadySockets, Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up, so that the last millisecond is not spent in a busy loop.
    let timeout =
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    let pings = probes.iter().enumerate();
    let pings: Vec<_> = pings
        .filter_map(|(at, probe)| Some((at, probe.ping()?)))
        .collect();
    let kernel = listeners.kernel.iter().map(|(_, socket)| socket.as_fd());
    let frames = listeners.frames.iter().map(|(_, socket)| socket.as_fd());
    let mut fds: Vec<_> = kernel
        .chain(frames)
        .chain(pings.iter().map(|(_, ping)| ping.as_fd()))
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    match poll(&mut fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let numbers = |fds: &[PollFd<'_>]| -> Vec<usize> {
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let all = fds.iter().enumerate();
        all.filter_map(|(at, fd)| is_ready(fd).then_some(at))
            .collect()
    };
    let (of_kernel, rest) = fds.split_at(listeners.kernel.len());
    let (of_frames, of_pings) = rest.split_at(listeners.frames.len());
    let of_pings = numbers(of_pings).into_iter().map(|at| pings[at].0);
    Ok(ReadySockets {
        kernel: numbers(of_kernel),
        frames: numbers(of_frames),
        pings: of_pings.collect(),
    })
}
