//! One pod during a restore: observed, planned and worked on from inside, for a limited time.

use std::collections::{BTreeSet, HashSet};
use std::slice;
use std::time::{Duration, Instant};

use super::apply::{self, Applied, FailedStep, remaining};
use super::look::link_names;
use super::probe_targets::Target;
use super::{RestoreState, RestoredPod};
use crate::inventory::cannot_observe;
use crate::inventory::observe::{Host, Pod};
use crate::journal;
use crate::kernel::Error;
use crate::model::problem::{ClaimHolder, ConflictCause, RestoreCause};
use crate::model::{Address, Claim, IfName, Indexed, Link, Mac, NetState, Parent, PodId, Problem};
use crate::plan::{NetlinkStep, Plan, Step};
use crate::records::matched::Matched;

/// One pod during a restore.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) matched: Matched,
    /// The links that it had before, once they were read.
    pub(super) before: Option<Vec<IfName>>,
    /// Missing links on the host's links.
    pub(super) missing: Vec<Link>,
    /// Addresses to probe before they are added.
    pub(super) targets: Vec<Target>,
    /// Links that this run has created.
    pub(super) created: Vec<IfName>,
    /// Links with IPv6 forwarding.
    pub(super) routers: BTreeSet<IfName>,
    /// Steps that were carried out.
    pub(super) done: Vec<Step>,
    pub(super) failures: Vec<FailedStep>,
    /// The last observation and what it shows to be missing.
    pub(super) last: Option<(NetState, Plan)>,
    /// Why it cannot be observed.
    broken: Option<Problem>,
    /// The link that has the MAC of this pod's link.
    pub(super) owner: Option<(Mac, ClaimHolder)>,
    pub(super) finished: bool,
    /// The time that it has cost.
    spent: Duration,
    /// Whether its time of this turn is used up and work is left.
    is_late: bool,
    /// Whether no later turn takes it.
    pub(super) is_through: bool,
    /// The budget after which the rest of its work waited for the other pods.
    pub(super) postponed: Option<Duration>,
}

impl AsMut<Pod> for Job {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.matched.pod
    }
}

impl Job {
    pub(super) fn new(matched: Matched) -> Self {
        Self {
            matched,
            before: None,
            missing: Vec::new(),
            targets: Vec::new(),
            created: Vec::new(),
            routers: BTreeSet::new(),
            done: Vec::new(),
            failures: Vec::new(),
            last: None,
            broken: None,
            owner: None,
            finished: false,
            spent: Duration::ZERO,
            is_late: false,
            is_through: false,
            postponed: None,
        }
    }

    /// The number of objects in its record, about; a link has many settings.
    pub(super) fn size(&self) -> usize {
        const OF_LINK: usize = 10;
        const BYTES: u64 = 100;
        if let Some(whole) = &self.matched.whole {
            return usize::try_from(whole.size() / BYTES).unwrap_or(usize::MAX);
        }
        let NetState {
            links,
            addresses,
            routes,
            nexthops,
            rules,
            neighbours,
            unsupported: _,
        } = &*self.matched.claims();
        let others =
            addresses.len() + routes.len() + nexthops.len() + rules.len() + neighbours.len();
        let qdiscs = links.iter().map(|link| link.traffic.objects.len());
        OF_LINK * links.len() + others + qdiscs.sum::<usize>()
    }

    pub(super) fn id(&self) -> &PodId {
        &self.matched.info.id
    }

    /// The order among other pods: what needs little comes first.
    pub(super) fn order(&self) -> (usize, String, PodId) {
        let info = &self.matched.info;
        (self.size(), info.title(), info.id.clone())
    }

    /// Whether its time of this turn is used up and work is left.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Another turn begins.
    pub(super) fn begin_turn(&mut self) {
        self.is_late = false;
    }

    /// Works on it until it has cost `limit` altogether; its pod must be open.
    pub(super) fn within(&mut self, limit: Option<Duration>, work: impl FnOnce(&mut Self)) {
        let begin = Instant::now();
        let until = limit.map(|limit| begin + limit.saturating_sub(self.spent));
        match self.matched.pod.socket() {
            Ok(socket) => socket.limit(until),
            Err(error) => return self.give_up(&error),
        }
        work(self);
        self.spend(begin.elapsed(), limit);
    }

    /// Notes a cost, and puts off what is left where `limit` is used up.
    pub(super) fn spend(&mut self, time: Duration, limit: Option<Duration>) {
        self.spent += time;
        if !self.finished && limit.is_some_and(|limit| self.spent >= limit) {
            self.is_late = true;
            // Both are about the steps before: it begins anew with an observation.
            self.last = None;
            self.failures.retain(|failure| is_from_host(&failure.step));
        }
    }

    /// Whether steps must wait for carrier.
    pub(super) fn waits(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|(_, plan)| !plan.later.is_empty())
    }

    /// The addresses to probe, once.
    pub(super) fn take_targets(&mut self) -> Vec<Target> {
        std::mem::take(&mut self.targets)
    }

    /// Whether a link of the pod has this MAC by its record.
    pub(super) fn has_mac(&self, mac: Mac) -> bool {
        let claims = self.matched.claims();
        claims.links.iter().any(|link| link.mac == Some(mac))
    }

    /// Leaves out an address that another one has, and the routes that need it.
    pub(super) fn withhold(&mut self, claim: Claim, cause: ConflictCause) {
        self.matched.contested.push(cause.error(&claim));
        self.matched.withheld.insert(claim);
    }

    pub(super) fn give_up(&mut self, error: &Error) {
        if !matches!(error, Error::Late) {
            self.break_off(cannot_observe(
                &self.matched.checkpoint.netns.to_string(),
                error,
            ));
        }
    }

    /// It cannot be worked on.
    pub(super) fn break_off(&mut self, problem: Problem) {
        self.broken = Some(problem);
        self.finished = true;
    }

    /// Applies what was planned from inside; links on the host's were created before.
    pub(super) fn act(&mut self) {
        let Some((state, plan)) = &self.last else {
            return;
        };
        let from_inside = |step: &&Step| !is_from_host(step);
        let steps: Vec<Step> = plan.steps.iter().filter(from_inside).cloned().collect();
        self.failures.retain(|failure| is_from_host(&failure.step));
        let socket = match self.matched.pod.socket() {
            Ok(socket) => socket,
            Err(error) => return self.give_up(&error),
        };
        let Applied { done, failures } = apply::run(socket, state, steps);
        let gone = if socket.is_late() {
            BTreeSet::new()
        } else {
            apply::take_back(socket, state, &failures, &self.created)
        };
        log_done(&self.matched, &done);
        self.done.extend(done);
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

    /// Whether nothing is known of what it has now.
    pub(super) fn is_unread(&self) -> bool {
        self.last.is_none()
    }

    /// Lets it be worked on again if steps had to wait for carrier.
    pub(super) fn reopen(&mut self) {
        if self.waits() && self.broken.is_none() {
            self.finished = false;
        }
    }

    /// Whether nothing was changed in the pod yet but that links were created, and by steps that are `others`.
    pub(super) fn has_only_created_or(&self, others: impl Fn(&Step) -> bool) -> bool {
        let mut done = self.done.iter();
        done.all(|step| matches!(step, Step::AddLink(_)) || others(step))
    }

    /// Notes the result of the creation of a link from the host's namespace.
    pub(super) fn note_creation(&mut self, link: Link, result: Result<(), Error>) {
        let name = link.name.clone();
        let step = Step::AddLink(Box::new(link));
        match result {
            Ok(()) => {
                self.created.push(name);
                log_done(&self.matched, slice::from_ref(&step));
                self.done.push(step);
            }
            Err(error) => self.failures.push(FailedStep { step, error }),
        }
    }

    /// The addresses that this run restored, each with its link: all of a link that it created, and those that it added.
    pub(super) fn restored_addresses(&self) -> Vec<(&Link, &Address)> {
        let Some((state, _)) = &self.last else {
            return Vec::new();
        };
        let added = self.done.iter().flat_map(Step::added_addresses);
        let added: HashSet<_> = added.map(Address::key).collect();
        let is_restored = |address: &&Address| {
            self.created.contains(&address.dev) || added.contains(&address.key())
        };
        let state = Indexed::new(state);
        let restored = state.state.addresses.iter().filter(is_restored);
        let with_link = restored.filter_map(|address| Some((state.link(&address.dev)?, address)));
        with_link.collect()
    }

    /// Whether the pod forwards IPv6 packets that come in through this link.
    pub(super) fn is_router(&self, link: &IfName) -> bool {
        self.routers.contains(link)
    }

    /// The MAC and the parent of a link that could not go up because another link has that MAC.
    pub(super) fn contested(&self, host: &Host) -> Option<(Mac, IfName)> {
        let dev = self.failures.iter().find_map(FailedStep::contested_link)?;
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
            targets: _,
            created: _,
            routers: _,
            done,
            failures,
            last,
            broken,
            owner,
            finished: _,
            spent: _,
            is_late: _,
            is_through: _,
            postponed,
        } = self;
        let mut problems = match (&last, broken) {
            (_, Some(problem)) => vec![problem],
            (Some((_, plan)), None) => remaining(plan, &failures, owner.as_ref()),
            (None, None) => Vec::new(),
        };
        let is_complete = !problems.iter().any(Problem::is_error);
        let note = postponed.map(|budget| RestoreCause::Postponed { budget }.info(""));
        problems.extend(note);
        let id = &matched.info.id;
        let problems = problems.into_iter().map(|problem| problem.of(id)).collect();
        let pod = RestoredPod {
            pod: matched.summary(),
            state: RestoreState::of(!done.is_empty(), is_complete),
            before: Some(before.unwrap_or_default()),
            after: last.as_ref().map(|(state, _)| link_names(state)),
            done,
        };
        (pod, problems)
    }
}

fn log_done(matched: &Matched, steps: &[Step]) {
    journal::applied(Some((&matched.info, &matched.checkpoint.netns)), steps);
}

fn is_from_host(step: &Step) -> bool {
    matches!(step, Step::AddLink(link) if link.is_on_host())
}

fn is_up_of(step: &Step, names: &BTreeSet<IfName>) -> bool {
    let dev = step.netlink().and_then(NetlinkStep::takes_up);
    dev.is_some_and(|dev| names.contains(dev))
}

fn is_about(step: &Step, names: &BTreeSet<IfName>) -> bool {
    step.devs().into_iter().any(|dev| names.contains(dev))
}
