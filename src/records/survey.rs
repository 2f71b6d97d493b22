//! What `restore`, `check`, `plan`, `diff` and `show` start from: the stored records beside the running pods, and the
//! host's state under them. Whatever can be refused is refused here, before the first change.

use std::collections::BTreeSet;
use std::path::Path;
use std::slice;

use crate::inventory::Inventory;
use crate::inventory::kubelet_endpoint;
use crate::inventory::observe;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::private;
use crate::inventory::visit::visit;
use crate::matching::Selection;
use crate::matching::claims::{Claimant, contests};
use crate::matching::host_baseline::HostBaseline;
use crate::matching::host_parents::{self, AssumedParent};
use crate::model::problem::MatchingCause;
use crate::model::{
    IfName, LinkKind, NetState, NodeIdentity, NodeState, PodInfo, PodSummary, Problem,
};
use crate::records::cni_cache;
use crate::records::cni_cache::Cache;
use crate::records::contest;
use crate::records::contest::CNI_CACHE;
use crate::records::matched::Matched;
use crate::records::pair::{Paired, pair};
use crate::records::rejected::{Reason, Rejected};
use crate::records::stored::{Stored, age, load_node};
use crate::refusal::Refusal;
use crate::runtime::{self, Answer};
use crate::store::Store;

/// The stored records beside the running pods. Nothing is changed yet.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub node: NodeIdentity,
    pub host: Host,
    /// The host's state as it was recorded in this boot.
    pub node_state: Option<NodeState>,
    pub baseline: HostBaseline,
    /// Pods that have a record.
    pub matched: Vec<Matched>,
    /// Records that are not used.
    pub rejected: Vec<Rejected>,
    /// Selected running pods without a record.
    pub unmatched: Vec<Unmatched>,
    /// Pods whose record cannot be read.
    pub damaged: Vec<PodInfo>,
    /// Files that cannot be read and are of unknown pods.
    pub damaged_files: usize,
    /// Claims of pods without a record that others make too.
    pub contested: Vec<Problem>,
    pub problems: Vec<Problem>,
}

/// A selected running pod without a record.
#[derive(Debug)]
pub(crate) struct Unmatched {
    pub pod: Pod,
    /// Its links and addresses, where they could be read.
    pub state: NetState,
    pub finding: Finding,
    /// Whether a record that is not used has its id: then it is a pod.
    pub has_record: bool,
}

/// What a missing record means for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It belongs to no pod.
    Private,
    /// It had no interface when the node was last recorded, or its damaged record is reported already.
    Nothing,
    /// It has no interface: what it lost is unknown.
    Bare,
    /// It has interfaces, or could not be read.
    HasInterfaces,
}

/// Why nothing of a pod can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Unusable,
    NoCheckpoint,
}

impl AsMut<Pod> for Unmatched {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.pod
    }
}

impl Unmatched {
    pub(crate) fn problem(&self) -> Option<Problem> {
        let path = self.pod.netns.shown();
        let problem = match self.finding {
            Finding::Private | Finding::Nothing => return None,
            Finding::Bare => MatchingCause::BareWithoutCheckpoint.error(path),
            Finding::HasInterfaces => MatchingCause::WithoutCheckpoint.warning(path),
        };
        Some(problem.of(&self.pod.info.id))
    }
}

/// The records of a source.
pub(crate) enum Records {
    Stored(Stored),
    Cache(Cache),
}

/// Surveys what is stored beside an inventory that was made before.
pub(crate) fn survey(
    inventory: Inventory,
    stored: Stored,
    selection: &Selection,
    store: &Store,
) -> Result<Surveyed, Refusal> {
    let mut problems = Vec::new();
    let node_state = load_node(store, &mut problems);
    let records = Records::Stored(stored);
    let cni_cache = Path::new(CNI_CACHE);
    let sources = contest::Sources { store, cni_cache };
    survey_from(
        inventory, records, node_state, None, selection, sources, problems,
    )
}

/// `problems` are those of the node's state.
pub(crate) fn survey_from(
    inventory: Inventory,
    records: Records,
    node_state: Option<NodeState>,
    parent: Option<&IfName>,
    selection: &Selection,
    sources: contest::Sources<'_>,
    mut problems: Vec<Problem>,
) -> Result<Surveyed, Refusal> {
    let recorded = node_state.as_ref().map(|recorded| &recorded.state);
    let by_plugins = matches!(records, Records::Cache(_));
    let parents = AssumedParent::new(parent, by_plugins, recorded, &inventory.host.state)?;
    let Inventory {
        node,
        host,
        pods,
        closed,
        problems: found,
        answer,
    } = inventory;
    problems.extend(found);
    let mut paired = match records {
        Records::Stored(stored) => pair(stored, pods, &closed, &node, selection),
        Records::Cache(cache) => {
            cni_cache::pair(cache, pods, &closed, &node, answer.as_ref(), selection)
        }
    };
    problems.append(&mut paired.problems);
    let partials = paired.matched.iter_mut().filter_map(|m| m.partial.as_mut());
    problems.extend(parents.assign(partials.flat_map(|partial| &mut partial.attachments)));
    let mut unmatched = unmatched(&mut paired, &host, node_state.as_ref());
    let known = paired.matched.iter().map(|matched| &matched.info);
    mark_private(&mut unmatched, &known.collect::<Vec<_>>(), answer.as_ref());
    let baseline = baseline(node_state.as_ref(), &paired.matched, selection, &host);
    let partial = paired.matched.iter().find(|m| m.partial.is_some());
    problems.extend(partial.into_iter().flat_map(|matched| {
        host_parents::unknown_from(&matched.info.source, &baseline, &host.state)
    }));
    let contested = settle_claims(
        &mut paired.matched,
        &unmatched,
        (&host, &baseline.state),
        &node,
        sources,
    );
    let Paired {
        matched,
        rejected,
        damaged,
        damaged_files,
        ..
    } = paired;
    Ok(Surveyed {
        node,
        host,
        node_state,
        baseline,
        matched,
        rejected,
        unmatched,
        damaged,
        damaged_files,
        contested,
        problems,
    })
}

/// What missing records mean: a pod without any interface may have lost it.
fn unmatched(paired: &mut Paired, host: &Host, recorded: Option<&NodeState>) -> Vec<Unmatched> {
    let mut pods = std::mem::take(&mut paired.unmatched);
    let (damaged, rejected) = (&paired.damaged, &paired.rejected);
    let known_empty = recorded.map(|node| node.empty.as_slice());
    let known_empty = known_empty.unwrap_or_default();
    let states = observe::observe_claims(&mut pods, host);
    let finding = |(pod, state): (Pod, Result<NetState, _>)| {
        let is_link = |state: &NetState| {
            let mut links = state.links.iter();
            links.any(|link| link.kind != LinkKind::Loopback)
        };
        let is_bare = state.as_ref().is_ok_and(|state| !is_link(state));
        let was_empty = known_empty.iter().any(|known| known.is_same(&pod.identity));
        let is_damaged = damaged.iter().any(|info| info.id == pod.info.id);
        let finding = match is_bare {
            _ if is_damaged => Finding::Nothing,
            true if was_empty => Finding::Nothing,
            true => Finding::Bare,
            false => Finding::HasInterfaces,
        };
        let is_rejected = rejected.iter().any(|one| one.pod.info.id == pod.info.id);
        Unmatched {
            has_record: is_damaged || is_rejected,
            pod,
            state: state.unwrap_or_default(),
            finding,
        }
    };
    pods.into_iter().zip(states).map(finding).collect()
}

/// Marks the namespaces that belong to no pod, as far as this answer shows it; `known` are the pods with a record.
fn mark_private(unmatched: &mut [Unmatched], known: &[&PodInfo], answer: Option<&Answer>) {
    let is_bare = |one: &Unmatched| {
        // The state of one that could not be read is empty.
        let was_read = !one.state.links.is_empty();
        private::may_be(&one.pod, was_read.then_some(&one.state)) && !one.has_record
    };
    let pods = unmatched.iter().map(|one| (&one.pod, is_bare(one)));
    let private = private::among(pods, known, answer);
    for (one, is_private) in unmatched.iter_mut().zip(private) {
        if is_private {
            one.finding = Finding::Private;
        }
    }
}

fn baseline(
    recorded: Option<&NodeState>,
    matched: &[Matched],
    selection: &Selection,
    host: &Host,
) -> HostBaseline {
    let extensions = matched.iter().filter_map(|m| m.checkpoint.netfix.as_ref());
    let stacks: Vec<_> = extensions.map(|e| e.stack.as_slice()).collect();
    let partials = matched.iter().filter_map(|m| m.partial.as_ref());
    let attachments = partials.flat_map(|partial| &partial.attachments);
    let named = attachments.filter_map(|attachment| attachment.parent.clone());
    HostBaseline::new(
        recorded.map(|recorded| (recorded.state.clone(), age(&recorded.created))),
        &stacks,
        named.collect(),
        selection.is_everything(),
        &host.state,
    )
}

/// Decides who gets what several of the records, of the pods without one and the host claim; returns the findings of the
/// pods without a record.
fn settle_claims(
    matched: &mut [Matched],
    unmatched: &[Unmatched],
    (host, recorded): (&Host, &NetState),
    node: &NodeIdentity,
    sources: contest::Sources<'_>,
) -> Vec<Problem> {
    let of_record = |one: &Matched| {
        let netns = Path::new(&one.checkpoint.netns);
        Claimant::pod(&one.info, &one.pod.identity, netns, &one.claims())
    };
    let running = unmatched.iter().map(|one| {
        let netns = &one.pod.netns.path;
        Claimant::pod(&one.pod.info, &one.pod.identity, netns, &one.state).now(&one.state)
    });
    let of_records = matched.iter().map(of_record);
    let host_claims = Claimant::host(recorded);
    let mut claimants: Vec<_> = of_records.chain(running).chain([host_claims]).collect();
    let contests = contests(&claimants);
    let holders: BTreeSet<usize> = contests
        .iter()
        .flat_map(|one| one.holders.clone())
        .collect();
    for at in holders {
        let pod = matched.get_mut(at).map(|one| slice::from_mut(&mut one.pod));
        let state = pod.and_then(|pod| observe::observe_claims(pod, host).pop());
        // One that cannot be read is reported where it is restored.
        if let Some(Ok(state)) = state {
            claimants[at] = claimants[at].clone().now(&state);
        }
    }
    let mut others = Vec::new();
    for ruling in contest::decide(&contests, &claimants, node, sources) {
        match matched.get_mut(ruling.at) {
            Some(one) => {
                one.contested.push(ruling.problem);
                one.withheld.extend(ruling.withheld);
            }
            None => others.push(ruling.problem),
        }
    }
    others
}

/// Queries the runtimes about namespaces that have lost everything or never had anything. To be called when all other
/// work is done: only messages depend on it. `known` are the pods with a record.
pub(crate) fn settle_bare(
    unmatched: &mut [Unmatched],
    known: &[&PodInfo],
    runtimes: &runtime::Config,
) {
    if unmatched.iter().all(|one| one.finding != Finding::Bare) {
        return;
    }
    // Without an answer the finding stays.
    if let Ok(answer) = kubelet_endpoint::query(runtimes) {
        answer.introduce(unmatched.iter_mut().map(|one| &mut one.pod));
        mark_private(unmatched, known, Some(&answer));
    }
}

impl Surveyed {
    /// Where no pod has a usable record: whether that is because nothing is stored for the selection, or because no
    /// record may be used here, being from another machine or boot.
    pub(crate) fn is_refused(&self) -> bool {
        use Reason::{OtherBoot, OtherMachine};
        let may_not = |one: &Rejected| matches!(one.reason, OtherMachine | OtherBoot);
        let is_readable = self.damaged.is_empty() && self.damaged_files == 0;
        is_readable && self.rejected.iter().all(may_not)
    }

    /// Reads also the rest of the pods without a record.
    pub(crate) fn read_unmatched(&mut self) {
        let states = visit(&mut self.unmatched, |one| {
            one.pod.observe_inside(&self.host)
        });
        for (one, state) in self.unmatched.iter_mut().zip(states) {
            if let Ok(Ok(state)) = state {
                one.state = state;
            }
        }
    }

    /// The pods of which nothing can be restored.
    pub(crate) fn lost_pods(&self) -> Vec<(PodSummary, Lost)> {
        let rejected = self.rejected.iter().map(|one| one.pod.clone());
        let damaged = self.damaged.iter().map(|info| PodSummary::bare(info, None));
        let unusable = rejected.chain(damaged).map(|pod| (pod, Lost::Unusable));
        let bare = self
            .unmatched
            .iter()
            .filter(|one| one.finding == Finding::Bare);
        let bare = bare.map(|one| PodSummary::bare(&one.pod.info, Some(&one.pod.netns.path)));
        unusable
            .chain(bare.map(|pod| (pod, Lost::NoCheckpoint)))
            .collect()
    }

    /// Everything to report beside the pods that have a record.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let of_rejected = self.rejected.iter().flat_map(|one| &one.problems);
        let all = self
            .problems
            .iter()
            .chain(of_rejected)
            .chain(&self.contested);
        let of_unmatched = self.unmatched.iter().filter_map(Unmatched::problem);
        all.cloned().chain(of_unmatched).collect()
    }
}
