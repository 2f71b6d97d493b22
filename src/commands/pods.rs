//! Restoring all pods: their links in few sends from the host, then each pod's settings, addresses and routes from
//! inside, side by side, until a new observation of the pod shows nothing missing.

use std::net::IpAddr;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use super::check_in::Matched;
use super::conflicts;
use crate::apply::{self, Creation, Failure};
use crate::journal;
use crate::kernel::{Error, netns};
use crate::model::address::TENTATIVE;
use crate::model::{Code, IfName, Link, LinkKind, Mac, NetState, Parent, Problem};
use crate::observe::Host;
use crate::plan::{self, HostLinks, Observed, Plan, Step};
use crate::probe::Announcement;
use crate::report::{Listener, PodView, Progress, State};

/// Duplicate address detection takes up to two seconds, and a route may need the address's end of it.
const DAD_LIMIT: Duration = Duration::from_secs(4);
const DAD_PAUSE: Duration = Duration::from_millis(50);

/// One pod on its way back.
#[derive(Debug)]
pub(super) struct Job {
    matched: Matched,
    /// The links that it had at first.
    before: Vec<IfName>,
    /// Links that are missing and stand on the host's.
    missing: Vec<Link>,
    /// Links that this run has created.
    created: Vec<IfName>,
    /// Steps that were carried out.
    done: Vec<Step>,
    failures: Vec<Failure>,
    /// The last observation and what it shows to be missing.
    last: Option<(NetState, Plan)>,
    /// Why it cannot be observed.
    broken: Option<String>,
    /// Who has the MAC that this pod's link needs.
    owner: Option<String>,
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

    /// Whether something is left to do once there is carrier.
    pub(super) fn waits(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, plan)| !plan.later.is_empty())
    }

    /// Reads the links alone, which is enough to know which of them are missing; inside the pod's namespace.
    fn survey(&mut self, host: &Host, links: &HostLinks) {
        let state = match self.matched.pod.observe_links_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(error.to_string()),
        };
        self.before = link_names(&state);
        let observed = Observed { state: &state, new_link: None, age: self.matched.age };
        let steps = self.matched.plan(observed, links, &self.created).steps;
        let added = steps.into_iter().filter(is_from_host);
        self.missing =
            added.filter_map(|s| if let Step::AddLink(link) = s { Some(*link) } else { None }).collect();
    }

    fn give_up(&mut self, why: String) {
        self.broken = Some(why);
        self.finished = true;
    }

    /// Observes and plans; the calling thread is inside the pod's namespace.
    fn look(&mut self, host: &Host, links: &HostLinks) {
        let state = match self.matched.pod.observe_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(error.to_string()),
        };
        let observed = Observed { state: &state, new_link: None, age: self.matched.age };
        let plan = self.matched.plan(observed, links, &self.created);
        let stuck = self.last.as_ref().is_some_and(|(_, last)| last.steps == plan.steps);
        let waiting = state.addresses.iter().any(|address| address.flags & TENTATIVE != 0);
        self.finished = plan.steps.is_empty() || (stuck && !waiting);
        self.last = Some((state, plan));
    }

    /// Applies what was planned from inside; links on the host's were created before.
    fn act(&mut self) {
        let Some((state, plan)) = &self.last else { return };
        let from_inside = |step: &&Step| !is_from_host(step);
        let steps: Vec<Step> = plan.steps.iter().filter(from_inside).cloned().collect();
        self.failures.retain(|failure| is_from_host(&failure.step));
        let failures = apply::run(&mut self.matched.pod.socket, state, &steps);
        let failed = |step: &Step| failures.iter().any(|failure| failure.step == *step);
        let done: Vec<Step> = steps.into_iter().filter(|step| !failed(step)).collect();
        tell_done(&self.matched, &done);
        self.done.extend(done);
        let gone = apply::take_back(&mut self.matched.pod.socket, state, &failures, &self.created);
        if gone.is_empty() {
            self.failures.extend(failures);
        } else {
            self.failures.extend(failures.into_iter().filter(|failure| is_up_of(&failure.step, &gone)));
            self.done.retain(|step| !is_about(step, &gone));
            if let Some((state, _)) = &mut self.last {
                state.links.retain(|link| !gone.contains(&link.name));
            }
            self.finished = true;
        }
    }

    /// The IPv4 addresses of links that this run has created, to be announced through the host's links.
    pub(super) fn announcements(&self, host: &Host) -> Vec<Announcement> {
        let Some((state, _)) = &self.last else { return Vec::new() };
        let of_link = |link: &Link| {
            // What goes out of a VLAN's parent has no tag, and so reaches other neighbours than the pod's.
            let (LinkKind::Macvlan(_), Some(Parent::Host(parent))) = (&link.kind, &link.parent) else {
                return Vec::new();
            };
            let Some((parent, mac)) = host.state.link(parent).map(|parent| parent.index).zip(link.mac) else {
                return Vec::new();
            };
            let addresses = state.addresses_of(&link.name).filter_map(|address| match address.local {
                IpAddr::V4(address) => Some(Announcement { parent, mac, address }),
                IpAddr::V6(_) => None,
            });
            addresses.collect()
        };
        self.created.iter().filter_map(|name| state.link(name)).flat_map(of_link).collect()
    }

    /// The MAC and the parent of a link that could not go up because another link has that MAC.
    fn contested(&self, host: &Host) -> Option<(Mac, IfName)> {
        let is_contested = |failure: &&Failure| failure.problem().code == Code::MacConflict;
        let failure = self.failures.iter().find(is_contested)?;
        let Step::SetLink { dev, .. } = &failure.step else { return None };
        let claims = self.matched.claims();
        let link = claims.link(dev)?;
        let Some(Parent::Host(parent)) = &link.parent else { return None };
        let parent = host.state.link(parent).map(|parent| parent.name.clone())?;
        Some((link.mac?, parent))
    }

    /// What the pod's fate was, in words.
    pub(super) fn finish(self) -> (PodView, Vec<Problem>) {
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
        let mut problems = match (&last, broken) {
            (_, Some(why)) => vec![Problem::error(Code::Unreadable, matched.checkpoint.netns.clone(), why)],
            (Some((_, plan)), None) => remaining(plan, &failures),
            (None, None) => Vec::new(),
        };
        for problem in &mut problems {
            if let (Code::MacConflict, Some(owner)) = (problem.code, &owner) {
                problem.message = format!("{owner}: {}", problem.message);
            }
        }
        problems = problems.into_iter().map(|problem| problem.of(&matched.info.id)).collect();
        let complete = !problems.iter().any(Problem::is_error);
        let state = match (complete, done.is_empty()) {
            (true, true) => State::InSync,
            (true, false) => State::Restored,
            (false, false) => State::Partial,
            (false, true) => State::Failed,
        };
        let mut view = matched.view(state);
        view.before = Some(before);
        view.after = last.as_ref().map(|(state, _)| link_names(state));
        view.steps = done.iter().map(ToString::to_string).collect();
        (view, problems)
    }
}

/// Finds out, for pods whose MAC another link has, whose link that is: both sides of a conflict are named.
pub(super) fn name_owners(jobs: &mut [Job], host: &Host) {
    let contested: Vec<_> =
        jobs.iter().enumerate().filter_map(|(at, job)| Some((at, job.contested(host)?))).collect();
    if contested.is_empty() {
        return;
    }
    let mut owners = conflicts::owners_of_macs(host);
    for (at, (mac, parent)) in contested {
        jobs[at].owner =
            owners.remove(&(mac, parent)).map(|owner| format!("{owner} has the MAC {mac} as well"));
    }
}

/// The steps that are still missing, each with why it failed, after what no step could put right.
pub(super) fn remaining(plan: &Plan, failures: &[Failure]) -> Vec<Problem> {
    let mut problems = plan.problems.clone();
    let waiting = plan.later.iter().map(|step| {
        Problem::warning(
            Code::NoCarrier,
            step.to_string(),
            "waits for carrier; run `netfix restore` again then",
        )
    });
    problems.extend(waiting);
    let blocks_up =
        |failure: &&Failure| matches!(failure.step, Step::SetLink { change: plan::Change::Up, .. });
    let planned = |failure: &&Failure| plan.steps.contains(&failure.step);
    let telling: Vec<&Failure> = failures.iter().filter(|f| planned(f) || blocks_up(f)).collect();
    problems.extend(telling.iter().map(|failure| failure.problem()));
    let explained = |step: &&Step| telling.iter().any(|failure| failure.step == **step);
    // A link that could not be made explains everything that is missing on it.
    if telling.is_empty() {
        let silent = plan.steps.iter().filter(|step| !explained(step));
        let message = "was done without an error and is still missing";
        problems.extend(silent.map(|step| Problem::error(Code::Failed, step.to_string(), message)));
    }
    problems
}

/// Brings every pod back as far as it can be brought.
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

/// Goes on with the pods that had something to do once there is carrier.
pub(super) fn finish_later(jobs: &mut [Job], host: &Host, links: &HostLinks) {
    for job in jobs.iter_mut().filter(|job| job.waits() && job.broken.is_none()) {
        job.finished = false;
    }
    visit(jobs, |job| {
        job.look(host, links);
        if !job.finished {
            job.act();
            job.look(host, links);
        }
        job.finished = true;
    });
}

/// One round from inside every unfinished pod: the steps that the last look showed, and another look.
fn work_on(jobs: &mut [Job], host: &Host, links: &HostLinks) {
    visit(jobs, |job| {
        if job.last.is_none() {
            job.look(host, links);
        }
        if !job.finished {
            job.act();
        }
        if !job.finished {
            job.look(host, links);
        }
    });
}

fn visit(jobs: &mut [Job], work: impl Fn(&mut Job) + Sync) {
    let mut open: Vec<&mut Job> = jobs.iter_mut().filter(|job| !job.finished).collect();
    let results = netns::visit(&mut open, |job| &job.matched.pod.netns, |job| work(job));
    for (job, result) in open.into_iter().zip(results) {
        if let Err(errno) = result {
            job.broken = Some(format!("the namespace cannot be entered: {}", Error::from(errno)));
            job.finished = true;
        }
    }
}

/// Creates every planned link that stands on one of the host's, for all pods at once.
fn create_links(jobs: &mut [Job], host: &mut Host) -> Result<(), Error> {
    let missing = |(at, job): (usize, &mut Job)| {
        let links = std::mem::take(&mut job.missing);
        links.into_iter().map(move |link| (at, link))
    };
    let wanted: Vec<(usize, Link)> = jobs.iter_mut().enumerate().flat_map(missing).collect();
    let creations: Vec<_> =
        wanted.iter().map(|(at, link)| Creation { netns: &jobs[*at].matched.pod.netns, link }).collect();
    let results = apply::create(&mut host.socket, &host.state, &creations)?;
    for ((at, link), result) in wanted.into_iter().zip(results) {
        let job = &mut jobs[at];
        let name = link.name.clone();
        let step = Step::AddLink(Box::new(link));
        match result {
            Ok(()) => {
                job.created.push(name);
                tell_done(&job.matched, slice::from_ref(&step));
                job.done.push(step);
            }
            Err(errno) => job.failures.push(Failure { step, error: errno.into() }),
        }
    }
    Ok(())
}

fn tell_done(matched: &Matched, steps: &[Step]) {
    journal::applied(Some((&matched.info, &matched.checkpoint.netns)), steps);
}

fn link_names(state: &NetState) -> Vec<IfName> {
    let links = state.links.iter().filter(|link| link.kind != LinkKind::Loopback);
    links.map(|link| link.name.clone()).collect()
}

fn is_from_host(step: &Step) -> bool {
    matches!(step, Step::AddLink(link) if matches!(link.parent, Some(Parent::Host(_))))
}

fn is_up_of(step: &Step, names: &[IfName]) -> bool {
    matches!(step, Step::SetLink { dev, change: plan::Change::Up, .. } if names.contains(dev))
}

fn is_about(step: &Step, names: &[IfName]) -> bool {
    match step {
        Step::AddLink(link) => names.contains(&link.name),
        Step::SetLink { dev, .. } | Step::Sysctl { dev, .. } => names.contains(dev),
        Step::AddAddress(address) | Step::ChangeAddress(address) => names.contains(&address.dev),
        Step::AddNeighbour(neighbour) => names.contains(&neighbour.dev),
        Step::AddRoute { route, .. } => route.devs().iter().any(|dev| names.contains(*dev)),
        Step::AddRule(_) => false,
    }
}
