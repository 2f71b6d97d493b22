//! One pod during a restore: its state, and what was found and done in it.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};
use std::{mem, slice};

use crate::inventory::observe::{Host, Pod};
use crate::inventory::unread;
use crate::journal;
use crate::kernel::Error;
use crate::model::net::link::sysctl::SysctlKey;
use crate::model::problem::{ClaimHolder, ConflictCause, RestoreCause};
use crate::model::{Address, Claim, IfName, Indexed, Link, Mac, NetState, Parent, PodId, Problem};
use crate::plan::{AwaitedEvent, Plan, Step};
use crate::records::matched::Matched;
use crate::restore::apply::{FailedStep, remaining};
use crate::restore::conflict::detection::{Detecting, unfinished};
use crate::restore::conflict::targets::ProbeTarget;
use crate::restore::course::Removal;
use crate::restore::create_links::Created;
use crate::restore::facts::{RestoreState, RestoredPod};
use crate::restore::pods::size::size;

/// One pod during a restore: its record beside the running pod, its state, and what was collected.
#[derive(Debug)]
pub(in crate::restore) struct PodJob {
    pub matched: Matched,
    pub state: PodState,
    /// The number of objects in its record, about.
    pub size: usize,
    /// The time that it has cost.
    spent: Duration,
    /// The budget after which the rest of its work waited for the other pods.
    postponed: Option<Duration>,
    /// The links that it had before, once they were read.
    pub before: Option<Vec<IfName>>,
    /// Missing links on the host's links, that are still to be created.
    pub missing: Vec<Link>,
    /// Addresses to probe before they are added.
    pub targets: Vec<ProbeTarget>,
    /// Links that this run has created.
    pub created: Vec<IfName>,
    /// Steps that were carried out.
    pub done: Vec<Step>,
    pub failures: Vec<FailedStep>,
    /// The link that has the MAC of this pod's link.
    pub owner: Option<(Mac, ClaimHolder)>,
    /// Whether the host's links under it stayed since the restore before.
    pub lost_alone: bool,
    /// Whether its runtime is tearing it down: nothing is changed in it.
    pub removal: Removal,
    /// Whether what is done in it goes to the log.
    is_logged: bool,
}

/// How far the work on a pod is.
#[derive(Debug)]
pub(in crate::restore) enum PodState {
    /// Its next round begins with an observation.
    Waiting,
    /// It was observed, and has steps left.
    Working(View),
    /// Its time of this turn is used up and work is left. A later turn begins with an observation.
    Late,
    /// Nothing is missing, or a round did not change what is missing.
    Done(View),
    /// It cannot be worked on, with what was seen of it before that.
    Broken(Problem, Option<View>),
}

/// The last observation of a pod, and what it shows to be missing.
#[derive(Debug)]
pub(in crate::restore) struct View {
    pub state: NetState,
    pub plan: Plan,
    /// The links with IPv6 forwarding.
    pub routers: BTreeSet<IfName>,
}

impl AsMut<Pod> for PodJob {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.matched.pod
    }
}

impl PodJob {
    /// One in a namespace that no pod has.
    pub(in crate::restore) fn in_rehearsal(matched: Matched) -> Self {
        Self {
            is_logged: false,
            ..Self::new(matched)
        }
    }

    fn new(mut matched: Matched) -> Self {
        matched.pod.read_all(true);
        Self {
            size: size(&matched),
            matched,
            state: PodState::Waiting,
            spent: Duration::ZERO,
            postponed: None,
            before: None,
            missing: Vec::new(),
            targets: Vec::new(),
            created: Vec::new(),
            done: Vec::new(),
            failures: Vec::new(),
            owner: None,
            lost_alone: false,
            removal: Removal::None,
            is_logged: true,
        }
    }

    /// Sorted by id.
    pub(in crate::restore) fn all(matched: Vec<Matched>) -> Vec<Self> {
        let mut all: Vec<Self> = matched.into_iter().map(Self::new).collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all
    }

    pub(in crate::restore) fn id(&self) -> &PodId {
        &self.matched.info.id
    }

    /// The order among other pods: what needs little comes first.
    pub(in crate::restore) fn order(&self) -> (usize, String, PodId) {
        let info = &self.matched.info;
        (self.size, info.title(), info.id.clone())
    }

    /// The last observation, if it still counts.
    pub(in crate::restore) fn view(&self) -> Option<&View> {
        match &self.state {
            PodState::Waiting | PodState::Late => None,
            PodState::Working(view) | PodState::Done(view) => Some(view),
            PodState::Broken(_, view) => view.as_ref(),
        }
    }

    /// Why it cannot be worked on.
    pub(in crate::restore) fn broken(&self) -> Option<&Problem> {
        match &self.state {
            PodState::Broken(problem, _) => Some(problem),
            _ => None,
        }
    }

    /// Whether there is work left in this turn.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, PodState::Waiting | PodState::Working(_))
    }

    /// Whether its time of this turn is used up and work is left.
    pub(in crate::restore) fn is_late(&self) -> bool {
        matches!(self.state, PodState::Late)
    }

    /// Whether steps must wait for this, or the kernel brings what is missing.
    pub(in crate::restore) fn waits(&self, event: AwaitedEvent) -> bool {
        match &self.state {
            PodState::Working(view) | PodState::Done(view) => {
                view.plan.awaits(event, !self.done.is_empty())
            }
            PodState::Waiting | PodState::Late | PodState::Broken(..) => false,
        }
    }

    /// Another turn begins; the work was `postponed` after this time.
    pub(in crate::restore) fn begin_turn(&mut self, postponed: Option<Duration>) {
        self.postponed = postponed.filter(|_| self.removal == Removal::None);
        if self.is_late() {
            self.state = PodState::Waiting;
        }
    }

    /// Works on it until it has cost `limit` altogether; its pod must be open.
    pub(super) fn within(
        &mut self,
        limit: Option<Duration>,
        work: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) {
        let begin = Instant::now();
        let until = limit.map(|limit| begin + limit.saturating_sub(self.spent));
        let socket = self.matched.pod.socket();
        let worked = socket
            .map(|socket| socket.limit(until))
            .and_then(|()| work(self));
        if let Err(error) = worked {
            self.give_up(&error);
        }
        self.spend(begin.elapsed(), limit);
    }

    /// Notes a cost, and puts off what is left where `limit` is used up.
    pub(super) fn spend(&mut self, time: Duration, limit: Option<Duration>) {
        self.spent += time;
        if self.is_open() && limit.is_some_and(|limit| self.spent >= limit) {
            // The view and the failures are about the steps before: the later turn observes again.
            self.state = PodState::Late;
            self.failures.retain(|failure| is_from_host(&failure.step));
        }
    }

    /// Lets it be worked on again if it waits for this.
    pub(in crate::restore) fn reopen(&mut self, event: AwaitedEvent) {
        if self.waits(event) {
            self.state = match mem::replace(&mut self.state, PodState::Waiting) {
                PodState::Done(view) => PodState::Working(view),
                other => other,
            };
        }
    }

    /// Nothing more is done in it, whatever is left.
    pub(super) fn close(&mut self) {
        self.state = match mem::replace(&mut self.state, PodState::Waiting) {
            PodState::Working(view) => PodState::Done(view),
            other => other,
        };
    }

    /// It cannot be worked on, unless the error is that its time is used up.
    pub(in crate::restore) fn give_up(&mut self, error: &Error) {
        if !matches!(error, Error::Late) {
            self.break_off(unread(&self.matched.checkpoint.netns.to_string(), error));
        }
    }

    /// It cannot be worked on.
    pub(super) fn break_off(&mut self, problem: Problem) {
        let view = match mem::replace(&mut self.state, PodState::Waiting) {
            PodState::Waiting | PodState::Late => None,
            PodState::Working(view) | PodState::Done(view) => Some(view),
            PodState::Broken(_, view) => view,
        };
        self.state = PodState::Broken(problem, view);
    }

    /// Whether a link of the pod has this MAC by its record.
    pub(in crate::restore) fn has_mac(&self, mac: Mac) -> bool {
        let claims = self.matched.claims();
        claims.links.iter().any(|link| link.mac == Some(mac))
    }

    /// Leaves out an address that another one has, and the routes that need it.
    pub(in crate::restore) fn withhold(&mut self, claim: Claim, cause: ConflictCause) {
        self.matched.contested.push(cause.error(&claim));
        self.matched.withheld.insert(claim);
    }

    /// Whether nothing was changed in the pod yet but that links were created, and by steps that are `others`.
    pub(super) fn has_only_created_or(&self, others: impl Fn(&Step) -> bool) -> bool {
        self.done
            .iter()
            .all(|step| matches!(step, Step::AddLink(_)) || others(step))
    }

    /// Notes the result of the creation of a link from the host's namespace, with what was set on it there.
    pub(super) fn note_creation(&mut self, link: Link, host: &NetState, result: Created) {
        let name = link.name.clone();
        let step = Step::AddLink(Box::new(link));
        match result {
            Ok(settings) => {
                self.created.push(name);
                self.log_done(slice::from_ref(&step));
                self.log_done(&settings);
                self.done.push(step);
                self.done.extend(settings);
            }
            Err(error) => self.failures.push(FailedStep::new(step, error, host)),
        }
    }

    pub(super) fn log_done(&self, steps: &[Step]) {
        if !self.is_logged {
            return;
        }
        let Matched {
            info, checkpoint, ..
        } = &self.matched;
        journal::applied(Some((info, &checkpoint.netns)), steps);
    }

    /// The addresses that this run restored, each with its link, and whether that forwards IPv6 packets: all of a link that it
    /// created, and those that it added.
    pub(in crate::restore) fn restored_addresses(&self) -> Vec<(&Link, &Address, bool)> {
        let Some(view) = self.view() else {
            return Vec::new();
        };
        let added: HashSet<_> = self
            .done
            .iter()
            .flat_map(Step::added_addresses)
            .map(Address::key)
            .collect();
        let state = Indexed::new(&view.state);
        let addresses = state.state.addresses.iter();
        addresses
            .filter(|one| self.created.contains(&one.dev) || added.contains(&one.key()))
            .filter_map(|address| {
                let link = state.link(&address.dev)?;
                Some((link, address, view.routers.contains(&link.name)))
            })
            .collect()
    }

    /// The MAC and the parent of a link that could not go up because another link has that MAC.
    pub(in crate::restore) fn contested(&self, host: &Host) -> Option<(Mac, IfName)> {
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
    pub(in crate::restore) fn finish(self) -> (RestoredPod, Vec<Problem>, Option<Detecting>) {
        let added = self.restored_addresses().into_iter();
        let added: HashSet<_> = added.map(|(_, one, _)| one.clone()).collect();
        let Self {
            matched,
            state,
            size: _,
            spent: _,
            postponed,
            before,
            missing: _,
            targets: _,
            created: _,
            done,
            failures,
            owner,
            lost_alone,
            removal: _,
            is_logged: _,
        } = self;
        let is_unread = matches!(&state, PodState::Broken(problem, _) if !problem.is_error());
        let (mut problems, view) = match state {
            PodState::Waiting | PodState::Late => (Vec::new(), None),
            PodState::Working(view) | PodState::Done(view) => {
                let left = remaining(&view.plan, &failures, owner.as_ref());
                (left, Some(view))
            }
            PodState::Broken(problem, view) => (vec![problem], view),
        };
        let addresses = view.as_ref().map_or_else(Vec::new, |view| {
            unfinished(&view.state, |one| added.contains(one))
        });
        let is_complete = !problems.iter().any(Problem::is_error);
        problems.extend(postponed.map(|budget| RestoreCause::Postponed { budget }.info("")));
        let pod = RestoredPod {
            pod: matched.summary(),
            state: RestoreState::of(!done.is_empty(), is_complete).unless(is_unread),
            before: Some(before.unwrap_or_default()),
            after: view.map(|view| link_names(&view.state)),
            done,
            lost_alone,
        };
        let id = &matched.info.id;
        let problems = problems.into_iter().map(|problem| problem.of(id)).collect();
        let detecting = (!addresses.is_empty()).then(|| Detecting {
            pod: matched.pod,
            addresses,
        });
        (pod, problems, detecting)
    }
}

impl View {
    pub(in crate::restore) fn new(state: NetState, plan: Plan) -> Self {
        const FORWARDING: SysctlKey = SysctlKey::known("forwarding");
        let routers = state
            .links
            .iter()
            .filter(|link| link.sysctls.ipv6.get(&FORWARDING) == Some(&1))
            .map(|link| link.name.clone())
            .collect();
        Self {
            state,
            plan,
            routers,
        }
    }
}

/// Whether a step creates a link on one of the host's.
pub(super) fn is_from_host(step: &Step) -> bool {
    matches!(step, Step::AddLink(link) if link.is_on_host())
}

/// The names of the links, but for the loopback.
pub(super) fn link_names(state: &NetState) -> Vec<IfName> {
    let links = state.links_but_loopback();
    links.map(|link| link.name.clone()).collect()
}
