//! Settings of NICs: those of a device and group in one request.

use std::collections::BTreeMap;

use crate::kernel::{Errno, Error, ethtool};
use crate::model::net::link::nic::{NicGroup, NicValue};
use crate::model::problem::{Object, RestoreCause};
use crate::model::window::{LostSetting, SettingResult};
use crate::model::{IfName, NetState, PodId, Problem};
use crate::plan::{NicStep, Plan, Step};
use crate::restore::apply::FailedStep;

/// Sends what is of one device and group to the kernel.
pub(super) fn send(steps: &[NicStep]) -> Result<(), Error> {
    let Some(NicStep { dev, group, .. }) = steps.first() else {
        return Ok(());
    };
    let values: Vec<_> = steps
        .iter()
        .map(|step| (step.key.clone(), step.value.clone()))
        .collect();
    ethtool::set(dev, *group, &values).map_err(Error::from)
}

/// Sets what is of one device and group. Where the driver refuses it, each is tried alone: one bad value does not stop the others.
pub(super) fn set(
    steps: Vec<NicStep>,
    state: &NetState,
    mut send: impl FnMut(&[NicStep]) -> Result<(), Error>,
) -> Vec<(NicStep, Result<(), Error>)> {
    let mut together = send(&steps);
    let rdma = steps.first().map(|step| step.held_by(state));
    let rdma = rdma.filter(|rdma| !rdma.is_empty() && is_busy(&together));
    if let Some(rdma) = rdma {
        together = without(&rdma, &mut send, |send| send(&steps));
    }
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

fn is_busy(result: &Result<(), Error>) -> bool {
    let error = result.as_ref().err();
    error.and_then(Error::errno) == Some(Errno::EBUSY)
}

/// Carries something out while these are off. One that does not go on again is not as it was recorded: the next plan has it.
fn without<S: FnMut(&[NicStep]) -> Result<(), Error>>(
    held: &[NicStep],
    send: &mut S,
    work: impl FnOnce(&mut S) -> Result<(), Error>,
) -> Result<(), Error> {
    let to = |value: bool| {
        let all = held.iter().map(move |step| NicStep {
            value: NicValue::Flag(value),
            ..step.clone()
        });
        all.collect::<Vec<_>>()
    };
    let result = send(&to(false)).and_then(|()| work(send));
    let _ = send(&to(true));
    result
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
        let is_busy = failed.is_some_and(|failed| failed.error.errno() == Some(Errno::EBUSY));
        let cause = RestoreCause::SettingRefused {
            then: step.value.clone(),
            now: step.now.clone(),
            limit: step.limit.clone(),
            driver: step.driver.clone(),
            error: failed.map(|failed| failed.error.to_string()),
            may_be_held: step.group == NicGroup::Channels && is_busy,
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
    use crate::model::{Link, LinkKind};

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
        let error = Error::Refused {
            errno: Errno::EINVAL,
            words: "requested ring size exceeds maximum".to_owned(),
        };
        let failed = FailedStep::new(rx.into(), error, &NetState::default());
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

    /// The state of a device with RDMA, as ice has it.
    fn with_rdma() -> NetState {
        let mut device = Link::plain("eth0".parse().unwrap(), LinkKind::Physical);
        let parameters = [("enable_roce", true), ("enable_iwarp", false)];
        let parameters = parameters
            .map(|(key, is_on)| (key.to_owned().try_into().unwrap(), NicValue::Flag(is_on)));
        let nic = device.nic.get_or_insert_default();
        nic.settings.insert(NicGroup::Devlink, parameters.into());
        NetState {
            links: vec![device],
            ..NetState::default()
        }
    }

    #[test]
    fn channels_that_rdma_holds_are_set_while_it_is_off() {
        let channels = || vec![step(NicGroup::Channels, "combined", 8)];
        let (mut is_on, mut sent) = (true, Vec::new());
        let ice = |steps: &[NicStep]| {
            sent.extend(
                steps
                    .iter()
                    .map(|step| format!("{} {}", step.key, step.value)),
            );
            match steps[0].value {
                NicValue::Flag(to) => is_on = to,
                _ if is_on => return Err(Error::Kernel(Errno::EBUSY)),
                _ => {}
            }
            Ok(())
        };
        let results = set(channels(), &with_rdma(), ice);
        assert!(results[0].1.is_ok(), "{results:?}");
        let all = [
            "combined 8",
            "enable_roce off",
            "combined 8",
            "enable_roce on",
        ];
        assert_eq!(sent, all);
        // A driver that says the same for another reason, and one without such a parameter.
        let busy = |_: &[NicStep]| Err(Error::Kernel(Errno::EBUSY));
        assert!(set(channels(), &with_rdma(), busy)[0].1.is_err());
        let mut sent = 0;
        let other = |_: &[NicStep]| {
            sent += 1;
            Err(Error::Kernel(Errno::EBUSY))
        };
        assert!(set(channels(), &NetState::default(), other)[0].1.is_err());
        assert_eq!(sent, 1);
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
