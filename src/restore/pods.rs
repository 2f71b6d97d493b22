//! Restores all pods: their links in few sends from the host, then each pod's settings, addresses and routes from inside,
//! in parallel, until a new observation of the pod shows nothing missing.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::job::Job;
use super::turns::Turn;
use super::{create_links, holders};
use crate::inventory::observe::Host;
use crate::inventory::visit;
use crate::kernel::{Errno, Error, Socket};
use crate::model::problem::InventoryCause;
use crate::model::{ConflictProbe, Link, NetState};
use crate::plan::HostLinks;
use crate::progress::{Listener, Progress};

/// Duplicate address detection takes up to two seconds, and a route may need an address that passed it.
const DAD_LIMIT: Duration = Duration::from_secs(4);
const DAD_PAUSE: Duration = Duration::from_millis(50);

/// For pods whose MAC another link has, finds the pod of that link: a conflict names both sides.
pub(super) fn find_mac_owners(jobs: &mut [Job], host: &Host) {
    let contested: Vec<_> = jobs
        .iter()
        .enumerate()
        .filter_map(|(at, job)| Some((at, job.contested(host)?)))
        .collect();
    if contested.is_empty() {
        return;
    }
    let mut owners = holders::owners_of_macs(host);
    for (at, contested) in contested {
        let owner = owners.remove(&contested);
        jobs[at].owner = owner.map(|owner| (contested.0, owner));
    }
}

/// Begins a turn: finds what every pod lacks.
pub(super) fn survey(
    jobs: &mut [&mut Job],
    turn: Turn,
    host: &Host,
    links: &HostLinks,
    probe: ConflictProbe,
) {
    for job in jobs.iter_mut() {
        job.begin_turn();
    }
    visit(jobs, turn.limit(), |job| job.survey(host, links, probe));
}

/// Creates the missing links on links of the host.
pub(super) fn create(jobs: &mut [&mut Job], turn: Turn, host: &mut Host) -> Result<(), Error> {
    if jobs.iter().any(|job| !job.missing.is_empty()) {
        host.learn_initial_settings()?;
    }
    if turn == Turn::Small {
        return create_links(jobs, usize::MAX, host);
    }
    for job in jobs.iter_mut() {
        create_links_of(job, turn.limit(), host)?;
    }
    Ok(())
}

/// Restores the rest of every pod, as far as possible in this turn.
pub(super) fn restore(
    jobs: &mut [&mut Job],
    turn: Turn,
    host: &mut Host,
    links: &HostLinks,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    let count_open = |jobs: &[&mut Job]| jobs.iter().filter(|job| is_open(job)).count();
    let mut deadline = None;
    progress.notice(Progress::Advance(jobs.len() - count_open(jobs)));
    loop {
        let open_before = count_open(jobs);
        if open_before == 0 || deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Ok(());
        }
        create_and_work_on(jobs, turn, host, links)?;
        let open = count_open(jobs);
        progress.notice(Progress::Advance(open_before - open));
        if deadline.is_some() && open == open_before {
            thread::sleep(DAD_PAUSE);
        }
        deadline = deadline.or_else(|| Some(Instant::now() + DAD_LIMIT));
    }
}

/// Carries out the steps that had to wait for carrier.
pub(super) fn finish_later(jobs: &mut [&mut Job], host: &Host, links: &HostLinks) {
    for job in jobs.iter_mut() {
        job.reopen();
    }
    visit(jobs, None, |job| {
        job.observe(host, links);
        if !job.finished {
            job.act();
            job.observe(host, links);
        }
        job.finished = true;
    });
}

fn is_open(job: &Job) -> bool {
    !job.finished && !job.is_late()
}

/// One round for every unfinished pod: the links that are still missing, then the work inside.
fn create_and_work_on(
    jobs: &mut [&mut Job],
    turn: Turn,
    host: &mut Host,
    links: &HostLinks,
) -> Result<(), Error> {
    let limit = turn.limit();
    if jobs.iter().any(|job| !job.missing.is_empty()) {
        let mut namespaces = jobs.iter().map(|job| &job.matched.pod.netns);
        if turn == Turn::Small && namespaces.all(|netns| !netns.is_transient) {
            host.learn_initial_settings()?;
            let host = &*host;
            return work_on_created(jobs, limit, host, |job| work_inside(job, host, links));
        }
        create(jobs, turn, host)?;
    }
    visit(jobs, limit, |job| work_inside(job, host, links));
    Ok(())
}

/// The same, where the links of some pods are created while there is `work` in others: the kernel creates one link at a time, so
/// one thread creates all, and works like the others then.
pub(super) fn work_on_created(
    jobs: &mut [&mut Job],
    limit: Option<Duration>,
    host: &Host,
    work: impl Fn(&mut Job) + Sync,
) -> Result<(), Error> {
    let socket = Socket::open_here()?;
    let count = jobs.len();
    let (send, created) = mpsc::channel();
    let mut result = Ok(Err(Errno::EAGAIN.into()));
    let create = || {
        let all = || create_in_parts(jobs, &send, socket, &host.state);
        result = catch_unwind(AssertUnwindSafe(all));
        // Then no more come.
        drop(send);
    };
    let work = |job: &mut Job| job.within(limit, &work);
    let visited = visit::visit_as_they_come(create, created.into_iter(), count, work);
    give_up_closed(visited.into_iter());
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Creates the missing links, and sends each open pod when it has them.
fn create_in_parts<'a>(
    jobs: &'a mut [&mut Job],
    created: &mpsc::Sender<&'a mut Job>,
    mut socket: Socket,
    host: &NetState,
) -> Result<(), Error> {
    /// The links of so many pods are one send.
    const PART: usize = 16;
    for part in jobs.chunks_mut(PART) {
        create_in_open(part, usize::MAX, &mut socket, host)?;
        let open = part.iter_mut().map(|job| &mut **job);
        for job in open.filter(|job| is_open(job)) {
            // It is received as long as there are threads to work in it.
            let _ = created.send(job);
        }
    }
    Ok(())
}

/// The planned steps, and a new observation.
fn work_inside(job: &mut Job, host: &Host, links: &HostLinks) {
    if job.is_unread() {
        job.look(host, links);
    }
    if !job.finished {
        job.act();
    }
    if !job.finished {
        job.observe(host, links);
    }
}

fn visit(jobs: &mut [&mut Job], limit: Option<Duration>, work: impl Fn(&mut Job) + Sync) {
    let open = jobs.iter_mut().map(|job| &mut **job);
    let mut open: Vec<&mut Job> = open.filter(|job| is_open(job)).collect();
    let results = visit::visit(&mut open, |job| job.within(limit, &work));
    give_up_closed(open.into_iter().zip(results));
}

/// The pods that could not be entered.
fn give_up_closed<'a>(visited: impl Iterator<Item = (&'a mut Job, Result<(), Error>)>) {
    for (job, result) in visited {
        let Err(error) = result else { continue };
        job.missing.clear();
        job.give_up(&error);
        if let Some(errno) = error.errno() {
            let error = errno.to_string();
            let cause = InventoryCause::CannotEnterNetns { error };
            job.break_off(cause.error(&job.matched.checkpoint.netns));
        }
    }
}

/// Creates the planned links of one pod, until its time is used up.
fn create_links_of(job: &mut Job, limit: Option<Duration>, host: &mut Host) -> Result<(), Error> {
    const PART: usize = 256;
    while !job.missing.is_empty() && is_open(job) {
        let begin = Instant::now();
        create_links(&mut [&mut *job], PART, host)?;
        job.spend(begin.elapsed(), limit);
    }
    Ok(())
}

/// Creates up to `most` planned links of each pod on links of the host, for as many pods at once as can be open.
fn create_links(jobs: &mut [&mut Job], most: usize, host: &mut Host) -> Result<(), Error> {
    let room = visit::room(jobs);
    for part in jobs.chunks_mut(room) {
        let closed = part.iter_mut().map(|job| &mut **job);
        let is_needed =
            |job: &&mut Job| !job.missing.is_empty() && job.matched.pod.netns.is_transient;
        let mut closed: Vec<&mut Job> = closed.filter(is_needed).collect();
        let opened = visit::hold(&mut closed, |_| Ok(()));
        give_up_closed(closed.into_iter().zip(opened));
        let created = create_in_open(part, most, &mut host.socket, &host.state);
        for job in part {
            job.matched.pod.release();
        }
        created?;
    }
    Ok(())
}

/// The same, for pods that are open.
fn create_in_open(
    jobs: &mut [&mut Job],
    most: usize,
    socket: &mut Socket,
    host: &NetState,
) -> Result<(), Error> {
    let mut wanted = Vec::new();
    for (at, job) in jobs.iter_mut().enumerate() {
        let some = job.missing.len().min(most);
        wanted.extend(job.missing.drain(..some).map(|link| (at, link)));
    }
    let creations: Vec<_> = wanted
        .iter()
        .map(|(at, link): &(usize, Link)| (&jobs[*at].matched.pod.netns, link))
        .collect();
    let results = create_links::create(socket, host, &creations)?;
    for ((at, link), result) in wanted.into_iter().zip(results) {
        jobs[at].note_creation(link, result);
    }
    Ok(())
}
