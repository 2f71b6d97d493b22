//! Pairs checkpoints with the running pods that they are about, and finds why others are not used.

use std::collections::BTreeSet;

use crate::cni;
use crate::inventory::Inventory;
use crate::inventory::observe::Pod;
use crate::matching::{Machine, Rejection, Selection, StoredRecord, Verdict, match_records};
use crate::model::problem::MatchingCause;
use crate::model::{Checkpoint, PodInfo, Problem};
use crate::records::matched::Matched;
use crate::records::rejected::{Reason, Rejected};
use crate::records::stored::{Stored, age, summary_of};
use crate::store::Light;

/// Records and running pods, paired.
#[derive(Debug, Default)]
pub(crate) struct Paired {
    pub matched: Vec<Matched>,
    pub rejected: Vec<Rejected>,
    pub unmatched: Vec<Pod>,
    pub damaged: Vec<PodInfo>,
    /// Files that cannot be read and are of unknown pods.
    pub damaged_files: usize,
    pub problems: Vec<Problem>,
}

/// Pairs checkpoints with the pods that they are about, and takes the pods out of the inventory.
pub(crate) fn pair(stored: Stored, inventory: &mut Inventory, selection: &Selection) -> Paired {
    let records = stored.records();
    let machine = inventory.machine(&records);
    let matching = match_records(&records, &machine, selection);
    let mut pods: Vec<Option<Pod>> = inventory.pods.drain(..).map(Some).collect();
    let mut paired = Paired {
        unmatched: take(&mut pods, matching.unmatched),
        damaged: stored.damaged,
        problems: stored.problems,
        ..Paired::default()
    };
    let mut whole = stored.whole;
    for ((info, mut checkpoint), verdict) in stored.checkpoints.into_iter().zip(matching.verdicts) {
        let whole = whole.remove(&info.id);
        if let (Some(whole), Verdict::Rejected(_)) = (&whole, &verdict) {
            whole.complete(&mut checkpoint);
        }
        match verdict {
            Verdict::NotSelected => {}
            Verdict::Rejected(Rejection::Superseded { by }) => {
                let by = records[by].info.id.clone();
                let problem = MatchingCause::Superseded { by }.info(checkpoint.netns);
                paired.problems.push(problem.of(&info.id));
            }
            Verdict::Rejected(rejection) => paired.rejected.push(Rejected {
                pod: summary_of(&info, &checkpoint),
                reason: reason(&rejection, &checkpoint, &machine, &records),
            }),
            Verdict::Matched(at) => {
                if let Some(pod) = pods[at].take() {
                    paired.matched.push(matched(info, (checkpoint, whole), pod));
                }
            }
        }
    }
    paired.matched.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    paired
}

pub(crate) fn take(pods: &mut [Option<Pod>], places: Vec<usize>) -> Vec<Pod> {
    places
        .into_iter()
        .filter_map(|at| pods[at].take())
        .collect()
}

fn matched(info: PodInfo, (checkpoint, whole): Light, pod: Pod) -> Matched {
    let extension = checkpoint.netfix.as_ref();
    Matched {
        age: extension.map_or(0, |extension| age(&extension.stamp())),
        partial: match extension {
            Some(_) => None,
            None => Some(cni::of_origin(&checkpoint)),
        },
        withheld: BTreeSet::new(),
        contested: Vec::new(),
        info,
        checkpoint,
        whole,
        pod,
    }
}

/// Why a checkpoint is not used.
fn reason(
    rejection: &Rejection,
    checkpoint: &Checkpoint,
    machine: &Machine,
    records: &[StoredRecord],
) -> Reason {
    let cause = match rejection {
        Rejection::OtherMachine => return Reason::OtherMachine,
        Rejection::OtherBoot => return Reason::OtherBoot,
        Rejection::NetnsClosed => return Reason::NetnsClosed,
        Rejection::PodReplaced { pod } => {
            return Reason::PodReplaced(machine.pods[*pod].info.clone());
        }
        Rejection::NetnsReplaced => MatchingCause::NetnsReplaced,
        Rejection::Unproven { .. } => MatchingCause::NetnsUnproven,
        Rejection::Ambiguous { records: all, .. } => {
            let ids = all.iter().map(|at| records[*at].info.id.clone());
            MatchingCause::AmbiguousCheckpoints { ids: ids.collect() }
        }
        Rejection::NetnsGone | Rejection::Superseded { .. } => match checkpoint.netfix {
            Some(_) => MatchingCause::NetnsGone,
            None => MatchingCause::NoPodAtPath,
        },
    };
    Reason::NetnsGone(cause.into())
}
