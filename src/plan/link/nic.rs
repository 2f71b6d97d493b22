//! The steps that bring the settings of a NIC back (ethtool(8)).
//!
//! The kernel does not report which of them were set. So a driver that has made the device anew gets all that was recorded,
//! and on a device that stayed a difference was made by a person or program, and is only reported.

use crate::model::net::link::nic::{NicGroup, NicKey, NicSettings, NicState, NicValue};
use crate::model::problem::PlanCause;
use crate::model::{IfName, Link, Problem};
use crate::plan::step::setting;
use crate::plan::{NicMode, NicRules, NicStep, Observed, Plan};

/// The steps for the settings of a device, before it goes up, and after it has carrier those that the driver refuses or forgets
/// before.
pub(super) fn steps(wanted: &Link, now: &Link, observed: &Observed<'_>, plan: &mut Plan) {
    let is_new = is_new(wanted, now) || observed.made.contains(&now.name);
    compared(wanted, now, is_new, observed.nic, plan);
}

/// The same for a device that its driver gave back to the host, and that is about to be moved into its pod.
pub(in crate::plan) fn of_device(
    wanted: &Link,
    device: &Link,
    observed: &Observed<'_>,
    plan: &mut Plan,
) {
    compared(wanted, device, true, observed.nic, plan);
}

fn compared(wanted: &Link, now: &Link, is_new: bool, rules: NicRules, plan: &mut Plan) {
    let (Some(then), Some(state)) = (&wanted.nic, &now.nic) else {
        if wanted.nic.is_some() && is_new && rules.mode != NicMode::Ignore {
            let device = format!("nic {}", now.name);
            plan.problems.push(PlanCause::SettingsGone.error(device));
        }
        return;
    };
    let differences = Differences::new(&now.name, then, state, rules);
    match rules.mode {
        NicMode::Ignore => {}
        NicMode::Restore if is_new => {
            let is_ready =
                !wanted.flags.up || (now.flags.up && (now.flags.carrier || !wanted.flags.carrier));
            for step in differences.steps {
                if step.group.needs_carrier() && !is_ready {
                    plan.later.push(step.into());
                } else {
                    plan.push(step);
                }
            }
            plan.problems.extend(differences.problems);
        }
        NicMode::Restore | NicMode::Report => {
            let problem = |step: NicStep| {
                let object = step.setting();
                let (then, now) = (step.value, step.now);
                if is_new {
                    PlanCause::SettingNotRestored { then, now }.warning(object)
                } else {
                    PlanCause::SettingChanged { then, now }.info(object)
                }
            };
            let differ = differences.steps.into_iter().map(problem);
            plan.problems.extend(differ);
            if is_new {
                plan.problems.extend(differences.problems);
            }
        }
    }
}

/// The steps for a device that its driver gave back to the host, there, before it is moved into its pod: what is set on it while it
/// is down stays.
pub(crate) fn before_move(wanted: &Link, device: &Link, rules: NicRules) -> Vec<NicStep> {
    if rules.mode != NicMode::Restore {
        return Vec::new();
    }
    let (Some(then), Some(state)) = (&wanted.nic, &device.nic) else {
        return Vec::new();
    };
    let mut steps = Differences::new(&device.name, then, state, rules).steps;
    steps.retain(|step| !step.group.needs_carrier());
    steps
}

/// Whether the driver has made the device anew since the record, which is of the same boot.
fn is_new(wanted: &Link, now: &Link) -> bool {
    wanted.index != 0 && wanted.index != now.index
}

/// What differs on a device.
struct Differences {
    /// The steps that remove a difference, in the order in which drivers accept them.
    steps: Vec<NicStep>,
    /// What the driver does not have any more.
    problems: Vec<Problem>,
}

impl Differences {
    fn new(dev: &IfName, then: &NicState, state: &NicState, rules: NicRules) -> Self {
        let mut found = Self {
            steps: Vec::new(),
            problems: Vec::new(),
        };
        for (group, values) in &then.settings {
            if *group == NicGroup::Irqs && rules.irqs_are_balanced {
                if state.settings.get(group) != Some(values) {
                    let object = format!("nic {dev} {}", group.as_str());
                    found.problems.push(PlanCause::IrqsBalanced.info(object));
                }
                continue;
            }
            for (key, value) in values {
                if !follows(&then.settings, *group, key) {
                    found.compare(dev, (then, state), (*group, key, value));
                }
            }
        }
        found
    }

    fn compare(
        &mut self,
        dev: &IfName,
        (then, state): (&NicState, &NicState),
        (group, key, value): (NicGroup, &NicKey, &NicValue),
    ) {
        let now = value_of(&state.settings, group, key);
        if now == Some(value) {
            let is_met = |nic: &NicState| !(group == NicGroup::Features && nic.unmet.contains(key));
            if is_met(then) && !is_met(state) {
                let then = value.clone();
                let object = setting(dev, group, key);
                self.problems
                    .push(PlanCause::SettingUnmet { then }.error(object));
            }
            return;
        }
        if now.is_none() && !is_absent_by_default(&state.settings, group) {
            let then = value.clone();
            let object = setting(dev, group, key);
            self.problems.push(match value {
                // Off as before.
                NicValue::Flag(false) => return,
                _ => PlanCause::SettingUnknown { then }.error(object),
            });
            return;
        }
        self.steps.push(NicStep {
            dev: dev.clone(),
            group,
            key: key.clone(),
            value: value.clone(),
            now: now.cloned(),
            limit: value_of(&state.limits, group, key).cloned(),
        });
    }
}

fn value_of<'a>(settings: &'a NicSettings, group: NicGroup, key: &NicKey) -> Option<&'a NicValue> {
    settings.get(&group)?.get(key)
}

/// Whether only what is not the default is recorded and read.
fn is_absent_by_default(settings: &NicSettings, group: NicGroup) -> bool {
    // Without a mode the kernel reports only the rest of it (`fec_fill_reply` in net/ethtool/fec.c).
    let has_fec = || group == NicGroup::Fec && settings.contains_key(&group);
    group == NicGroup::Link || group.needs_carrier() || has_fec()
}

/// Whether the driver chooses this value itself: how long interrupts wait, while that is adaptive.
fn follows(settings: &NicSettings, group: NicGroup, key: &NicKey) -> bool {
    let is_on = |name: &str| {
        let adaptive = settings.get(&NicGroup::Coalesce).and_then(|values| {
            let mut values = values.iter();
            values.find(|(key, _)| key.as_str() == name)
        });
        adaptive.is_some_and(|(_, value)| *value == NicValue::Flag(true))
    };
    let of = |direction: &str| {
        let name = key.as_str();
        name.strip_prefix(direction)
            .is_some_and(|rest| matches!(rest, "-usecs" | "-frames" | "-usecs-irq" | "-frames-irq"))
    };
    group == NicGroup::Coalesce
        && (of("rx") && is_on("adaptive-rx") || of("tx") && is_on("adaptive-tx"))
}
