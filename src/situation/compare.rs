//! The host and each pod compared with their records: what is missing, and the steps that restore it.

use crate::inventory::observe::Host;
use crate::inventory::sockets::Suspects;
use crate::inventory::visit::visit;
use crate::inventory::{cannot_observe, unread};
use crate::kernel::route::ways;
use crate::kernel::{Error, state};
use crate::matching::at_risk::PodDrivers;
use crate::model::net::reach;
use crate::model::{HostSide, Loss, NetState, Problem};
use crate::plan::link::ipv6;
use crate::plan::{self, HostLinks, Plan, PodVerdict, snapshot_quality};
use crate::records::matched::Matched;
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::side_by_side;
use crate::situation::host::not_selected;

/// What is missing on the host and in each pod.
#[derive(Default)]
pub(crate) struct Comparison {
    pub host: Plan,
    /// Whether the selected part of the host has drifted, by the rule for pods.
    pub is_host_drifted: bool,
    pub links: HostLinks,
    /// What the host has now that no restore could bring back.
    pub unsupported: Vec<Problem>,
    /// One for each matched pod, in their order.
    pub pods: Vec<Compared>,
}

/// What a pod has, beside what it should have.
pub(crate) struct Compared {
    pub verdict: PodVerdict,
    /// Empty where the pod could not be observed.
    pub plan: Plan,
    /// What the pod has now that no restore could bring back.
    pub unsupported: Vec<Problem>,
    /// The drivers of its devices.
    pub drivers: PodDrivers,
    /// What programs have on its links, and had by its record.
    pub sockets: Option<Suspects>,
}

impl Comparison {
    /// Whether something is missing or differs on the host or in a pod.
    pub(crate) fn has_drift(&self) -> bool {
        self.is_host_drifted
            || !self.links.renamed.is_empty()
            || self.pods.iter().any(|pod| pod.verdict.is_drift())
    }
}

impl Compared {
    /// A pod that could not be observed.
    fn unknown(reason: Problem) -> Self {
        Self::bare(PodVerdict::Unknown(reason))
    }

    /// Nothing but the verdict.
    fn bare(verdict: PodVerdict) -> Self {
        Self {
            verdict,
            plan: Plan::default(),
            unsupported: Vec::new(),
            drivers: PodDrivers::default(),
            sockets: None,
        }
    }
}

/// How far a plan for links that are missing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// To the last setting: what a new link of the pod starts with is read, in a hundred files.
    Complete,
    Creation,
    /// Nothing is planned in pods: a verdict says whether one is lost, and that it is in sync where it is not.
    Loss,
}

/// Compares the host and all matched pods with their records.
pub(crate) fn compare(surveyed: &mut Surveyed, depth: Depth) -> Result<Comparison, Refusal> {
    let Surveyed {
        host,
        baseline,
        matched,
        ..
    } = surveyed;
    let new_link = (depth != Depth::Loss).then(|| state::new_link_settings(&mut host.socket));
    let new_link = new_link.transpose();
    let new_link = new_link.map_err(|error| cannot_observe("host", &error))?;
    let observed = baseline.observed(&host.state, new_link.as_ref());
    let (mut host_plan, links) = plan::host(&baseline.state, observed, &baseline.scope());
    let is_host_drifted = PodVerdict::new(None, &host_plan).is_drift();
    host_plan.problems.extend(not_selected(host, baseline));
    let side = HostSide::new(&host.state);
    let compare = |matched: &mut Matched| {
        let compared = matched.compare((host, &side), &links, depth);
        compared.unwrap_or_else(Compared::unknown)
    };
    let pods = if matched.iter().all(|one| one.pod.kept().is_some()) {
        side_by_side::map(matched.iter_mut().collect(), compare)
    } else {
        let compared = visit(matched, compare).into_iter();
        compared
            .map(|one| one.unwrap_or_else(|error| Compared::unknown(unread("netns", &error))))
            .collect()
    };
    Ok(Comparison {
        host: host_plan,
        is_host_drifted,
        links,
        unsupported: snapshot_quality::unsupported_on_host(&host.state, &baseline.devices),
        pods,
    })
}

impl Matched {
    /// Compares from inside the pod's namespace.
    fn compare(
        &mut self,
        (host, side): (&Host, &HostSide<'_>),
        links: &HostLinks,
        depth: Depth,
    ) -> Result<Compared, Problem> {
        if depth == Depth::Complete {
            self.pod.read_all(true);
        }
        // Of one with a large record the part at hand may show enough.
        let is_short = depth == Depth::Loss && self.whole.is_some() && self.pod.kept().is_none();
        let lost = is_short.then(|| self.lost_claims((host, side)));
        if let Some(Ok(Some(lost))) = lost {
            return Ok(Compared::bare(PodVerdict::Lost(lost)));
        }
        let state = match self.observe_at(depth, host) {
            Err(error @ Error::TooMany(_)) => return self.compare_claims((host, side), &error),
            state => state.map_err(|error| unread("netns", &error))?,
        };
        let state = self.with_ways(state);
        let state = state.map_err(|error| unread("netns", &error))?;
        let mut plan = match depth {
            Depth::Loss => Plan::default(),
            Depth::Creation | Depth::Complete => self.plan(&state, None, links, &[]),
        };
        if depth == Depth::Complete && plan.steps.iter().any(ipv6::begins_anew) {
            let settings = self
                .pod
                .socket()
                .and_then(state::new_link_settings)
                .map_err(|error| cannot_observe("conf/default", &error))?;
            plan = self.plan(&state, Some(&settings), links, &[]);
        }
        let (wanted, _) = self.wanted(&state, links, &[]);
        let verdict = PodVerdict::new(self.loss(&wanted, &state, side), &plan);
        let verdict = verdict.or_cut_off(self.cut_off(&state, side));
        if depth == Depth::Loss {
            return Ok(Compared::bare(verdict));
        }
        let (at_risk, gone) = (state.sockets_at_risk(), wanted.sockets_lost(&state));
        let sockets = Suspects::of_pod(&self.pod, at_risk, gone);
        Ok(Compared {
            verdict,
            plan,
            unsupported: snapshot_quality::unsupported_in_pod(&state),
            drivers: PodDrivers::of(&state, &side.graph),
            sockets: Some(sockets),
        })
    }

    fn observe_at(&mut self, depth: Depth, host: &Host) -> Result<NetState, Error> {
        let mut own = self.checkpoint.netfix.iter();
        if depth != Depth::Loss || own.any(|own| own.cut_off) {
            return self.observe_inside(host);
        }
        let links = self.pod.observe_links_inside(host)?;
        // An entry that the record has not may be the way to the next hop on a link without ARP, or have a wrong MAC.
        let with_neighbours = !self.recorded_state().neighbours.is_empty()
            || !self.answers.is_empty()
            || links.links.iter().any(|link| link.flags.noarp);
        state::routing(self.pod.socket()?, links, with_neighbours)
    }

    /// Looks up the ways of the packets of which the record has them.
    fn with_ways(&mut self, mut state: NetState) -> Result<NetState, Error> {
        if self.pod.kept().is_none() {
            let packets = reach::known_packets(&self.answers, &self.recorded_state(), &state);
            ways::look_up(self.pod.socket()?, &mut state, &packets)?;
        }
        Ok(state)
    }

    /// What the pod has lost though it has all that is recorded, by this plan: something refuses its packets.
    pub(crate) fn lost_ways(&mut self, state: &NetState, plan: &Plan) -> Option<Loss> {
        // What is missing and cannot be made has its own problem.
        let mut unasked = state.clone();
        unasked.ways.clear();
        let is_whole = plan.steps.is_empty()
            && plan.later.is_empty()
            && self.withheld.is_empty()
            && snapshot_quality::loss(&self.recorded_state(), &[], &unasked).is_none();
        if !is_whole {
            return None;
        }
        // A restore reads them only where they are recorded, and one may have a wrong MAC.
        if unasked.neighbours.is_empty() && !self.answers.is_empty() {
            state::neighbours(self.pod.socket().ok()?, &mut unasked).ok()?;
        }
        let now = self.with_ways(unasked).ok()?;
        snapshot_quality::loss(&self.recorded_state(), &self.answers, &now)
    }

    /// Compares what can be lost of a pod with a table that is not read whole.
    fn compare_claims(
        &mut self,
        host: (&Host, &HostSide<'_>),
        error: &Error,
    ) -> Result<Compared, Problem> {
        let unread = |error: &Error| unread("netns", error);
        let lost = self.lost_claims(host).map_err(|error| unread(&error))?;
        let lost = lost.ok_or_else(|| unread(error))?;
        Ok(Compared::bare(PodVerdict::Lost(lost)))
    }
}
