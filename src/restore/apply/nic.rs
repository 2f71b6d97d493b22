//! Settings of NICs: those of a device and group in one request.

use crate::kernel::{Error, ethtool};
use crate::model::problem::RestoreCause;
use crate::model::{IfName, Problem};
use crate::plan::{NicStep, Plan, Step};
use crate::restore::apply::FailedStep;

/// Sets what is of one device and group. Where the driver refuses it, each is tried alone: one bad value does not stop the others.
pub(super) fn set(steps: Vec<NicStep>) -> Vec<(NicStep, Result<(), Error>)> {
    let send = |steps: &[NicStep]| {
        let Some(NicStep { dev, group, .. }) = steps.first() else {
            return Ok(());
        };
        let values: Vec<_> = steps
            .iter()
            .map(|step| (step.key.clone(), step.value.clone()))
            .collect();
        ethtool::set(dev, *group, &values).map_err(Error::from)
    };
    let together = send(&steps);
    let is_alone = steps.len() == 1;
    let each = steps.into_iter().map(|step| {
        let result = match &together {
            Err(_) if !is_alone => send(std::slice::from_ref(&step)),
            both => both.clone(),
        };
        (step, result)
    });
    each.collect()
}

/// The settings that are still not as they were, one problem for each, and the devices whose settings wait for carrier.
pub(super) fn remaining(plan: &Plan, failures: &[FailedStep]) -> Vec<Problem> {
    let mut waiting: Vec<&IfName> = of(&plan.later).map(|step| &step.dev).collect();
    waiting.dedup();
    let waiting = waiting.into_iter().map(|dev| {
        let device = format!("nic {dev}");
        RestoreCause::WaitsForCarrier.warning(device)
    });
    let refused = of(&plan.steps).map(|step| {
        let is_about =
            |failed: &&FailedStep| matches!(&failed.step, Step::Nic(other) if other == step);
        let failed = failures.iter().find(is_about);
        let cause = RestoreCause::SettingRefused {
            then: step.value.clone(),
            now: step.now.clone(),
            limit: step.limit.clone(),
            error: failed.map(|failed| failed.error.to_string()),
        };
        cause.error(step.setting())
    });
    waiting.chain(refused).collect()
}

fn of(steps: &[Step]) -> impl Iterator<Item = &NicStep> {
    steps.iter().filter_map(|step| match step {
        Step::Nic(step) => Some(step),
        _ => None,
    })
}
