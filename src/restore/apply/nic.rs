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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Errno;
    use crate::model::net::link::nic::{NicGroup, NicValue};

    fn step(group: NicGroup, key: &str, value: u64) -> NicStep {
        NicStep {
            dev: "eth0".parse().unwrap(),
            group,
            key: key.to_owned().try_into().unwrap(),
            value: NicValue::Number(value),
            now: Some(NicValue::Number(256)),
            limit: Some(NicValue::Number(1024)),
        }
    }

    #[test]
    fn each_setting_that_is_not_back_is_one_problem_with_the_words_of_the_kernel() {
        let (rx, tx) = (
            step(NicGroup::Rings, "rx", 4096),
            step(NicGroup::Rings, "tx", 512),
        );
        let plan = Plan {
            steps: vec![rx.clone().into(), tx.into()],
            later: vec![
                step(NicGroup::Rss, "table", 1).into(),
                step(NicGroup::FlowHash, "udp4", 1).into(),
            ],
            ..Plan::default()
        };
        let failed = FailedStep {
            step: rx.into(),
            error: Error::Refused {
                errno: Errno::EINVAL,
                words: "requested ring size exceeds maximum".to_owned(),
            },
        };
        let problems = remaining(&plan, &[failed]);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "no-carrier: nic eth0: must wait for carrier. Run `netfix restore` again when the link has it",
                "setting-refused: nic eth0 rings rx: was 4096, is 256, at most 1024: the driver refused it: requested \
                    ring size exceeds maximum (EINVAL: Invalid argument)",
                "setting-refused: nic eth0 rings tx: was 512, is 256, at most 1024: the driver accepted it, but did not set it",
            ]
        );
    }
}
