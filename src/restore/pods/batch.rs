//! The pods of a turn together: their links in few sends from the host, then each pod's settings, addresses and routes from
//! inside, in parallel, until a new observation of the pod shows nothing missing.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::inventory::visit;
use crate::kernel::{Errno, Error, Socket};
use crate::model::problem::InventoryCause;
use crate::model::{Hardware, Link, Loss, NetState};
use crate::plan::HostLinks;
use crate::progress::{Listener, Progress};
use crate::restore::create_links;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::{PodJob, PodState};
use crate::restore::pods::round;
use crate::restore::turns::Turn;

/// Duplicate address detection takes up to two seconds, and a route may need an address that passed it.
const DAD_LIMIT: Duration = Duration::from_secs(4);
const DAD_PAUSE: Duration = Duration::from_millis(50);

/// The devices that are gone from their pods; they return with their driver, in the host's namespace. A pod that cannot be read is given up.
pub(in crate::restore) fn lost_devices(pods: &mut [PodJob], host: &Host) -> Vec<Hardware> {
    let mut having: Vec<&mut PodJob> = pods
        .iter_mut()
        .filter(|pod| recognisable(&pod.matched.claims()).next().is_some())
        .collect();
    let states = visit::visit(&mut having, |pod| {
        pod.matched.pod.observe_links_inside(host)
    });
    let mut lost = Vec::new();
    for (pod, state) in having.into_iter().zip(states) {
        match state.and_then(|state| state) {
            Ok(now) => {
                let claims = pod.matched.claims();
                let gone = recognisable(&claims)
                    .filter(|then| !recognisable(&now).any(|now| now.is_same(then)));
                lost.extend(gone.cloned());
            }
            Err(error) => pod.give_up(&error),
        }
    }
    lost
}

/// What each pod has lost though it has all that is recorded: something that is not recorded refuses its packets.
pub(in crate::restore) fn refused(pods: &mut [PodJob]) -> Vec<Option<Loss>> {
    let ask = |one: &mut PodJob| match &one.state {
        PodState::Done(view) => one.matched.lost_ways(&view.state, &view.plan),
        _ => None,
    };
    // Where something was done, the namespace was closed; nothing is in the way of a pod that has only what was made.
    let was_closed = |one: &PodJob| {
        let surplus = one.view().is_some_and(|view| view.plan.has_surplus());
        !one.done.is_empty() && (surplus || one.created.is_empty())
    };
    let closed = pods.iter_mut().filter(|one| was_closed(one));
    let mut found = visit::visit(&mut closed.collect::<Vec<_>>(), |one| ask(one)).into_iter();
    let each = pods.iter_mut().map(|one| {
        if was_closed(one) {
            found.next()?.ok()?
        } else if one.done.is_empty() {
            ask(one)
        } else {
            None
        }
    });
    each.collect()
}

/// The devices of a namespace that can be recognised.
fn recognisable(state: &NetState) -> impl Iterator<Item = &Hardware> {
    let links = state.links.iter();
    links
        .filter_map(|link| link.hardware.as_ref())
        .filter(|hardware| hardware.is_known())
}

/// Creates the missing links on links of the host.
pub(in crate::restore) fn create(
    pods: &mut [&mut PodJob],
    turn: Turn,
    host: &mut Host,
    permit: Permit<'_>,
) -> Result<(), Error> {
    if pods.iter().any(|pod| !pod.missing.is_empty()) {
        host.learn_initial_settings()?;
    }
    if turn == Turn::Small {
        return create_links(pods, usize::MAX, host, permit);
    }
    for pod in pods.iter_mut() {
        create_links_of(pod, turn.limit(), host, permit)?;
    }
    Ok(())
}

/// Restores the rest of every pod, as far as possible in this turn.
pub(in crate::restore) fn restore(
    pods: &mut [&mut PodJob],
    turn: Turn,
    host: &mut Host,
    links: &HostLinks,
    permit: Permit<'_>,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    let count_open = |pods: &[&mut PodJob]| pods.iter().filter(|pod| pod.is_open()).count();
    let mut deadline = None;
    progress.notice(Progress::Advance(pods.len() - count_open(pods)));
    loop {
        let open_before = count_open(pods);
        if open_before == 0 || deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Ok(());
        }
        create_and_work_in(pods, turn, host, links, permit)?;
        let open = count_open(pods);
        progress.notice(Progress::Advance(open_before - open));
        if deadline.is_some() && open == open_before {
            thread::sleep(DAD_PAUSE);
        }
        deadline = deadline.or_else(|| Some(Instant::now() + DAD_LIMIT));
    }
}

/// One round for every open pod: the links that are still missing, then the work inside.
fn create_and_work_in(
    pods: &mut [&mut PodJob],
    turn: Turn,
    host: &mut Host,
    links: &HostLinks,
    permit: Permit<'_>,
) -> Result<(), Error> {
    let limit = turn.limit();
    if pods.iter().any(|pod| !pod.missing.is_empty()) {
        let mut namespaces = pods.iter().map(|pod| &pod.matched.pod.netns);
        if turn == Turn::Small && namespaces.all(|netns| !netns.is_transient) {
            host.learn_initial_settings()?;
            let host = &*host;
            return work_on_created(pods, limit, host, permit, |pod| {
                round::work(pod, host, links, permit)
            });
        }
        create(pods, turn, host, permit)?;
    }
    visit(pods, limit, |pod| round::work(pod, host, links, permit));
    Ok(())
}

/// Creates the links of some pods while there is `work` in others: the kernel creates one link at a time, so one thread creates
/// all, and works like the others then.
pub(in crate::restore) fn work_on_created(
    pods: &mut [&mut PodJob],
    limit: Option<Duration>,
    host: &Host,
    permit: Permit<'_>,
    work: impl Fn(&mut PodJob) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let socket = Socket::open_here()?;
    let count = pods.len();
    let (send, created) = mpsc::channel();
    let mut result = Ok(Err(Errno::EAGAIN.into()));
    let create = || {
        result = catch_unwind(AssertUnwindSafe(|| {
            create_in_parts(pods, &send, socket, &host.state, permit)
        }));
        // Then no more come.
        drop(send);
    };
    let work = |pod: &mut PodJob| pod.within(limit, &work);
    let visited = visit::visit_as_they_come(create, created.into_iter(), count, work);
    give_up_closed(visited.into_iter());
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Creates the missing links, and sends each open pod when it has them.
fn create_in_parts<'a>(
    pods: &'a mut [&mut PodJob],
    created: &mpsc::Sender<&'a mut PodJob>,
    mut socket: Socket,
    host: &NetState,
    permit: Permit<'_>,
) -> Result<(), Error> {
    /// The links of so many pods are one send.
    const PART: usize = 16;
    for part in pods.chunks_mut(PART) {
        create_in_open(part, usize::MAX, &mut socket, host, permit)?;
        for pod in part {
            if pod.is_open() {
                // It is received as long as there are threads to work in it.
                let _ = created.send(&mut **pod);
            }
        }
    }
    Ok(())
}

/// Works inside every open pod, until it has cost `limit` altogether.
pub(in crate::restore) fn visit(
    pods: &mut [&mut PodJob],
    limit: Option<Duration>,
    work: impl Fn(&mut PodJob) -> Result<(), Error> + Sync,
) {
    let pods = pods.iter_mut().map(|pod| &mut **pod);
    let mut open: Vec<&mut PodJob> = pods.filter(|pod| pod.is_open()).collect();
    let results = visit::visit(&mut open, |pod| pod.within(limit, &work));
    give_up_closed(open.into_iter().zip(results));
}

/// The pods that could not be entered.
fn give_up_closed<'a>(visited: impl Iterator<Item = (&'a mut PodJob, Result<(), Error>)>) {
    for (pod, result) in visited {
        let Err(error) = result else { continue };
        pod.missing.clear();
        if let Some(errno) = error.errno() {
            let error = errno.to_string();
            let cause = InventoryCause::CannotEnterNetns { error };
            pod.break_off(cause.error(&pod.matched.checkpoint.netns));
        } else {
            pod.give_up(&error);
        }
    }
}

/// Creates the planned links of one pod, until its time is used up.
fn create_links_of(
    pod: &mut PodJob,
    limit: Option<Duration>,
    host: &mut Host,
    permit: Permit<'_>,
) -> Result<(), Error> {
    const PART: usize = 256;
    while !pod.missing.is_empty() && pod.is_open() {
        let begin = Instant::now();
        create_links(&mut [&mut *pod], PART, host, permit)?;
        pod.spend(begin.elapsed(), limit);
    }
    Ok(())
}

/// Creates up to `most` planned links of each pod on links of the host, for as many pods at once as can be open.
fn create_links(
    pods: &mut [&mut PodJob],
    most: usize,
    host: &mut Host,
    permit: Permit<'_>,
) -> Result<(), Error> {
    let room = visit::room(pods);
    for part in pods.chunks_mut(room) {
        let all = part.iter_mut().map(|pod| &mut **pod);
        let mut closed: Vec<&mut PodJob> = all
            .filter(|pod| !pod.missing.is_empty() && pod.matched.pod.netns.is_transient)
            .collect();
        let opened = visit::hold(&mut closed, |_| Ok(()));
        give_up_closed(closed.into_iter().zip(opened));
        let created = create_in_open(part, most, &mut host.socket, &host.state, permit);
        for pod in part {
            pod.matched.pod.release();
        }
        created?;
    }
    Ok(())
}

/// Creates up to `most` planned links of each of these pods, which are open, in few sends.
fn create_in_open(
    pods: &mut [&mut PodJob],
    most: usize,
    socket: &mut Socket,
    host: &NetState,
    permit: Permit<'_>,
) -> Result<(), Error> {
    let mut wanted = Vec::new();
    for (at, pod) in pods.iter_mut().enumerate() {
        let some = pod.missing.len().min(most);
        wanted.extend(pod.missing.drain(..some).map(|link| (at, link)));
    }
    let creations: Vec<_> = wanted
        .iter()
        .map(|(at, link): &(usize, Link)| (&pods[*at].matched.pod.netns, link))
        .collect();
    let rules = pods.first().map(|pod| pod.matched.nic).unwrap_or_default();
    let results = create_links::create(permit, socket, host, &creations, rules)?;
    for ((at, link), result) in wanted.into_iter().zip(results) {
        pods[at].note_creation(link, host, result);
    }
    Ok(())
}
