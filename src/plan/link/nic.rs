//! The steps that bring the settings of a NIC back (ethtool(8)).
//!
//! The kernel does not report which of them were set. So a driver that has made the device anew gets all that was recorded,
//! and on a device that stayed a difference was made by a person or program, and is only reported.

use super::queues;
use crate::model::net::link::OtherDriver;
use crate::model::net::link::nic::{NicGroup, NicKey, NicSettings, NicState, NicValue};
use crate::model::problem::{Object, PlanCause};
use crate::model::text::module_name;
use crate::model::window::{KernelCause, SettingResult};
use crate::model::{IfName, Indexed, Link, NetState, Problem};
use crate::plan::drivers::parameters::option;
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
    let Some((then, state)) = comparable(wanted, now, is_new, rules, plan) else {
        return;
    };
    let Differences {
        steps,
        unknown,
        gone,
        problems,
    } = Differences::new(&now.name, (then, state), scope, rules);
    if is_new && rules.mode != NicMode::Ignore {
        plan.problems.extend(unknown.iter().map(unknown_setting));
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
                restored(step, now, is_ready, plan);
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

/// The settings as recorded and as they are now; `None` where a problem is all that can be said of them.
fn comparable<'a>(
    wanted: &'a Link,
    now: &'a Link,
    is_new: bool,
    rules: NicRules,
    plan: &mut Plan,
) -> Option<(&'a NicState, &'a NicState)> {
    let then = wanted.nic.as_deref()?;
    let Some(state) = now.nic.as_deref() else {
        if is_new && rules.mode != NicMode::Ignore {
            let device = Object::nic(&now.name, None, None);
            plan.problems.push(PlanCause::SettingsGone.error(device));
        }
        return None;
    };
    let Some(cause) = crippled(then, state).filter(|_| is_new) else {
        return Some((then, state));
    };
    let problem = PlanCause::Crippled { cause }.error(&wanted.name);
    plan.problems.push(problem);
    None
}

/// Why a device of ice or i40e lacks nearly all that it had: the driver found no package for it (`ice_ethtool_safe_mode_ops`), or its
/// firmware awaits its repair (`i40e_ethtool_recovery_mode_ops`). One problem is in the place of one for each setting.
fn crippled(then: &NicState, now: &NicState) -> Option<KernelCause> {
    let lost = |group| then.settings.contains_key(&group) && !now.settings.contains_key(&group);
    let combined = now.settings.get(&NicGroup::Channels).into_iter().flatten();
    let mut queues = combined.filter(|(key, _)| key.as_str() == "combined");
    let driver = now.driver.as_ref().map(|driver| driver.name.as_str());
    let is_poor = lost(NicGroup::Coalesce) && !now.settings.contains_key(&NicGroup::Private);
    match driver {
        Some("i40e" | "ice") if is_poor && lost(NicGroup::Rings) && lost(NicGroup::Channels) => {
            Some(KernelCause::RecoveryMode)
        }
        Some("ice") if is_poor && queues.all(|(_, number)| *number == NicValue::Number(1)) => {
            Some(KernelCause::SafeMode)
        }
        _ => None,
    }
}

fn restored(step: NicStep, device: &Link, is_ready: bool, plan: &mut Plan) {
    if let Some(cause) = never_set(&step, device) {
        let is_of_module = step.group == NicGroup::Module;
        let problem = cause.error(step.setting());
        // Another version of a driver may have another default.
        plan.problems.push(if is_of_module {
            problem.demoted()
        } else {
            problem
        });
        plan.left.push((step, SettingResult::Left));
    } else if step.group.needs_carrier() && !is_ready {
        plan.later.push(step.into());
    } else {
        plan.push(step);
    }
}

/// A setting that the driver does not have any more.
fn unknown_setting(step: &NicStep) -> Problem {
    let (then, driver) = (step.value.clone(), step.driver.clone());
    let cause = PlanCause::SettingUnknown { then, driver };
    if is_done_by_kernel(step) {
        cause.info(step.setting())
    } else {
        cause.error(step.setting())
    }
}

/// Whether the kernel does without the driver what this feature was on for.
fn is_done_by_kernel(step: &NicStep) -> bool {
    const OFFLOADS: [&str; 8] = [
        "l2-fwd-offload",
        "tx-",
        "rx-gro",
        "rx-lro",
        "rx-checksum",
        "rx-hashing",
        "rx-vlan-",
        "rx-udp_tunnel-",
    ];
    let mut offloads = OFFLOADS.iter();
    step.group == NicGroup::Features && offloads.any(|own| step.key.as_str().starts_with(own))
}

/// Why netfix does not set it.
fn never_set(step: &NicStep, device: &Link) -> Option<PlanCause> {
    let (then, now, driver) = (step.value.clone(), step.now.clone(), step.driver.clone());
    match step.group {
        // "May cause a kernel panic" (README of Intel's driver).
        NicGroup::Channels if device.flags.up && is_i40e(device) => {
            Some(PlanCause::SettingNeedsDown { then, now, driver })
        }
        NicGroup::DevlinkInit => Some(PlanCause::SettingNeedsReload { then, now, driver }),
        NicGroup::Dcb => Some(PlanCause::SettingMayReset { then, now, driver }),
        NicGroup::Module => {
            let nic = device.nic.as_deref().and_then(|nic| nic.driver.as_ref());
            let module = module_name(nic.map_or("", |driver| &driver.name));
            let option = option(&module, step.key.as_str(), &then.to_string());
            Some(PlanCause::ModuleParameter { then, now, option })
        }
        _ => None,
    }
}

fn is_i40e(device: &Link) -> bool {
    let hardware = device.hardware.as_ref();
    hardware.is_some_and(|own| own.driver.as_deref() == Some("i40e"))
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
    matches!(group, NicGroup::Link | NicGroup::Dcb | NicGroup::Module)
        || group.needs_carrier()
        || has_fec()
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
