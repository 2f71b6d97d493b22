//! Restores all pods: their links in few sends from the host, then each pod's settings, addresses and routes from inside,
//! in parallel, until a new observation of the pod shows nothing missing.

use std::collections::BTreeSet;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use super::apply::{self, Applied, Failure, remaining};
use super::create_links;
use super::{RestoreState, RestoredPod, mac_owners};
use crate::inventory::cannot_observe;
use crate::inventory::matched::Matched;
use crate::inventory::observe::Host;
use crate::journal;
use crate::kernel::{Error, netns};
use crate::model::address::TENTATIVE;
use crate::model::problem::{Holder, InventoryCause};
use crate::model::{Address, IfName, Indexed, Link, LinkKind, Mac, NetState, Parent, Problem};
use crate::plan::{self, HostLinks, Plan, Step};
use crate::progress::{Listener, Progress};

/// Duplicate address detection takes up to two seconds, and a route may need an address that passed it.
const DAD_LIMIT: Duration = Duration::from_secs(4);
const DAD_PAUSE: Duration = Duration::from_millis(50);

/// One pod during a restore.
#[derive(Debug)]
pub(super) struct Job {
    matched: Matched,
    /// The links that it had before.
    before: Vec<IfName>,
    /// Missing links on the host's links.
    missing: Vec<Link>,
    /// Links that this run has created.
    created: Vec<IfName>,
    /// Steps that were carried out.
    done: Vec<Step>,
    failures: Vec<Failure>,
    /// The last observation and what it shows to be missing.
    last: Option<(NetState, Plan)>,
    /// Why it cannot be observed.
    broken: Option<Problem>,
    /// The link that has the MAC of this pod's link.
    owner: Option<(Mac, Holder)>,
    finished: bool,
}

impl Job {
    pub(super) fn new(matched: Matched) -> Self {
        Self {
            matched,
            before: Vec::new(),
            missing: Vec::new(),
            created: Vec::new(),
            done: Vec::new(),
            failures: Vec::new(),
            last: None,
            broken: None,
            owner: None,
            finished: false,
        }
    }

    /// Whether steps must wait for carrier.
    pub(super) fn waits(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|(_, plan)| !plan.later.is_empty())
    }

    /// Reads the links alone, which shows the missing ones; inside the pod's namespace.
    fn survey(&mut self, host: &Host, links: &HostLinks) {
        let state = match self.matched.pod.observe_links_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(&error),
        };
        self.before = link_names(&state);
        let plan = self.matched.plan(&state, None, links, &self.created);
        let missing = plan.steps.into_iter().filter_map(|step| match step {
            Step::AddLink(link) if is_on_host(&link) => Some(*link),
            _ => None,
        });
        self.missing = missing.collect();
    }

    fn give_up(&mut self, error: &Error) {
        self.broken = Some(cannot_observe(
            &self.matched.checkpoint.netns.to_string(),
            error,
        ));
        self.finished = true;
    }

    /// Observes and plans; the calling thread is inside the pod's namespace.
    fn observe(&mut self, host: &Host, links: &HostLinks) {
        let state = match self.matched.pod.observe_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(&error),
        };
        let plan = self.matched.plan(&state, None, links, &self.created);
        let stuck = self
            .last
            .as_ref()
            .is_some_and(|(_, last)| last.steps == plan.steps);
        let waiting = state
            .addresses
            .iter()
            .any(|address| address.flags & TENTATIVE != 0);
        self.finished = plan.steps.is_empty() || (stuck && !waiting);
        self.last = Some((state, plan));
    }

    /// Applies what was planned from inside; links on the host's were created before.
    fn act(&mut self) {
        let Some((state, plan)) = &self.last else {
            return;
        };
        let from_inside = |step: &&Step| !is_from_host(step);
        let steps: Vec<Step> = plan.steps.iter().filter(from_inside).cloned().collect();
        self.failures.retain(|failure| is_from_host(&failure.step));
        let Applied { done, failures } = apply::run(&mut self.matched.pod.socket, state, steps);
        log_done(&self.matched, &done);
        self.done.extend(done);
        let gone = apply::take_back(
            &mut self.matched.pod.socket,
            state,
            &failures,
            &self.created,
        );
        if gone.is_empty() {
            self.failures.extend(failures);
        } else {
            self.failures.extend(
                failures
                    .into_iter()
                    .filter(|failure| is_up_of(&failure.step, &gone)),
            );
            self.done.retain(|step| !is_about(step, &gone));
            if let Some((state, _)) = &mut self.last {
                state.links.retain(|link| !gone.contains(&link.name));
            }
            self.finished = true;
        }
    }

    /// The links that this run created, each with its addresses.
    pub(super) fn created_links(&self) -> Vec<(&Link, Vec<&Address>)> {
        let Some((state, _)) = &self.last else {
            return Vec::new();
        };
        let state = Indexed::new(state);
        let links = self.created.iter().filter_map(|name| state.link(name));
        links
            .map(|link| (link, state.addresses_of(&link.name).to_vec()))
            .collect()
    }

    /// The MAC and the parent of a link that could not go up because another link has that MAC.
    fn contested(&self, host: &Host) -> Option<(Mac, IfName)> {
        let dev = self.failures.iter().find_map(Failure::contested_link)?;
        let claims = self.matched.claims();
        let link = claims.link(dev)?;
        let Some(Parent::Host(parent)) = &link.parent else {
            return None;
        };
        let parent = host.state.link(parent).map(|parent| parent.name.clone())?;
        Some((link.mac?, parent))
    }

    /// What was done, and what is left.
    pub(super) fn finish(self) -> (RestoredPod, Vec<Problem>) {
        let Self {
            matched,
            before,
            missing: _,
            created: _,
            done,
            failures,
            last,
            broken,
            owner,
            finished: _,
        } = self;
        let problems = match (&last, broken) {
            (_, Some(problem)) => vec![problem],
            (Some((_, plan)), None) => remaining(plan, &failures, owner.as_ref()),
            (None, None) => Vec::new(),
        };
        let is_complete = !problems.iter().any(Problem::is_error);
        let id = &matched.info.id;
        let problems = problems.into_iter().map(|problem| problem.of(id)).collect();
        let pod = RestoredPod {
            pod: matched.summary(),
            state: RestoreState::of(!done.is_empty(), is_complete),
            before: Some(before),
            after: last.as_ref().map(|(state, _)| link_names(state)),
            done,
        };
        (pod, problems)
    }
}

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
    let mut owners = mac_owners::owners_of_macs(host);
    for (at, contested) in contested {
        let owner = owners.remove(&contested);
        jobs[at].owner = owner.map(|owner| (contested.0, owner));
    }
}

/// Restores every pod as far as possible.
pub(super) fn restore(
    jobs: &mut [Job],
    host: &mut Host,
    links: &HostLinks,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    visit(jobs, |job| job.survey(host, links));
    create_links(jobs, host)?;
    let deadline = Instant::now() + DAD_LIMIT;
    let mut first = true;
    loop {
        let open_before = jobs.iter().filter(|job| !job.finished).count();
        if open_before == 0 {
            return Ok(());
        }
        if !first && Instant::now() > deadline {
            return Ok(());
        }
        work_on(jobs, host, links);
        let open = jobs.iter().filter(|job| !job.finished).count();
        progress.notice(Progress::Advance(open_before - open));
        if !first && open == open_before {
            thread::sleep(DAD_PAUSE);
        }
        first = false;
    }
}

/// Carries out the steps that had to wait for carrier.
pub(super) fn finish_later(jobs: &mut [Job], host: &Host, links: &HostLinks) {
    for job in jobs
        .iter_mut()
        .filter(|job| job.waits() && job.broken.is_none())
    {
        job.finished = false;
    }
    visit(jobs, |job| {
        job.observe(host, links);
        if !job.finished {
            job.act();
            job.observe(host, links);
        }
        job.finished = true;
    });
}

/// One round inside every unfinished pod: the planned steps, and a new observation.
fn work_on(jobs: &mut [Job], host: &Host, links: &HostLinks) {
    visit(jobs, |job| {
        if job.last.is_none() {
            job.observe(host, links);
        }
        if !job.finished {
            job.act();
        }
        if !job.finished {
            job.observe(host, links);
        }
    });
}

fn visit(jobs: &mut [Job], work: impl Fn(&mut Job) + Sync) {
    let mut open: Vec<&mut Job> = jobs.iter_mut().filter(|job| !job.finished).collect();
    let results = netns::visit(&mut open, |job| &job.matched.pod.netns, |job| work(job));
    for (job, result) in open.into_iter().zip(results) {
        if let Err(errno) = result {
            let error = Error::from(errno).to_string();
            let cause = InventoryCause::CannotEnterNetns { error };
            job.broken = Some(cause.error(&job.matched.checkpoint.netns));
            job.finished = true;
        }
    }
}

/// Creates every planned link on a link of the host, for all pods at once.
fn create_links(jobs: &mut [Job], host: &mut Host) -> Result<(), Error> {
    let missing = |(at, job): (usize, &mut Job)| {
        let links = std::mem::take(&mut job.missing);
        links.into_iter().map(move |link| (at, link))
    };
    let wanted: Vec<(usize, Link)> = jobs.iter_mut().enumerate().flat_map(missing).collect();
    let creations: Vec<_> = wanted
        .iter()
        .map(|(at, link)| (&jobs[*at].matched.pod.netns, link))
        .collect();
    let results = create_links::create(&mut host.socket, &host.state, &creations)?;
    for ((at, link), result) in wanted.into_iter().zip(results) {
        let job = &mut jobs[at];
        let name = link.name.clone();
        let step = Step::AddLink(Box::new(link));
        match result {
            Ok(()) => {
                job.created.push(name);
                log_done(&job.matched, slice::from_ref(&step));
                job.done.push(step);
            }
            Err(error) => job.failures.push(Failure { step, error }),
        }
    }
    Ok(())
}

fn log_done(matched: &Matched, steps: &[Step]) {
    journal::applied(Some((&matched.info, &matched.checkpoint.netns)), steps);
}

fn link_names(state: &NetState) -> Vec<IfName> {
    let links = state
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Loopback);
    links.map(|link| link.name.clone()).collect()
}

fn is_from_host(step: &Step) -> bool {
    matches!(step, Step::AddLink(link) if is_on_host(link))
}

fn is_on_host(link: &Link) -> bool {
    matches!(link.parent, Some(Parent::Host(_)))
}

fn is_up_of(step: &Step, names: &BTreeSet<IfName>) -> bool {
    matches!(step, Step::SetLink { dev, change: plan::Change::Up, .. } if names.contains(dev))
}

fn is_about(step: &Step, names: &BTreeSet<IfName>) -> bool {
    match step {
        Step::AddLink(link) => names.contains(&link.name),
        Step::SetLink { dev, .. } | Step::Sysctl { dev, .. } => names.contains(dev),
        Step::AddAddress(address) | Step::ChangeAddress(address) => names.contains(&address.dev),
        Step::AddNeighbour(neighbour) => names.contains(&neighbour.dev),
        Step::AddRoute { route, .. } => route.devs().iter().any(|dev| names.contains(*dev)),
        Step::AddRule(_) => false,
    }
}
