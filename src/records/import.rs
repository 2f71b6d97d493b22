//! Takes over checkpoints in the format of `i40e_net_fix`, for pods that run.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;

use crate::inventory::Inventory;
use crate::inventory::pods::observe_pods;
use crate::matching::{
    Machine, PodFacts, Rejection, Selection, StoredRecord, Verdict, match_records,
};
use crate::model::problem::ForeignCause;
use crate::model::{Checkpoint, NodeIdentity, PodId, PodInfo, PodSummary, Problem};
use crate::records::stored::summary_of;
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::store::{self, Content, Foreign, Guard, Store};

/// The result of an import.
pub(crate) struct Import {
    pub node: NodeIdentity,
    pub files: Vec<(PodSummary, Imported)>,
    pub problems: Vec<Problem>,
}

/// The result for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Imported {
    /// It is a checkpoint now.
    New,
    /// It was imported before.
    Unchanged,
    /// netfix's own checkpoint of the pod is more complete.
    OwnKept,
    /// Its pod does not run.
    Gone,
    /// It cannot be used, or not be written.
    Failed,
}

/// Imports every file of a folder. Holds the lock until the end.
pub(crate) fn import(
    folder: &Path,
    runtimes: &RuntimeConfig,
    store: &Store,
) -> Result<Import, Refusal> {
    let files = read(folder, store)?;
    let guard = store.lock("import")?;
    let selection = Selection::everything();
    let mut inventory = Inventory::open(&selection)?;
    inventory.attribute(runtimes, &selection)?;
    let stored = store.load_all()?.into_iter().collect();
    let problems = std::mem::take(&mut inventory.problems);
    let records: Vec<StoredRecord> = files.iter().filter_map(record).collect();
    let machine = inventory.machine(&records);
    let mut verdicts = match_records(&records, &machine, &selection)
        .verdicts
        .into_iter();
    let mut importer = Importer {
        guard,
        stored,
        machine,
        import: Import {
            node: inventory.node.clone(),
            files: Vec::new(),
            problems,
        },
        taken: Vec::new(),
    };
    for file in files {
        match file.content {
            Ok(content) => {
                let verdict = verdicts.next().unwrap_or(Verdict::NotSelected);
                importer.file(&content, &verdict, &records);
            }
            Err(error) => importer.damaged(&file.name, &error),
        }
    }
    let Importer {
        mut import, taken, ..
    } = importer;
    import.problems.extend(hint(&mut inventory, &taken));
    Ok(import)
}

/// Every file of the folder, or why there is nothing to import.
fn read(folder: &Path, store: &Store) -> Result<Vec<Foreign>, Problem> {
    let object = folder.display().to_string();
    if store.is_at(folder) {
        return Err(ForeignCause::ImportOfOwnFolder.error(object));
    }
    match store::foreign(folder) {
        Ok(files) if files.is_empty() => Err(ForeignCause::ImportOfEmptyFolder.error(object)),
        Ok(files) => Ok(files),
        Err(error) if error.is_missing() => Err(ForeignCause::ImportOfNoFolder.error(object)),
        Err(error) => Err(error.problem()),
    }
}

fn record(file: &Foreign) -> Option<StoredRecord> {
    let Content { id, checkpoint, .. } = file.content.as_ref().ok()?;
    Some(StoredRecord::of_checkpoint(&checkpoint.pod(id), checkpoint))
}

struct Importer {
    guard: Guard,
    stored: BTreeMap<PodId, Result<Checkpoint, store::StoreError>>,
    machine: Machine,
    import: Import,
    /// Places of the running pods whose files were taken over.
    taken: Vec<usize>,
}

impl Importer {
    fn damaged(&mut self, name: &str, error: &store::StoreError) {
        let id = PodId::from_text(name);
        self.import.problems.push(error.problem().of(&id));
        let pod = PodSummary::bare(&PodInfo::nameless(&id), None);
        self.import.files.push((pod, Imported::Failed));
    }

    fn file(&mut self, content: &Content, verdict: &Verdict, records: &[StoredRecord]) {
        let info = content.checkpoint.pod(&content.id);
        let now = |pod: &usize| self.machine.pods[*pod].info.clone();
        let path = content.checkpoint.netns.to_string();
        let (imported, problem) = match verdict {
            Verdict::Matched(at) => self.take(content, *at),
            Verdict::Rejected(Rejection::Ambiguous { pod, .. }) => {
                let cause = ForeignCause::ImportAmbiguous { now: now(pod) };
                (Imported::Failed, Some(cause.error("")))
            }
            Verdict::Rejected(Rejection::Superseded { by }) => {
                let by = records[*by].info.id.clone();
                let cause = ForeignCause::ImportSuperseded { by };
                (Imported::Failed, Some(cause.error("")))
            }
            Verdict::Rejected(Rejection::PodReplaced { pod }) => {
                let (now, then) = (now(pod), info.clone());
                let cause = ForeignCause::ImportPodReplaced { now, then };
                (Imported::Failed, Some(cause.error("")))
            }
            // The namespace itself is reported.
            Verdict::Rejected(Rejection::NetnsClosed) => (Imported::Failed, None),
            Verdict::Rejected(_) | Verdict::NotSelected => {
                (Imported::Gone, Some(ForeignCause::ImportPodGone.info(path)))
            }
        };
        self.import
            .problems
            .extend(problem.map(|problem| problem.of(&info.id)));
        let pod = summary_of(&info, &content.checkpoint);
        self.import.files.push((pod, imported));
    }

    /// Writes the file of a running pod, unless something better is stored.
    fn take(&mut self, content: &Content, at: usize) -> (Imported, Option<Problem>) {
        if let Some(id) = self.own_checkpoint(&self.machine.pods[at]) {
            let path = content.checkpoint.netns.to_string();
            let cause = ForeignCause::OwnCheckpointKept { id: id.clone() };
            return (Imported::OwnKept, Some(cause.info(path)));
        }
        self.taken.push(at);
        let note = match self.stored.get(&content.id) {
            Some(Ok(old)) if *old == content.checkpoint => return (Imported::Unchanged, None),
            None => None,
            Some(old) => {
                if let Err(error) = self.guard.keep_before(slice::from_ref(&content.id)) {
                    return (Imported::Failed, Some(error.problem()));
                }
                old.as_ref().err().map(|error| error.problem().demoted())
            }
        };
        match self.guard.adopt(content) {
            Ok(()) => (Imported::New, note),
            Err(error) => (Imported::Failed, Some(error.problem())),
        }
    }

    /// netfix's own checkpoint about this very namespace.
    fn own_checkpoint(&self, pod: &PodFacts) -> Option<&PodId> {
        let node = &self.machine.node;
        let (id, _) = self.stored.iter().find(|(_, stored)| {
            let checkpoint = stored.as_ref().ok();
            checkpoint
                .and_then(|checkpoint| checkpoint.netfix.as_ref())
                .is_some_and(|own| own.is_about(node, &pod.identity, &pod.info))
        })?;
        Some(id)
    }
}

/// While an imported pod has its interface, a snapshot saves the whole state.
fn hint(inventory: &mut Inventory, taken: &[usize]) -> Option<Problem> {
    let states = observe_pods(&mut inventory.pods, &inventory.host);
    let pods = taken
        .iter()
        .filter_map(|at| states[*at].as_ref().ok())
        .filter(|state| state.links_but_loopback().next().is_some())
        .count();
    (pods > 0).then(|| ForeignCause::SnapshotSavesMore { pods }.info("import"))
}
