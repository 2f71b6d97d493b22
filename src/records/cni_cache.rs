//! Reads libcni's cache, and pairs its entries with the running pods that they are about: all of them with `--source cni-cache`, else
//! those that have no other record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cni::{self, CacheEntry};
use crate::inventory::observe::Pod;
use crate::inventory::{Inventory, leads_to};
use crate::matching::{
    Machine, PodFacts, Rejection, Selection, StoredRecord, Verdict, match_records,
};
use crate::model::pod::cni_result::CniResult;
use crate::model::pod::partial::Attachment;
use crate::model::problem::ForeignCause;
use crate::model::{
    Checkpoint, IfName, Loss, LossCause, NetState, NodeIdentity, Partial, PodInfo, PodSummary,
    Problem,
};
use crate::plan::{self, HostLinks, snapshot_quality};
use crate::records::matched::{Matched, RecordOrigin};
use crate::records::pair::{Damaged, Paired, take};
use crate::records::rejected::{Reason, Rejected};
use crate::refusal::Refusal;
use crate::runtime::RuntimeAnswer;
use crate::store;

/// The cache as it was read.
#[derive(Debug)]
pub(crate) struct Cache {
    /// By sandbox id.
    sandboxes: BTreeMap<String, Vec<CacheEntry>>,
    /// Files that cannot be used, and why.
    damaged: Vec<(PathBuf, store::StoreError)>,
}

/// The object of problems of the whole cache.
pub(super) const CACHE: &str = "cni-cache";

/// What the cache has of one running pod.
pub(super) struct CachedPod {
    pub info: PodInfo,
    pub problems: Vec<Problem>,
    partial: Partial,
}

/// Reads it, or refuses where there is none.
pub(crate) fn read(folder: &Path) -> Result<Cache, Refusal> {
    let files = store::cni_cache(folder).map_err(|error| {
        if error.is_missing() {
            let cause = ForeignCause::NoCache {
                error: error.to_string(),
            };
            cause.error(error.object())
        } else {
            error.problem()
        }
    })?;
    let mut cache = Cache {
        sandboxes: BTreeMap::new(),
        damaged: Vec::new(),
    };
    for (path, text) in files {
        let parsed = text.and_then(|text| {
            cni::parse(&text).map_err(|reason| store::StoreError::corrupt(&path, reason))
        });
        match parsed {
            Ok(Some(entry)) => cache
                .sandboxes
                .entry(entry.info.sandbox.clone().unwrap_or_default())
                .or_default()
                .push(entry),
            Ok(None) => {}
            Err(error) => cache.damaged.push((path, error)),
        }
    }
    Ok(cache)
}

/// Pairs the cache with the running pods, and takes the pods out of the inventory.
pub(crate) fn pair(cache: Cache, inventory: &mut Inventory, selection: &Selection) -> Paired {
    let Cache { sandboxes, damaged } = cache;
    let groups: Vec<Vec<CacheEntry>> = sandboxes.into_values().collect();
    let records: Vec<StoredRecord> = groups.iter().map(|entries| record(entries)).collect();
    let machine = inventory.machine(&records);
    let matching = match_records(&records, &machine, selection);
    let mut pods: Vec<Option<Pod>> = inventory.pods.drain(..).map(Some).collect();
    let mut paired = Paired {
        unmatched: take(&mut pods, matching.unmatched),
        ..Paired::default()
    };
    let mut gone = 0;
    for ((entries, record), verdict) in groups.into_iter().zip(&records).zip(matching.verdicts) {
        match verdict {
            Verdict::Matched(at) => {
                if let Some(pod) = pods[at].take() {
                    paired.use_entries(entries, pod);
                }
            }
            Verdict::Rejected(Rejection::Ambiguous { pod, records: all }) => {
                // Once for the pod, with its first record.
                if records.get(all[0]) == Some(record) {
                    paired
                        .rejected
                        .push(ambiguous(&machine, pod, &all, &records));
                }
            }
            Verdict::Rejected(Rejection::PodReplaced { pod }) => {
                let then = record.info.clone();
                let problem = ForeignCause::CacheOfFormerPod { then }.info(CACHE);
                paired.problems.push(problem.of(&machine.pods[pod].info.id));
            }
            // The namespace itself is reported.
            Verdict::Rejected(Rejection::NetnsClosed) | Verdict::NotSelected => {}
            Verdict::Rejected(_) => gone += 1,
        }
    }
    // Of a selection, netfix does not know whether the other pods run.
    if gone > 0 && selection.is_everything() {
        let problem = ForeignCause::CacheOfGonePods { pods: gone }.info(CACHE);
        paired.problems.push(problem);
    }
    let answer = inventory.answer.as_ref();
    for (path, error) in &damaged {
        paired.report_damaged(path, error, &machine.pods, answer, selection);
    }
    let other_plugins = paired.other_plugins();
    paired.problems.extend(other_plugins);
    paired
}

/// The record that the entries of one sandbox are.
fn record(entries: &[CacheEntry]) -> StoredRecord {
    let paths: BTreeSet<&String> = entries.iter().flat_map(|entry| &entry.paths).collect();
    StoredRecord {
        info: entries[0].info.clone(),
        paths: paths.into_iter().map(PathBuf::from).collect(),
        proof: None,
    }
}

fn ambiguous(machine: &Machine, pod: usize, all: &[usize], records: &[StoredRecord]) -> Rejected {
    let pod = &machine.pods[pod];
    let sandboxes = all
        .iter()
        .filter_map(|at| records[*at].info.sandbox.clone())
        .collect();
    let cause = ForeignCause::AmbiguousSandboxes { sandboxes };
    Rejected {
        pod: PodSummary::bare(&pod.info, pod.paths.first().map(PathBuf::as_path)),
        reason: Reason::NetnsGone(cause.into()),
    }
}

impl Cache {
    /// The places of the pods that entries are about, each with the sandbox of these.
    pub(super) fn find(&self, node: &NodeIdentity, pods: &[&Pod]) -> Vec<(usize, String)> {
        let groups = self.sandboxes.values();
        let records: Vec<StoredRecord> = groups.map(|entries| record(entries)).collect();
        let machine = Machine {
            node: node.clone(),
            pods: pods.iter().map(|pod| pod.facts()).collect(),
            closed: Vec::new(),
            leads_to: leads_to(&records),
        };
        let matching = match_records(&records, &machine, &Selection::everything());
        let verdicts = self.sandboxes.keys().zip(matching.verdicts);
        verdicts
            .filter_map(|(sandbox, verdict)| match verdict {
                Verdict::Matched(at) => Some((at, sandbox.clone())),
                Verdict::Rejected(_) | Verdict::NotSelected => None,
            })
            .collect()
    }

    /// What a pod in this state lacks of what it has of a sandbox: an interface that netfix can create, or what that had.
    pub(super) fn lacks(&self, sandbox: &str, info: &PodInfo, now: &NetState) -> Option<Loss> {
        let entries = self.sandboxes.get(sandbox)?;
        let (mut partial, _) = partial(entries.clone(), info);
        partial.attachments.retain(Attachment::can_be_made);
        let mut all = partial.attachments.iter();
        if let Some(gone) = all.find(|one| now.link(&one.ifname).is_none()) {
            let link = format!("{} {}", gone.made.name(), gone.ifname);
            let what = LossCause::LinkGone;
            return Some(Loss { link, what });
        }
        let (wanted, _) = plan::complete(&partial, now, &[], &HostLinks::default());
        snapshot_quality::loss(&wanted, &[], now)
    }

    /// What each of these pods, in these states, lacks of it.
    pub(crate) fn lacking(
        &self,
        node: &NodeIdentity,
        pods: &[(&Pod, &NetState)],
    ) -> Vec<Option<Loss>> {
        let mut lacking = vec![None; pods.len()];
        let all: Vec<&Pod> = pods.iter().map(|(pod, _)| *pod).collect();
        for (at, sandbox) in self.find(node, &all) {
            let (pod, now) = pods[at];
            lacking[at] = self.lacks(&sandbox, &pod.info, now);
        }
        lacking
    }

    /// Takes what it has of a sandbox, for the pod that runs there.
    pub(super) fn take(&mut self, sandbox: &str, running: &PodInfo) -> CachedPod {
        let entries = self.sandboxes.remove(sandbox).unwrap_or_default();
        CachedPod::new(entries, running)
    }
}

impl CachedPod {
    fn new(entries: Vec<CacheEntry>, running: &PodInfo) -> Self {
        let info = info(&entries, running);
        let (partial, problems) = partial(entries, &info);
        Self {
            info,
            problems,
            partial,
        }
    }

    /// Whether netfix can create one of its interfaces.
    pub(super) fn can_be_made(&self) -> bool {
        let mut attachments = self.partial.attachments.iter();
        attachments.any(Attachment::can_be_made)
    }

    /// As the record of that pod; `None` where it names no interface that netfix can use.
    pub(super) fn matched(self, pod: Pod) -> Option<Matched> {
        let checkpoint = Checkpoint {
            netns: pod.netns.path.as_path().into(),
            podname: self.info.name.clone().unwrap_or_default(),
            sandbox: self.info.sandbox.clone().unwrap_or_default(),
            ifname: self.partial.attachments.first()?.ifname.clone(),
            result: CniResult::default(),
            netfix: None,
        };
        Some(Matched {
            partial: Some(self.partial),
            ..Matched::new(self.info, (checkpoint, None), pod, RecordOrigin::CniCache)
        })
    }
}

impl Paired {
    fn use_entries(&mut self, entries: Vec<CacheEntry>, pod: Pod) {
        let cached = CachedPod::new(entries, &pod.info);
        if cached.partial.attachments.is_empty() {
            return self.rejected.push(Rejected {
                pod: PodSummary::bare(&cached.info, Some(&pod.netns.path)),
                reason: Reason::Unusable(cached.problems),
            });
        }
        self.problems.extend(cached.problems.iter().cloned());
        self.matched.extend(cached.matched(pod));
    }

    /// Reports a file that cannot be used, with its pod if the file name identifies one.
    fn report_damaged(
        &mut self,
        path: &Path,
        error: &store::StoreError,
        running: &[PodFacts],
        answer: Option<&RuntimeAnswer>,
        selection: &Selection,
    ) {
        let file = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let is_of = |info: &&PodInfo| {
            let sandbox = info.sandbox.as_deref();
            sandbox.is_some_and(|id| is_named(&file, id))
        };
        if let Some(matched) = self.matched.iter().find(|one| is_of(&&one.info)) {
            self.problems.push(error.problem().of(&matched.info.id));
            return;
        }
        if let Some(info) = running.iter().map(|pod| &pod.info).find(is_of) {
            if selection.wants_pod(info) {
                let problem = error.problem().of(&info.id);
                if self.unmatched.iter().any(|pod| pod.info.id == info.id) {
                    let info = info.clone();
                    self.damaged.push(Damaged { info, problem });
                } else {
                    self.problems.push(problem);
                }
            }
            return;
        }
        let is_gone = answer.is_some_and(|answer| {
            let mut sandboxes = answer.sandboxes.iter();
            !answer.queried.is_empty() && !sandboxes.any(|sandbox| is_named(&file, &sandbox.id))
        });
        if is_gone {
            self.problems
                .push(ForeignCause::CacheFileOfGonePod.info(file));
        } else {
            self.damaged_files += 1;
            self.problems.push(error.problem());
        }
    }

    /// Interfaces that other plugins made: whether the loss of a NIC removes them is unknown.
    fn other_plugins(&self) -> Option<Problem> {
        let plugins: BTreeSet<&str> = self
            .matched
            .iter()
            .filter_map(|matched| matched.partial.as_ref())
            .flat_map(|partial| &partial.attachments)
            .filter(|attachment| !attachment.can_be_made())
            .map(|attachment| attachment.made.name())
            .collect();
        if plugins.is_empty() {
            return None;
        }
        let plugins = plugins.into_iter().map(str::to_owned).collect();
        Some(ForeignCause::OtherPlugins { plugins }.info(CACHE))
    }
}

/// The pod: the id as everywhere else, the names as the runtime gave them to the plugins.
fn info(entries: &[CacheEntry], running: &PodInfo) -> PodInfo {
    let mut info = PodInfo {
        source: cni::SOURCE.to_owned(),
        ..running.clone()
    };
    for PodInfo {
        namespace,
        name,
        uid,
        sandbox,
        ..
    } in entries.iter().map(|entry| entry.info.clone())
    {
        info.namespace = namespace.or(info.namespace);
        info.name = name.or(info.name);
        info.uid = uid.or(info.uid);
        info.sandbox = sandbox;
    }
    info
}

/// One attachment for each interface of the pod. A plugin that calls others leaves its own entry beside theirs.
fn partial(entries: Vec<CacheEntry>, info: &PodInfo) -> (Partial, Vec<Problem>) {
    let mut by_name: BTreeMap<IfName, Vec<CacheEntry>> = BTreeMap::new();
    for entry in entries {
        by_name
            .entry(entry.attachment.ifname.clone())
            .or_default()
            .push(entry);
    }
    let (mut attachments, mut problems) = (Vec::<Attachment>::new(), Vec::new());
    for (ifname, entries) in by_name {
        let (mut made, others): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|entry| entry.attachment.can_be_made());
        if made.len() > 1 {
            let networks = made.into_iter().map(|entry| entry.network).collect();
            let cause = ForeignCause::TwoNetworks { networks };
            problems.push(cause.error(&ifname).of(&info.id));
            continue;
        }
        let one = made.pop().or_else(|| others.into_iter().next());
        attachments.extend(one.map(|entry| entry.attachment));
    }
    (Partial { attachments }, problems)
}

/// Whether a file of the cache (`<network>-<sandbox>-<interface>`) is named after that sandbox.
fn is_named(file: &str, sandbox: &str) -> bool {
    !sandbox.is_empty() && file.contains(&format!("-{sandbox}-"))
}
