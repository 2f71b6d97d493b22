//! A stored record beside the running pod that it is about.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::cni;
use crate::inventory::observe::{Host, Pod};
use crate::kernel::conf::{sysctl, sysfs};
use crate::kernel::netns::routing;
use crate::kernel::state::{self, Needs};
use crate::kernel::{Error, devices};
use crate::matching::host_parents::AssumedParent;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::{
    Address, AnswerRecord, Checkpoint, Claim, HostSide, IfName, Link, Loss, NetState, Partial,
    PodInfo, PodSummary, Problem, interfaces,
};
use crate::plan::{self, DaemonState, HostLinks, NicRules, Observed, Plan, snapshot_quality};
use crate::records::stored::{age, summary_of};
use crate::store::{Light, Whole};

impl AsMut<Pod> for Matched {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.pod
    }
}

/// Where a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordOrigin {
    /// What the command was to read.
    Requested,
    /// A generation, where the present checkpoint is missing or cannot be read.
    Generation(u64),
    /// libcni's cache.
    CniCache,
}

impl RecordOrigin {
    /// The number of the generation.
    pub(crate) fn generation(self) -> Option<u64> {
        match self {
            Self::Generation(number) => Some(number),
            Self::Requested | Self::CniCache => None,
        }
    }
}

/// A checkpoint and the running pod that it describes.
#[derive(Debug)]
pub(crate) struct Matched {
    pub info: PodInfo,
    pub checkpoint: Checkpoint,
    pub origin: RecordOrigin,
    /// The whole of a large checkpoint that was read in part.
    pub whole: Option<Whole>,
    pub pod: Pod,
    /// What has answered the pod.
    pub answers: Vec<AnswerRecord>,
    /// Seconds since the checkpoint was written.
    pub age: u32,
    /// What becomes of what daemons own and the pod lacks.
    pub daemons: DaemonState,
    /// How settings of NICs are compared.
    pub nic: NicRules,
    /// The gaps of an incomplete source; `None` where netfix recorded the whole state.
    pub partial: Option<Partial>,
    /// What it does not get because others claim it too.
    pub withheld: BTreeSet<Claim>,
    /// The findings about what others claim too.
    pub contested: Vec<Problem>,
}

impl Matched {
    pub(super) fn new(
        info: PodInfo,
        (checkpoint, whole): Light,
        pod: Pod,
        origin: RecordOrigin,
    ) -> Self {
        let extension = checkpoint.netfix.as_ref();
        Self {
            age: extension.map_or(0, |extension| age(&extension.stamp())),
            partial: match extension {
                Some(_) => None,
                None => Some(cni::of_origin(&checkpoint)),
            },
            answers: Vec::new(),
            daemons: DaemonState::default(),
            nic: NicRules::default(),
            withheld: BTreeSet::new(),
            contested: Vec::new(),
            info,
            checkpoint,
            origin,
            whole,
            pod,
        }
    }

    /// A twin of the pod `of`, with a record of its own. What is left to daemons in the pod is left in the twin.
    pub(crate) fn of_twin(of: &Self, checkpoint: Checkpoint, pod: Pod) -> Self {
        Self {
            nic: of.nic,
            daemons: of.daemons,
            age: 0,
            ..Self::new(
                of.info.clone(),
                (checkpoint, None),
                pod,
                RecordOrigin::Requested,
            )
        }
    }

    /// Uses the checkpoint of a generation instead.
    pub(super) fn use_generation(&mut self, checkpoint: Checkpoint, number: u64) {
        self.age = checkpoint
            .netfix
            .as_ref()
            .map_or(0, |own| age(&own.stamp()));
        self.checkpoint = checkpoint;
        self.whole = None;
        self.origin = RecordOrigin::Generation(number);
    }

    /// The state in its checkpoint.
    pub(crate) fn recorded_state(&self) -> Cow<'_, NetState> {
        self.recorded().0
    }

    /// Asks the kernel whether a program in the pod could bring back what daemons own: else a restore does. Where that is unknown, it
    /// is left. The calling thread is in the pod's namespace.
    pub(crate) fn find_daemons(&mut self) {
        let may_have = self.daemons == DaemonState::Leave
            && (self.whole.is_some() || plan::daemons::has_daemons(&self.claims()));
        if may_have && routing::has_program().is_ok_and(|has_program| !has_program) {
            self.daemons = DaemonState::Absent;
        }
    }

    /// Whether an address that is missing is left to a daemon.
    pub(crate) fn leaves_to_daemon(&self, address: &Address) -> bool {
        self.daemons == DaemonState::Leave && address.is_of_daemon(|_| false)
    }

    /// What the pod has lost of `wanted`, which its record describes, or of the host's links under it.
    pub(crate) fn loss(
        &self,
        wanted: &NetState,
        now: &NetState,
        host: &HostSide<'_>,
    ) -> Option<Loss> {
        let own = self.checkpoint.netfix.as_ref();
        let beside = own.map(|own| own.beside(&self.answers));
        snapshot_quality::pod_loss(wanted, beside.unwrap_or_default(), now, host)
    }

    /// What the pod has lost of the host's links under it: a way out of its bridge, or a link that carried its packets.
    pub(crate) fn lost_on_host(&self, host: &HostSide<'_>) -> Option<Loss> {
        let chain = self.checkpoint.netfix.as_ref().map(|own| &own.chain);
        let chain = || snapshot_quality::chain_loss(chain?, host);
        self.lost_uplink(host).or_else(chain)
    }

    /// What the pod has lost of the uplinks of bridges under it.
    pub(crate) fn lost_uplink(&self, host: &HostSide<'_>) -> Option<Loss> {
        let own = self.checkpoint.netfix.as_ref()?;
        snapshot_quality::uplink_loss(&own.state, own.beside(&self.answers), host)
    }

    /// What the pod has lost of its links and addresses, or of the host's links under it: of a pod with a table that is not read
    /// whole that is known all the same. The calling thread is inside its namespace.
    pub(crate) fn lost_claims(
        &mut self,
        (host, side): (&Host, &HostSide<'_>),
    ) -> Result<Option<Loss>, Error> {
        let now = self.pod.read(host, |socket, view| {
            state::links_and_addresses(socket, Some(view))
        })?;
        let lost = snapshot_quality::loss(&self.claims().links_and_addresses(), &[], &now);
        Ok(lost.or_else(|| self.lost_on_host(side)))
    }

    /// Whether a record from elsewhere is used for it.
    pub(crate) fn is_from_elsewhere(&self) -> bool {
        self.origin != RecordOrigin::Requested
    }

    /// Reads the pod's namespace, in which the calling thread must be, and from its sysfs only what its record has: mounting one
    /// takes as long as all the rest.
    pub(crate) fn observe_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        let state = self.pod.observe_links_inside(host)?;
        if self.pod.kept().is_some() {
            return Ok(state);
        }
        self.find_daemons();
        let needs = Needs::all_in_pod(&state.links);
        self.complete_inside(state, needs)
    }

    /// Reads the rest of the pod's state, as far as it is needed; its links were read a moment ago.
    pub(crate) fn complete_inside(
        &mut self,
        links: NetState,
        needs: Needs,
    ) -> Result<NetState, Error> {
        let mut state = state::complete(self.pod.socket()?, links, needs)?;
        let recorded = self.claims();
        if recorded.links.iter().any(|link| !link.sysfs.is_empty()) {
            sysfs::complete(&mut state.links)?;
        }
        if recorded.has_nics() {
            devices::complete(&mut state);
        }
        Ok(state)
    }

    /// Whether the pod has no links but those of the names `new`, and its record nothing but links, addresses, routes and rules.
    pub(crate) fn has_only_links(&self, links: &NetState, new: &[IfName]) -> bool {
        let has_other = links
            .links_but_loopback()
            .any(|link| !new.contains(&link.name));
        if self.partial.is_some() || has_other {
            return false;
        }
        let recorded = self.recorded().0;
        Needs::of(&recorded, &links.links) == Needs::default()
            && recorded.links.iter().all(|link| {
                link.sysfs.is_empty() && link.nic.is_none() && sysctl::are_initial(&link.sysctls)
            })
    }

    /// The state of such a pod if the links `new` have nothing but their settings yet, and all else is as recorded.
    pub(crate) fn expected(&self, links: NetState, new: &[IfName]) -> NetState {
        let recorded = self.recorded().0;
        let is_old = |dev: &IfName| !new.contains(dev);
        NetState {
            addresses: recorded
                .addresses
                .iter()
                .filter(|address| is_old(&address.dev))
                .cloned()
                .collect(),
            routes: recorded
                .routes
                .iter()
                .filter(|route| route.devs().into_iter().all(is_old))
                .cloned()
                .collect(),
            rules: recorded.rules.clone(),
            ..links
        }
    }

    /// What must be read, with these links, to see whether something of its record is missing.
    pub(crate) fn needs(&self, links: &NetState) -> Needs {
        Needs::of(&self.recorded().0, &links.links)
    }

    /// The MACs and addresses that its record gives the pod.
    pub(crate) fn claims(&self) -> Cow<'_, NetState> {
        match (&self.partial, &self.checkpoint.netfix) {
            (Some(partial), _) => {
                let nothing = NetState::default();
                Cow::Owned(plan::complete(partial, &nothing, &[], &HostLinks::default()).0)
            }
            (None, Some(extension)) => Cow::Borrowed(&extension.state),
            (None, None) => Cow::Owned(NetState::default()),
        }
    }

    /// The state that the pod should have, and what its source leaves out; `made` are links that this run created.
    pub(crate) fn wanted(
        &self,
        now: &NetState,
        links: &HostLinks,
        made: &[IfName],
    ) -> (Cow<'_, NetState>, Vec<Problem>) {
        let Some(partial) = &self.partial else {
            return self.recorded();
        };
        let (wanted, problems) = plan::complete(partial, now, made, links);
        (Cow::Owned(wanted), problems)
    }

    /// The state in its checkpoint; nothing where the rest of a large one cannot be read.
    fn recorded(&self) -> (Cow<'_, NetState>, Vec<Problem>) {
        match self.whole.as_ref().map(Whole::state) {
            Some(Ok(state)) => (Cow::Borrowed(state), Vec::new()),
            Some(Err(problem)) => {
                let problem = problem.clone().of(&self.info.id);
                (Cow::Owned(NetState::default()), vec![problem])
            }
            None => (self.claims(), Vec::new()),
        }
    }

    /// What is missing in the pod, and the steps that restore it.
    /// With the settings that a new link of the pod starts with, the plan continues after the creation of links.
    pub(crate) fn plan(
        &self,
        state: &NetState,
        new_link: Option<&Sysctls>,
        links: &HostLinks,
        made: &[IfName],
    ) -> Plan {
        let (wanted, problems) = self.wanted(state, links, made);
        let observed = Observed {
            state,
            new_link,
            age: self.age,
            daemons: self.daemons,
            nic: self.nic,
            made,
            kept_indexes: None,
        };
        let mut plan = plan::pod(&wanted, &self.withheld, observed, links);
        plan.problems.extend(problems);
        plan.problems.extend(self.contested.iter().cloned());
        plan
    }

    /// The links on links of the host that are missing among those in `state`.
    pub(crate) fn missing(&self, state: &NetState, links: &HostLinks) -> Vec<Link> {
        let (wanted, _) = self.wanted(state, links, &[]);
        plan::missing_links(&wanted, &self.withheld, state, links)
    }

    /// The pod as its record describes it.
    pub(crate) fn summary(&self) -> PodSummary {
        let summary = summary_of(&self.info, &self.checkpoint);
        let interfaces = match (&self.partial, &self.whole) {
            (Some(partial), _) => partial.interfaces(),
            (None, Some(whole)) => interfaces(
                whole
                    .known()
                    .map_or_else(|| self.claims(), Cow::Borrowed)
                    .as_ref(),
            ),
            (None, None) => return summary,
        };
        PodSummary {
            interfaces,
            ..summary
        }
    }
}

/// Gives the interfaces of incomplete records their parent where the record names none. Only libcni's entries have one then: that
/// of the host's default route.
pub(super) fn assume_parents(
    matched: &mut [Matched],
    parent: Option<&IfName>,
    recorded: Option<&NetState>,
    host: &NetState,
) -> Result<Vec<Problem>, Problem> {
    let mut problems = Vec::new();
    for by_plugins in [false, true] {
        let parents = AssumedParent::new(parent, by_plugins, recorded, host)?;
        let of_them = matched
            .iter_mut()
            .filter(|one| (one.origin == RecordOrigin::CniCache) == by_plugins);
        let partials = of_them.filter_map(|one| one.partial.as_mut());
        problems.extend(parents.assign(partials.flat_map(|partial| &mut partial.attachments)));
    }
    Ok(problems)
}
