//! The turns in which pods are restored: no pod delays the others.
//!
//! Pods that need little come first. Each of the others has a budget of time, and when that is used up, the rest of its work
//! waits until all others are restored. Nothing is left out: the last turn has no limit.

use std::collections::BTreeSet;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use super::conflict::Search;
use super::host::HostJob;
use super::job::Job;
use super::managed::Managed;
use super::wait_nic::{self, WaitLimit};
use super::{announce, pods, waiting};
use crate::context::Pending;
use crate::inventory::observe::Host;
use crate::kernel::Error;
use crate::matching::NetnsKey;
use crate::matching::host_baseline::HostBaseline;
use crate::model::Problem;
use crate::plan::HostLinks;
use crate::progress::{Listener, Progress, Stage, Wait};

/// The pods that are worked on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Those whose record is small, as long as they need little time.
    Small,
    /// All that are left, each for the time that one pod may cost.
    Budget(Duration),
    /// What is left then.
    Rest,
}

impl Turn {
    /// The time for one pod, with that of earlier turns.
    pub(super) fn limit(self) -> Option<Duration> {
        /// Hundreds of times what a pod with one interface needs.
        const LITTLE: Duration = Duration::from_millis(250);
        match self {
            Self::Small => Some(LITTLE),
            Self::Budget(budget) => Some(budget),
            Self::Rest => None,
        }
    }

    fn takes(self, job: &Job) -> bool {
        /// Objects in a record. A pod of Kubernetes has a dozen.
        const SMALL: usize = 1000;
        self != Self::Small || job.size() <= SMALL
    }
}

/// The host and its links, as they are under the pods.
pub(super) struct Ground<'a, 'user> {
    pub job: &'a mut HostJob,
    pub host: &'a mut Host,
    pub baseline: &'a mut HostBaseline,
    pub managed: &'a mut Managed<'user>,
    pub links: &'a HostLinks,
}

/// What all turns did.
pub(super) struct Turns {
    /// Sorted by id.
    pub jobs: Vec<Job>,
    /// The problems of the host's links, of probes and announcements.
    pub notes: Vec<Problem>,
    pub pending: Pending,
}

/// Restores all pods.
pub(super) fn restore(
    mut jobs: Vec<Job>,
    ground: &mut Ground<'_, '_>,
    limit: WaitLimit<'_>,
    progress: &mut dyn Listener,
) -> Result<Turns, Error> {
    let budget = limit.pod_budget;
    let known = jobs.iter().map(|job| job.matched.pod.netns.key()).collect();
    let (mut notes, mut pending) = (Vec::new(), Pending::default());
    for turn in [Turn::Small, Turn::Budget(budget), Turn::Rest] {
        let is_open = |job: &&mut Job| !job.is_through && turn.takes(job);
        let mut taken: Vec<&mut Job> = jobs.iter_mut().filter(is_open).collect();
        if taken.is_empty() && turn != Turn::Small {
            continue;
        }
        taken.sort_by_cached_key(|job| job.order());
        progress.notice(Progress::Phase(Stage::RestoringPods, taken.len()));
        let mut carrier = Carrier {
            is_awaited: turn != Turn::Small,
            limit,
        };
        let search = begin(&mut taken, turn, ground, limit)?;
        notes.extend(finish_search(
            search,
            &mut taken,
            &known,
            (ground, &mut carrier),
            progress,
        )?);
        pods::restore(&mut taken, turn, ground.host, ground.links, progress)?;
        notes.extend(carrier.wait(ground, progress)?);
        taken.retain(|job| !job.is_late());
        finish_later(&mut taken, ground, progress)?;
        notes.extend(announce::announce(&mut taken, ground.host, &mut pending));
        for job in taken {
            job.is_through = true;
            job.postponed = (turn == Turn::Rest).then_some(budget);
        }
    }
    jobs.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(Turns {
        jobs,
        notes,
        pending,
    })
}

/// Begins a turn. Creates the links while the probes of addresses are under way; without probes they are created later, while
/// there is work in other pods.
fn begin(
    jobs: &mut [&mut Job],
    turn: Turn,
    ground: &mut Ground<'_, '_>,
    limit: WaitLimit<'_>,
) -> Result<Option<Search>, Error> {
    let probe = limit.conflict_probe;
    pods::survey(jobs, turn, ground.host, ground.links, probe);
    let mut search = Search::of(jobs, ground.host, probe);
    if let Some(search) = &mut search
        && search.has_carrier(ground.host)
    {
        search.start(ground.host);
    }
    if search.is_some() {
        pods::create(jobs, turn, ground.host)?;
    }
    Ok(search)
}

/// Waits for the answers to the probes. `known` are the namespaces of all pods with a record.
fn finish_search(
    search: Option<Search>,
    jobs: &mut [&mut Job],
    known: &BTreeSet<NetnsKey>,
    (ground, carrier): (&mut Ground<'_, '_>, &mut Carrier<'_>),
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    let Some(mut search) = search else {
        return Ok(Vec::new());
    };
    let mut notes = Vec::new();
    if !search.is_started() {
        // A probe without carrier reaches no other machine.
        notes.extend(carrier.wait(ground, progress)?);
        search.start(ground.host);
    }
    notes.extend(search.finish(jobs, ground.host, known));
    Ok(notes)
}

/// The one wait for carrier.
struct Carrier<'user> {
    is_awaited: bool,
    limit: WaitLimit<'user>,
}

impl Carrier<'_> {
    fn wait(
        &mut self,
        ground: &mut Ground<'_, '_>,
        progress: &mut dyn Listener,
    ) -> Result<Vec<Problem>, Error> {
        if mem::replace(&mut self.is_awaited, true) {
            return Ok(Vec::new());
        }
        let Ground {
            host,
            baseline,
            links,
            ..
        } = ground;
        progress.notice(waiting(Wait::Carrier, self.limit.for_carrier(), baseline));
        wait_nic::for_carrier(host, baseline, links, self.limit)
    }
}

/// The steps that had to wait for carrier. Carrier spreads from the NIC to VLANs and macvlans by separate events, which
/// takes a moment.
fn finish_later(
    jobs: &mut [&mut Job],
    ground: &mut Ground<'_, '_>,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    const MOMENT: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(50);
    let Ground {
        job: host_job,
        host,
        baseline,
        managed,
        links,
    } = ground;
    let deadline = Instant::now() + MOMENT;
    loop {
        if host_job.waits() {
            host.refresh()?;
            host_job.restore(host, baseline, managed, progress)?;
        }
        pods::finish_later(jobs, host, links);
        let waits = host_job.waits() || jobs.iter().any(|job| job.waits());
        if !waits || Instant::now() > deadline {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}
