//! The steps that bring the settings of a NIC back (ethtool(8)).
//!
//! The kernel does not report which of them were set. So a driver that has made the device anew gets all that was recorded,
//! and on a device that stayed a difference was made by a person or program, and is only reported.

use super::queues;
use crate::model::net::link::OtherDriver;
use crate::model::net::link::nic::{NicGroup, NicKey, NicSettings, NicState, NicValue};
use crate::model::problem::{Object, PlanCause};
use crate::model::window::SettingResult;
use crate::model::{IfName, Indexed, Link, NetState, Problem};
use crate::plan::{NicMode, NicRules, NicStep, Observed, Plan};

/// The steps for the settings of a device, before it goes up, and after it has carrier those that the driver refuses or forgets
/// before.
pub(super) fn steps(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    observed: &Observed<'_>,
    plan: &mut Plan,
) {
    let is_new = wanted.is_made_anew(now) || observed.made.contains(&now.name);
    let settings = if is_of_another_port(now, state, observed.state) {
        NicScope::Port
    } else {
        NicScope::Whole
    };
    compared((wanted, now), is_new, settings, observed.nic, plan);
}

/// Which settings of a network device are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NicScope {
    /// All.
    Whole,
    /// Without those that belong to the whole device, of which it is one port.
    Port,
}

/// Whether another port of the same device comes before this one: what belongs to the device is compared and set once.
fn is_of_another_port(now: &Link, wanted: &Indexed<'_>, present: &NetState) -> bool {
    let has_own = |link: &Link| {
        let groups = link.nic.iter().flat_map(|nic| nic.settings.keys());
        groups.into_iter().any(|group| group.is_of_device())
    };
    let bus = |link: &Link| link.hardware.as_ref().and_then(|own| own.bus.clone());
    let is_before = |other: &Link| {
        other.index < now.index
            && has_own(other)
            && bus(other) == bus(now)
            && wanted.link(&other.name).is_some_and(has_own)
    };
    has_own(now) && bus(now).is_some() && present.links.iter().any(is_before)
}

/// The same for a device that its driver gave back to the host, and that is about to be moved into its pod.
pub(crate) fn of_device(wanted: &Link, device: &Link, rules: NicRules, plan: &mut Plan) {
    compared((wanted, device), true, NicScope::Whole, rules, plan);
}

fn compared(
    (wanted, now): (&Link, &Link),
    is_new: bool,
    scope: NicScope,
    rules: NicRules,
    plan: &mut Plan,
) {
    let (Some(then), Some(state)) = (&wanted.nic, &now.nic) else {
        if wanted.nic.is_some() && is_new && rules.mode != NicMode::Ignore {
            let device = Object::nic(&now.name, None, None);
            plan.problems.push(PlanCause::SettingsGone.error(device));
        }
        return;
    };
    let Differences {
        steps,
        unknown,
        gone,
        problems,
    } = Differences::new(&now.name, (then, state), scope, rules);
    if is_new && rules.mode != NicMode::Ignore {
        plan.problems.extend(unknown.iter().map(|step| {
            let (then, driver) = (step.value.clone(), step.driver.clone());
            PlanCause::SettingUnknown { then, driver }.error(step.setting())
        }));
        let unknown = unknown.into_iter();
        plan.left
            .extend(unknown.map(|step| (step, SettingResult::Unknown)));
        plan.problems.extend(problems);
        queues::report_settings(&now.name, state, gone, plan);
    }
    match rules.mode {
        NicMode::Ignore => {}
        NicMode::Restore if is_new => {
            let is_ready =
                !wanted.flags.up || (now.flags.up && (now.flags.carrier || !wanted.flags.carrier));
            for step in steps {
                restored(step, is_ready, plan);
            }
        }
        NicMode::Report if is_new => {
            for step in steps {
                let (then, now, driver) =
                    (step.value.clone(), step.now.clone(), step.driver.clone());
                let cause = PlanCause::SettingNotRestored { then, now, driver };
                plan.problems.push(cause.warning(step.setting()));
                plan.left.push((step, SettingResult::Left));
            }
        }
        NicMode::Restore | NicMode::Report => {
            plan.problems.extend(steps.into_iter().map(|step| {
                let object = step.setting();
                let (then, now) = (step.value, step.now);
                PlanCause::SettingChanged { then, now }.info(object)
            }));
        }
    }
}

fn restored(step: NicStep, is_ready: bool, plan: &mut Plan) {
    if let Some(cause) = never_set(&step) {
        plan.problems.push(cause.error(step.setting()));
        plan.left.push((step, SettingResult::Left));
    } else if step.group.needs_carrier() && !is_ready {
        plan.later.push(step.into());
    } else {
        plan.push(step);
    }
}

/// Why netfix does not set it.
fn never_set(step: &NicStep) -> Option<PlanCause> {
    let (then, now, driver) = (step.value.clone(), step.now.clone(), step.driver.clone());
    match step.group {
        NicGroup::DevlinkInit => Some(PlanCause::SettingNeedsReload { then, now, driver }),
        NicGroup::Dcb => Some(PlanCause::SettingMayReset { then, now, driver }),
        _ => None,
    }
}

/// What differs on a device.
struct Differences {
    /// The steps that remove a difference, in the order in which drivers accept them.
    steps: Vec<NicStep>,
    /// What the driver does not have any more.
    unknown: Vec<NicStep>,
    /// What belongs to a queue or an interrupt that the device does not have any more.
    gone: Vec<NicStep>,
    /// What no step can restore for another reason.
    problems: Vec<Problem>,
}

impl Differences {
    fn new(
        dev: &IfName,
        (then, state): (&NicState, &NicState),
        scope: NicScope,
        rules: NicRules,
    ) -> Self {
        let mut found = Self {
            steps: Vec::new(),
            unknown: Vec::new(),
            gone: Vec::new(),
            problems: Vec::new(),
        };
        let driver =
            OtherDriver::between(then.driver.as_ref(), state.driver.as_ref()).map(Box::new);
        for (group, values) in &then.settings {
            if group.is_of_device() && scope == NicScope::Port {
                continue;
            }
            let owner = match group {
                NicGroup::Irqs if rules.irqs_are_balanced => Some(PlanCause::IrqsBalanced),
                NicGroup::Dcb if rules.dcb_is_managed => Some(PlanCause::DcbManaged),
                _ => None,
            };
            if let Some(cause) = owner {
                if state.settings.get(group) != Some(values) {
                    let object = Object::nic(dev, Some(*group), None);
                    found.problems.push(cause.info(object));
                }
                continue;
            }
            if *group == NicGroup::Bridge && awaits_functions(then, state) {
                continue;
            }
            for (key, value) in values {
                if !follows(&then.settings, *group, key) {
                    found.compare(dev, (then, state), (*group, key, value));
                }
            }
        }
        let grows = found.steps.iter().any(queues::adds_queues);
        let is_gone = |step: &mut NicStep| {
            !grows && queues::is_setting_of_missing(state, step.group, &step.key)
        };
        found.gone = found.steps.extract_if(.., is_gone).collect();
        let steps = found.steps.iter_mut().chain(&mut found.unknown);
        for step in steps.chain(&mut found.gone) {
            step.driver.clone_from(&driver);
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
                let object = Object::nic(dev, Some(group), Some(key));
                self.problems
                    .push(PlanCause::SettingUnmet { then }.error(object));
            }
            return;
        }
        let is_unknown = now.is_none() && !is_absent_by_default(&state.settings, group);
        let step = NicStep {
            dev: dev.clone(),
            group,
            key: key.clone(),
            value: value.clone(),
            now: now.cloned(),
            limit: value_of(&state.limits, group, key).cloned(),
            driver: None,
        };
        match value {
            // Off as before.
            NicValue::Flag(false) if is_unknown => {}
            _ if is_unknown => self.unknown.push(step),
            _ => self.steps.push(step),
        }
    }
}

/// Whether a later round compares the mode of the device's bridge: i40e and ixgbe have one only while there are virtual functions,
/// and i40e changes it when it makes these.
fn awaits_functions(then: &NicState, now: &NicState) -> bool {
    let functions = |nic: &NicState| nic.sriov.as_ref().map_or(0, |sriov| sriov.vfs);
    functions(now) < functions(then)
}

fn value_of<'a>(settings: &'a NicSettings, group: NicGroup, key: &NicKey) -> Option<&'a NicValue> {
    settings.get(&group)?.get(key)
}

/// Whether only what is not the default is recorded and read.
fn is_absent_by_default(settings: &NicSettings, group: NicGroup) -> bool {
    // Without a mode the kernel reports only the rest of it (`fec_fill_reply` in net/ethtool/fec.c).
    let has_fec = || group == NicGroup::Fec && settings.contains_key(&group);
    matches!(group, NicGroup::Link | NicGroup::Dcb) || group.needs_carrier() || has_fec()
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
