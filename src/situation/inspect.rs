//! One checkpoint beside the running pod that it is about.

use crate::inventory::Inventory;
use crate::inventory::observe::Pod;
use crate::inventory::visit::visit;
use crate::kernel::state;
use crate::matching::Selection;
use crate::model::{Checkpoint, NetState, PodInfo, Problem};
use crate::plan::{HostLinks, PodVerdict, Step};
use crate::records::fallback::FallbackRequest;
use crate::records::matched::Matched;
use crate::records::rejected::{Reason, Rejected};
use crate::records::stored::Stored;
use crate::records::survey::{Surveyed, survey};
use crate::refusal::Refusal;
use crate::runtime;
use crate::situation::{Compared, Comparison, Depth, Situation};
use crate::store::Store;

/// What is known of the pod of one checkpoint.
#[derive(Default)]
pub(crate) struct Inspected {
    /// Whether the pod runs; `None` when that is unknown.
    pub runs: Option<bool>,
    /// What is missing in it, where it runs and can be read.
    pub compared: Option<Compared>,
    /// Settings in the checkpoint that a new link of the pod would not have; `now` in them is the new link's value.
    pub settings: Vec<Step>,
    pub problems: Vec<Problem>,
}

/// Compares a checkpoint with the machine. What cannot be read is a problem.
pub(crate) fn inspect(
    info: &PodInfo,
    checkpoint: &Checkpoint,
    config: &runtime::RuntimeConfig,
    store: &Store,
) -> Inspected {
    let mut inspected = Inspected::default();
    let surveyed = survey_one(info, checkpoint, config, store);
    if let Err(refusal) = surveyed.and_then(|surveyed| inspected.fill(surveyed)) {
        inspected.problems.extend(refusal.problems);
    }
    inspected
}

fn survey_one(
    info: &PodInfo,
    checkpoint: &Checkpoint,
    config: &runtime::RuntimeConfig,
    store: &Store,
) -> Result<Surveyed, Refusal> {
    let selection = Selection::everything();
    let mut inventory = Inventory::open(&selection)?;
    if inventory.cannot_tell([checkpoint]) {
        inventory.attribute(config, &selection)?;
    }
    let stored = Stored {
        checkpoints: vec![(info.clone(), checkpoint.clone())],
        ..Stored::default()
    };
    survey(inventory, stored, &selection, store, FallbackRequest::NONE)
}

impl Inspected {
    fn fill(&mut self, mut surveyed: Surveyed) -> Result<(), Refusal> {
        self.problems.append(&mut surveyed.problems);
        let rejected = surveyed.rejected.iter();
        self.problems.extend(rejected.flat_map(Rejected::problems));
        self.problems.append(&mut surveyed.contested);
        let Some(id) = surveyed.matched.first().map(|one| one.info.id.clone()) else {
            use Reason::{NetnsGone, NetnsReplaced, OtherBoot, PodReplaced};
            let mut rejected = surveyed.rejected.iter();
            let is_gone = rejected.any(|one| {
                matches!(
                    one.reason,
                    NetnsGone(_) | NetnsReplaced | OtherBoot | PodReplaced(_)
                )
            });
            self.runs = is_gone.then_some(false);
            return Ok(());
        };
        let mut seen = Situation::of(surveyed, Depth::Complete)?;
        let Comparison { links, pods, .. } = seen.compared;
        self.settings = settings(&mut seen.surveyed.matched[0], &links);
        for compared in pods {
            if let PodVerdict::Unknown(problem) = compared.verdict {
                self.problems.push(problem.of(&id));
            } else {
                self.runs = Some(true);
                self.compared = Some(compared);
            }
        }
        Ok(())
    }
}

/// The settings that a restore would write if the pod had no link at all; none where they cannot be read.
fn settings(matched: &mut Matched, links: &HostLinks) -> Vec<Step> {
    let pods = std::slice::from_mut(&mut matched.pod);
    let mut read = visit(pods, |pod: &mut Pod| {
        state::new_link_settings(pod.socket()?)
    });
    let Some(Ok(Ok(new_link))) = read.pop() else {
        return Vec::new();
    };
    let nothing = NetState::default();
    let mut steps = matched.plan(&nothing, Some(&new_link), links, &[]).steps;
    steps.retain(|step| matches!(step, Step::Sysctl { .. }));
    steps
}
