//! Pairs checkpoints with the running pods that they are about, and finds why others are not used.

use std::mem;

use crate::inventory::observe::{Host, Pod};
use crate::inventory::{Inventory, cannot_observe};
use crate::matching::{Machine, Rejection, Selection, StoredRecord, Verdict, match_records};
use crate::model::problem::MatchingCause;
use crate::model::{ChainLink, Checkpoint, NodeState, PodId, PodInfo, Problem};
use crate::records::matched::{Matched, RecordOrigin};
use crate::records::rejected::{Reason, Rejected};
use crate::records::stored::{Stored, summary_of};

/// Records and running pods, paired.
#[derive(Debug, Default)]
pub(crate) struct Paired {
    pub matched: Vec<Matched>,
    pub rejected: Vec<Rejected>,
    pub unmatched: Vec<Pod>,
    /// Running pods that no record is about and that are not selected by the names that are known.
    pub unselected: Vec<Pod>,
    pub damaged: Vec<Damaged>,
    /// Files that cannot be read and are of unknown pods.
    pub damaged_files: usize,
    pub problems: Vec<Problem>,
}

/// A pod whose record cannot be read.
#[derive(Debug)]
pub(crate) struct Damaged {
    pub info: PodInfo,
    /// Why.
    pub problem: Problem,
}

impl Paired {
    /// Another record is used for a pod: one that cannot be read is no error.
    pub(super) fn forgive(&mut self, id: &PodId) {
        let damaged = mem::take(&mut self.damaged).into_iter();
        let (forgiven, others): (Vec<_>, _) = damaged.partition(|one| one.info.id == *id);
        self.damaged = others;
        let problems = forgiven.into_iter().map(|one| one.problem.demoted());
        self.problems.extend(problems);
    }

    /// The problems, with those of the pods whose record cannot be read.
    pub(super) fn take_problems(&mut self) -> Vec<Problem> {
        let mut problems = mem::take(&mut self.problems);
        problems.extend(self.damaged.iter().map(|one| one.problem.clone()));
        problems
    }

    /// Gives each pod what has answered it, and the host the packets by which its own reach and that of the pods is judged.
    pub(super) fn follow_packets(
        &mut self,
        host: &mut Host,
        recorded: Option<&NodeState>,
    ) -> Result<(), Problem> {
        let now = &host.state;
        let mut packets = recorded.map_or_else(Vec::new, |node| node.known_packets(now));
        let mut answers = recorded.map(|node| node.answers.by_pod());
        for one in &mut self.matched {
            let own = answers.as_mut().and_then(|all| all.remove(&one.info.id));
            one.answers = own.unwrap_or_default();
            let chain = one.checkpoint.netfix.iter().flat_map(|own| &own.chain);
            packets.extend(chain.flat_map(ChainLink::packets));
        }
        let followed = host.follow(packets);
        followed.map_err(|error| cannot_observe("host", &error))
    }
}

/// Pairs checkpoints with the pods that they are about, and takes the pods out of the inventory.
pub(crate) fn pair(stored: Stored, inventory: &mut Inventory, selection: &Selection) -> Paired {
    let records = stored.records();
    let machine = inventory.machine(&records);
    let matching = match_records(&records, &machine, selection);
    let mut pods: Vec<Option<Pod>> = inventory.pods.drain(..).map(Some).collect();
    let damaged = stored.damaged.into_iter().zip(stored.problems);
    let mut paired = Paired {
        unmatched: take(&mut pods, matching.unmatched),
        unselected: take(&mut pods, matching.unselected),
        damaged: damaged
            .map(|(info, problem)| Damaged { info, problem })
            .collect(),
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
                    let origin = RecordOrigin::Requested;
                    let matched = Matched::new(info, (checkpoint, whole), pod, origin);
                    paired.matched.push(matched);
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
        Rejection::NetnsReplaced => return Reason::NetnsReplaced,
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
