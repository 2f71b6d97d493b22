//! `netfix restore`: observe, plan, apply, and observe again until nothing is missing or nothing more can be done.

use std::thread;
use std::time::{Duration, Instant};

use super::check_in::Ground;
use super::pods::{self, Job};
use super::prepare::{Prepared, prepare};
use super::session;
use super::wait::{self, Patience};
use super::{Context, Early, Outcome};
use crate::apply::{self, Failure};
use crate::cli::{SourceArgs, Target};
use crate::journal;
use crate::kernel::Error;
use crate::model::{Code, Problem, Severity};
use crate::observe::Host;
use crate::plan::{self, HostLinks, Plan, Step};
use crate::probe;
use crate::report::{Progress, State};
use crate::runtime;

/// The host's stack has at most this many layers, each of which may need a round of its own.
const HOST_ROUNDS: usize = 8;

pub(super) fn run(
    target: &Target,
    source: &SourceArgs,
    limit: Duration,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let selection = session::selection(&target.pods.selectors)?;
    // Held to the end: nobody may write checkpoints of a network that is being put together.
    let lock = || context.store.lock("restore").map_err(|error| refuse(error.problem()));
    let _guard = context.store.exists().then(lock).transpose()?;
    let patience = Patience::new(limit);
    let prepared = prepare(target, source, &selection, context)?;
    put_back(prepared, &source.runtimes.config(), patience, context)
}

/// Puts back what is missing, under a lock that is held already.
pub(super) fn put_back(
    prepared: Prepared,
    runtimes: &runtime::Config,
    patience: Patience<'_>,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let Prepared { mut host, mut ground, matched, node: mut view, mut views, mut problems, replaced } =
        prepared;
    let restored = restore(&mut host, &mut ground, matched, patience, context);
    let Restored { host_result, jobs, notes } = restored.map_err(|error| {
        Box::new(Outcome::failed(Problem::error(Code::Failed, "host", error.to_string())))
    })?;
    view.steps = host_result.done.iter().map(ToString::to_string).collect();
    view.state = Some(host_result.state());
    problems.extend(host_result.problems());
    problems.extend(notes);
    for job in jobs {
        let (view, found) = job.finish();
        views.push(view);
        problems.extend(found);
    }
    replaced.tell(runtimes, &mut problems);
    views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let exit = Outcome::judge(&views, &problems);
    Ok(Outcome { exit, node: view, pods: views, problems, ..Outcome::default() })
}

struct Restored {
    host_result: HostResult,
    jobs: Vec<Job>,
    /// What is worth knowing beside: carrier, announcements.
    notes: Vec<Problem>,
}

fn restore(
    host: &mut Host,
    ground: &mut Ground,
    matched: Vec<super::check_in::Matched>,
    patience: Patience<'_>,
    context: &mut Context,
) -> Result<Restored, Error> {
    context.progress.notice(Progress::Phase("waiting for the NIC", ground.devices.len()));
    wait::for_devices(host, ground, patience)?;
    context.progress.notice(Progress::Phase("restoring the host", 1));
    let mut host_result = HostResult::default();
    let links = host_result.restore(host, ground)?;
    let mut jobs: Vec<Job> = matched.into_iter().map(Job::new).collect();
    context.progress.notice(Progress::Phase("restoring pods", jobs.len()));
    pods::restore(&mut jobs, host, &links, context.progress.as_mut())?;
    pods::name_owners(&mut jobs, host);
    context.progress.notice(Progress::Phase("waiting for carrier", 1));
    let mut notes = wait::for_carrier(host, ground, &links, patience)?;
    finish_later(&mut host_result, &mut jobs, host, ground, &links)?;
    notes.extend(announce(&jobs, host));
    Ok(Restored { host_result, jobs, notes })
}

/// What had to wait for carrier. It spreads from the NIC to VLANs and macvlans by events of their own, so it is given
/// a moment.
fn finish_later(
    host_result: &mut HostResult,
    jobs: &mut [Job],
    host: &mut Host,
    ground: &mut Ground,
    links: &HostLinks,
) -> Result<(), Error> {
    const MOMENT: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + MOMENT;
    loop {
        if !host_result.last.later.is_empty() {
            host_result.restore(host, ground)?;
        }
        pods::finish_later(jobs, host, links);
        let waits = !host_result.last.later.is_empty() || jobs.iter().any(Job::waits);
        if !waits || Instant::now() > deadline {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

/// A failed announcement is worth a note and never fails a restore.
fn announce(jobs: &[Job], host: &Host) -> Option<Problem> {
    let announcements: Vec<_> = jobs.iter().flat_map(|job| job.announcements(host)).collect();
    let (count, error) = match probe::announce(&announcements) {
        Ok(None) => return None,
        Ok(Some(failed)) => failed,
        Err(error) => (announcements.len(), error),
    };
    let message = format!("{count} of {} ARP announcements could not be sent: {error}", announcements.len());
    Some(Problem { severity: Severity::Info, ..Problem::warning(Code::Failed, "announce", message) })
}

/// What became of the host's own links.
#[derive(Default)]
struct HostResult {
    /// Every step that was carried out.
    done: Vec<Step>,
    /// What failed in the last round.
    failures: Vec<Failure>,
    /// What is still missing.
    last: Plan,
}

impl HostResult {
    fn state(&self) -> State {
        let broken = !self.last.steps.is_empty() || self.problems().iter().any(Problem::is_error);
        match (self.done.is_empty(), broken) {
            (true, false) => State::InSync,
            (false, false) => State::Restored,
            (false, true) => State::Partial,
            (true, true) => State::Failed,
        }
    }

    fn problems(&self) -> Vec<Problem> {
        pods::remaining(&self.last, &self.failures)
    }

    /// Plans and applies in rounds: a layer's settings can only be compared once it is there.
    fn restore(&mut self, host: &mut Host, ground: &mut Ground) -> Result<HostLinks, Error> {
        self.last = Plan::default();
        for round in 0.. {
            host.refresh()?;
            ground.learn(&host.state);
            let observed = ground.observed(host, None);
            let (plan, mut links) = plan::host(&ground.state, observed, &ground.devices);
            if plan.steps.is_empty() || plan.steps == self.last.steps || round == HOST_ROUNDS {
                links.confirm(&host.state);
                self.last = plan;
                return Ok(links);
            }
            self.failures = apply::run(&mut host.socket, &host.state, &plan.steps);
            let failed = |step: &&Step| self.failures.iter().any(|failure| failure.step == **step);
            let done: Vec<Step> = plan.steps.iter().filter(|step| !failed(step)).cloned().collect();
            journal::applied(None, &done);
            self.done.extend(done);
            self.last = plan;
        }
        unreachable!("the loop ends in its last round")
    }
}
