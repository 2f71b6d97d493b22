//! Settings of NICs: those of a device and group in one request.

use std::collections::BTreeMap;

use crate::kernel::{Error, ethtool};
use crate::model::problem::{Object, RestoreCause};
use crate::model::window::{LostSetting, SettingResult};
use crate::model::{IfName, PodId, Problem};
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
        let device = Object::nic(dev, None, None);
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
            driver: step.driver.clone(),
            error: failed.map(|failed| failed.error.to_string()),
        };
        cause.error(step.setting())
    });
    waiting.chain(refused).collect()
}

/// What became of each setting that was lost: those that were set, and by the last plan those that are not as they were.
pub(crate) fn outcomes(
    pod: Option<&PodId>,
    done: &[Step],
    last: Option<&Plan>,
) -> Vec<LostSetting> {
    let set = of(done).map(|step| (step, SettingResult::Restored));
    let open = last.into_iter().flat_map(|plan| {
        let refused = of(&plan.steps).map(|step| (step, SettingResult::Refused));
        let waiting = of(&plan.later).map(|step| (step, SettingResult::Waiting));
        let left = plan.left.iter().map(|(step, result)| (step, *result));
        refused.chain(waiting).chain(left)
    });
    let mut all: BTreeMap<_, LostSetting> = BTreeMap::new();
    for (step, result) in set.chain(open) {
        let known = all.entry((&step.dev, step.group, &step.key));
        let setting = known.or_insert_with(|| LostSetting {
            pod: pod.cloned(),
            nic: step.dev.clone(),
            group: step.group,
            key: step.key.clone(),
            before: step.value.clone(),
            found: step.now.clone(),
            driver: step.driver.clone(),
            result,
        });
        setting.result = result;
    }
    all.into_values().collect()
}

fn of(steps: &[Step]) -> impl Iterator<Item = &NicStep> {
    steps.iter().filter_map(Step::nic)
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
            driver: None,
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

    #[test]
    fn the_last_plan_decides_what_became_of_a_setting() {
        let [rx, tx, udp, flag] = [
            step(NicGroup::Rings, "rx", 4096),
            step(NicGroup::Rings, "tx", 512),
            step(NicGroup::FlowHash, "udp4", 1),
            step(NicGroup::Private, "legacy-rx", 1),
        ];
        // The driver accepted the rings, and reads another value for one of them.
        let done = [rx.clone().into(), tx.into()];
        let again = NicStep {
            now: Some(NicValue::Number(1024)),
            ..rx
        };
        let last = Plan {
            steps: vec![again.into()],
            later: vec![udp.into()],
            left: vec![(flag, SettingResult::Unknown)],
            ..Plan::default()
        };
        let outcomes = outcomes(None, &done, Some(&last));
        let results: Vec<_> = outcomes
            .iter()
            .map(|one| (one.key.as_str(), one.found.clone(), one.result))
            .collect();
        let first = Some(NicValue::Number(256));
        assert_eq!(
            results,
            [
                ("legacy-rx", first.clone(), SettingResult::Unknown),
                ("rx", first.clone(), SettingResult::Refused),
                ("tx", first.clone(), SettingResult::Restored),
                ("udp4", first, SettingResult::Waiting),
            ]
        );
    }
}
