//! What `restore`, `check`, `plan`, `diff` and `show` start from: the stored records beside the running pods, and the
//! host's state under them. Whatever can be refused is refused here, before the first change.

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;

use crate::inventory::Inventory;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::pods::observe_claims;
use crate::inventory::private;
use crate::inventory::visit::visit;
use crate::kernel::Error;
use crate::matching::Selection;
use crate::matching::host_baseline::HostBaseline;
use crate::matching::host_parents;
use crate::model::pod::empty::{Evidence, needs_none};
use crate::model::{
    CutOff, Hardware, IfName, LinkGraph, LinkKind, NetState, NodeIdentity, NodeState, PodInfo,
    Problem,
};
use crate::records::claims::settle_claims;
use crate::records::cni_cache;
use crate::records::cni_cache::Cache;
use crate::records::contest;
use crate::records::contest::CNI_CACHE;
use crate::records::evidence::Witnesses;
use crate::records::fallback::{Fallback, FallbackRequest, FallbackSearch};
use crate::records::matched::{Matched, assume_parents};
use crate::records::pair::{Paired, pair};
use crate::records::rejected::{GoneRule, Reason, Rejected};
use crate::records::stored::{Stored, age, load_node};
use crate::refusal::Refusal;
use crate::runtime::RuntimeAnswer;
use crate::store::Store;

/// The stored records beside the running pods. Nothing is changed yet.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub node: NodeIdentity,
    pub host: Host,
    /// The host's state as it was recorded in this boot.
    pub node_state: Option<NodeState>,
    pub baseline: HostBaseline,
    /// Whether it is about some of the pods only.
    pub is_selection: bool,
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
    /// Whether libcni's cache, which was not to be used yet, has a pod that has lost everything.
    pub is_in_cache: bool,
    /// What the container runtimes reported; `None` when they were not queried.
    pub(super) answer: Option<RuntimeAnswer>,
    /// Which pods that are gone are no failure.
    pub(super) gone: GoneRule,
}

/// A selected running pod without a record.
#[derive(Debug)]
pub(crate) struct Unmatched {
    pub pod: Pod,
    /// Its links and addresses, where they could be read.
    pub state: NetState,
    pub finding: Finding,
    /// What shows that it should have an interface.
    pub evidence: Option<Evidence>,
    /// Whether a record that is not used has its id: then it is a pod.
    pub has_record: bool,
}

/// What a missing record means for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It belongs to no pod.
    Private,
    /// It needs no interface by the snapshots so far, or its damaged record is reported already.
    Nothing,
    /// It has no interface: what it lost is unknown.
    Bare,
    /// It has interfaces, or could not be read.
    HasInterfaces,
    /// It has interfaces, and reaches nothing.
    CutOff(CutOff),
}

impl AsMut<Pod> for Unmatched {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.pod
    }
}

/// The records of a source.
pub(crate) enum Records {
    Stored(Stored),
    Cache(Cache),
}

/// What a source has of the pods and the host.
pub(crate) struct SourceContents {
    pub records: Records,
    /// The host's state, where it was recorded in this boot.
    pub node: Option<NodeState>,
    /// The problems of the host's state.
    pub problems: Vec<Problem>,
}

/// Surveys what is stored beside an inventory that was made before.
pub(crate) fn survey(
    inventory: Inventory,
    stored: Stored,
    selection: &Selection,
    store: &Store,
    request: FallbackRequest<'_>,
) -> Result<Surveyed, Refusal> {
    let mut problems = Vec::new();
    let contents = SourceContents {
        node: load_node(store, &mut problems)?,
        records: Records::Stored(stored),
        problems,
    };
    let cni_cache = Path::new(CNI_CACHE);
    let sources = contest::Sources { store, cni_cache };
    survey_from(inventory, contents, None, selection, sources, request)
}

/// Surveys what a source has beside the inventory; `parent` is that of interfaces for which the source names none.
pub(crate) fn survey_from(
    mut inventory: Inventory,
    contents: SourceContents,
    parent: Option<&IfName>,
    selection: &Selection,
    sources: contest::Sources<'_>,
    request: FallbackRequest<'_>,
) -> Result<Surveyed, Refusal> {
    let SourceContents {
        records,
        node: node_state,
        mut problems,
    } = contents;
    problems.append(&mut inventory.problems);
    let mut paired = paired_with(records, &mut inventory, selection);
    let (recorded, search) = (node_state.as_ref(), (sources, request));
    let (unmatched, is_in_cache) =
        complete(&mut paired, &mut inventory, recorded, selection, search);
    let Inventory {
        node,
        mut host,
        answer,
        ..
    } = inventory;
    let recorded = node_state.as_ref().map(|recorded| &recorded.state);
    if recorded.is_some_and(NetState::has_nics) || has_devices(&paired.matched) {
        host.read_nics();
    }
    problems.extend([paired.take_problems(), selection.unmatched()].concat());
    paired.follow_packets(&mut host, node_state.as_ref())?;
    let matched = &mut paired.matched;
    problems.extend(assume_parents(matched, parent, recorded, &host.state)?);
    let known = (paired.matched.as_slice(), unmatched.as_slice());
    let mut baseline = baseline(node_state.as_ref(), known, selection, &host);
    problems.extend(unknown(&paired.matched, &baseline, &host.state));
    let contested = settle_claims(
        &mut paired.matched,
        unmatched.iter().map(|one| (&one.pod, &one.state)),
        (&host, &mut baseline.state),
        &node,
        sources,
    );
    Ok(Surveyed {
        node,
        host,
        node_state,
        baseline,
        is_selection: !selection.is_everything(),
        matched: paired.matched,
        rejected: paired.rejected,
        unmatched,
        damaged: paired.damaged.into_iter().map(|one| one.info).collect(),
        damaged_files: paired.damaged_files,
        contested,
        problems,
        is_in_cache,
        gone: GoneRule::new(answer.as_ref()),
        answer,
    })
}

/// Whether records of pods have devices with settings, which a driver may have given back to the host.
fn has_devices(pods: &[Matched]) -> bool {
    let records = pods.iter().filter_map(|one| one.checkpoint.netfix.as_ref());
    let mut links = records.flat_map(|own| &own.state.links);
    links.any(|link| link.nic.is_some())
}

/// Which of the records is about which running pod.
fn paired_with(records: Records, inventory: &mut Inventory, selection: &Selection) -> Paired {
    match records {
        Records::Stored(stored) => pair(stored, inventory, selection),
        Records::Cache(cache) => cni_cache::pair(cache, inventory, selection),
    }
}

/// What a source that knows only a part of its pods lacks.
fn unknown(matched: &[Matched], baseline: &HostBaseline, host: &NetState) -> Vec<Problem> {
    let partial = matched.iter().find(|one| one.partial.is_some());
    partial.map_or_else(Vec::new, |partial| {
        host_parents::unknown_from(&partial.info.source, baseline, host)
    })
}

/// The pods without a record, after the search for records elsewhere; and whether libcni's cache, which is for later, has one of
/// them.
fn complete(
    paired: &mut Paired,
    inventory: &mut Inventory,
    recorded: Option<&NodeState>,
    selection: &Selection,
    (sources, request): (contest::Sources<'_>, FallbackRequest<'_>),
) -> (Vec<Unmatched>, bool) {
    // The user may have named a pod as only a record does that is not at hand yet.
    let is_by_name = request.fallback != Fallback::Nothing
        && paired.matched.is_empty()
        && paired.unmatched.is_empty();
    if is_by_name {
        paired.unmatched = mem::take(&mut paired.unselected);
    }
    let witnesses = Witnesses {
        answer: inventory.answer.as_ref(),
        cni_cache: sources.cni_cache,
    };
    let mut unmatched = unmatched(paired, &inventory.host, recorded, witnesses);
    let known: Vec<_> = paired.matched.iter().map(|matched| &matched.info).collect();
    mark_private(&mut unmatched, &known, inventory.answer.as_ref());
    let search = FallbackSearch {
        request,
        selection,
        sources,
        node: &inventory.node,
        host: &inventory.host,
        recorded,
        paired,
        unmatched: &mut unmatched,
        answer: &mut inventory.answer,
    };
    let is_in_cache = search.run();
    if is_by_name {
        unmatched.clear();
    }
    (unmatched, is_in_cache)
}

/// What missing records mean: a pod without any interface may have lost it.
fn unmatched(
    paired: &mut Paired,
    host: &Host,
    recorded: Option<&NodeState>,
    witnesses: Witnesses<'_>,
) -> Vec<Unmatched> {
    let mut pods = std::mem::take(&mut paired.unmatched);
    let states = observe_claims(&mut pods, host);
    let bare: Vec<bool> = states.iter().map(is_bare).collect();
    let evidence = witnesses.among(&mut pods, &bare);
    let mut unmatched = Vec::with_capacity(pods.len());
    for (((pod, state), is_bare), evidence) in pods.into_iter().zip(states).zip(bare).zip(evidence)
    {
        let id = &pod.info.id;
        let is_damaged = paired.damaged.iter().any(|one| one.info.id == *id);
        let is_rejected = paired.rejected.iter().any(|one| one.pod.info.id == *id);
        let known = recorded.and_then(|node| node.empty(&pod.identity));
        unmatched.push(Unmatched {
            has_record: is_damaged || is_rejected,
            finding: match is_bare {
                _ if is_damaged => Finding::Nothing,
                true if needs_none(known, evidence) => Finding::Nothing,
                true => Finding::Bare,
                false => Finding::HasInterfaces,
            },
            state: state.unwrap_or_default(),
            evidence,
            pod,
        });
    }
    unmatched
}

fn is_bare(state: &Result<NetState, Error>) -> bool {
    let state = state.as_ref();
    state.is_ok_and(|state| state.links_but_loopback().next().is_none())
}

/// Marks the namespaces that belong to no pod, as far as this answer shows it; `known` are the pods with a record.
pub(super) fn mark_private(
    unmatched: &mut [Unmatched],
    known: &[&PodInfo],
    answer: Option<&RuntimeAnswer>,
) {
    let pods = unmatched.iter().map(|one| {
        // The state of one that could not be read is empty.
        let was_read = !one.state.links.is_empty();
        let may_be_private = private::may_be(&one.pod, was_read.then_some(&one.state));
        (&one.pod, may_be_private && !one.has_record)
    });
    let private = private::among(pods, known, answer);
    for (one, is_private) in unmatched.iter_mut().zip(private) {
        if is_private {
            one.finding = Finding::Private;
        }
    }
}

fn baseline(
    recorded: Option<&NodeState>,
    (matched, unmatched): (&[Matched], &[Unmatched]),
    selection: &Selection,
    host: &Host,
) -> HostBaseline {
    let extensions = matched.iter().map(|one| one.checkpoint.netfix.as_ref());
    let extensions: Vec<_> = extensions.flatten().collect();
    let of_records = extensions.iter().map(|extension| &extension.state);
    let links = of_records
        .chain(unmatched.iter().map(|one| &one.state))
        .flat_map(|state| &state.links);
    let devices = links.filter(|link| link.kind == LinkKind::Physical);
    let inside: Vec<&Hardware> = devices.filter_map(|link| link.hardware.as_ref()).collect();
    let partial = matched.iter().filter_map(|one| one.partial.as_ref());
    let named = partial
        .flat_map(|partial| &partial.attachments)
        .filter_map(|attachment| attachment.parent.clone());
    let mut baseline = HostBaseline::new(
        recorded.map(|recorded| (recorded.state.clone(), age(&recorded.stamp()))),
        &extensions,
        named.collect(),
        selection.is_everything().then_some(inside.as_slice()),
        &host.state,
    );
    if let Some(recorded) = recorded {
        baseline.find_broken(&host.state, &recorded.answers.of_host());
    }
    baseline
}

impl Surveyed {
    /// Where no pod has a usable record: whether that is because nothing is stored for the selection, or because no
    /// record may be used here, being from another machine or boot.
    pub(crate) fn is_refused(&self) -> bool {
        use Reason::{OtherBoot, OtherMachine};
        let mut rejected = self.rejected.iter();
        let is_readable = self.damaged.is_empty() && self.damaged_files == 0;
        is_readable && rejected.all(|one| matches!(one.reason, OtherMachine | OtherBoot))
    }

    /// Reads the pods that have a record, once for all that follows.
    pub(crate) fn keep_matched(&mut self) {
        visit(&mut self.matched, |one| {
            // Who needs the state of one that cannot be read tries again, and reports why.
            if let Ok(state) = one.observe_inside(&self.host) {
                one.pod.keep(state);
            }
        });
    }

    /// The links of the host that carry packets of the links which pods have now.
    pub(super) fn used_links(&mut self) -> BTreeSet<IfName> {
        let host = &self.host;
        let states = visit(&mut self.matched, |one| one.pod.observe_links_inside(host));
        let states: Vec<NetState> = states.into_iter().flatten().flatten().collect();
        let graph = LinkGraph::new(&host.state.links);
        let states = states
            .iter()
            .chain(self.unmatched.iter().map(|one| &one.state));
        let links = states.flat_map(|state| graph.under(&state.links));
        links.map(|link| link.name).collect()
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
}
