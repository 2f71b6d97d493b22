//! The steps for the virtual functions of a device that its driver made anew.
//!
//! A driver forgets at a reload how many functions there are and what was set for them. netfix makes them only where there is none:
//! a number that another program has set stays.

use crate::model::net::link::function::FunctionSetting;
use crate::model::net::link::nic::{FunctionOf, Sriov, VirtualFunction};
use crate::model::problem::PlanCause;
use crate::model::{Hardware, Indexed, Link};
use crate::plan::{Change, NicMode, Plan, SriovChange, SriovStep, Step};

/// What was recorded of a device's functions, and what is there now.
struct Functions<'a> {
    now: &'a Link,
    bus: &'a str,
    then: &'a Sriov,
    present: &'a Sriov,
}

impl<'a> Functions<'a> {
    /// `None` for a device that had none, and for one that was not made anew: what differs there was changed by a program since.
    fn new(wanted: &'a Link, now: &'a Link) -> Option<Self> {
        let then = wanted.sriov().filter(|then| then.vfs > 0)?;
        wanted.is_made_anew(now).then_some(Self {
            now,
            bus: now.hardware.as_ref()?.bus.as_deref()?,
            then,
            present: now.sriov()?,
        })
    }

    /// Whether the functions are to be made.
    fn are_missing(&self) -> bool {
        self.present.vfs == 0
    }

    /// Whether drivers are bound to the functions; netdevsim has functions without devices.
    fn are_devices(&self) -> bool {
        self.then.functions.iter().any(|one| one.bus.is_some())
    }

    /// Those that were recorded, each as it is now, or is right after its creation.
    fn pairs(&self) -> impl Iterator<Item = (&'a VirtualFunction, VirtualFunction)> {
        let are_missing = self.are_missing();
        self.then.functions.iter().filter_map(move |then| {
            let now = if are_missing {
                Some(VirtualFunction::fresh(then.index))
            } else {
                self.present.function(then.index).cloned()
            };
            Some((then, now?))
        })
    }

    /// Adds a step. The ports of one device have their functions in common, and make them once.
    fn push(&self, change: SriovChange, plan: &mut Plan) {
        let is_made = |step: &Step| matches!(step, Step::Sriov(step) if step.bus == self.bus && step.change == change);
        if matches!(change, SriovChange::Number(_)) && plan.steps.iter().any(is_made) {
            return;
        }
        plan.push(SriovStep {
            dev: self.now.name.clone(),
            bus: self.bus.to_owned(),
            change,
        });
    }
}

/// The steps that make the functions and set what the device decides about them. No driver may be bound to them yet: it would read
/// the administrative MAC before that is set.
pub(super) fn make(wanted: &Link, now: &Link, mode: NicMode, plan: &mut Plan) {
    let Some(functions) = Functions::new(wanted, now) else {
        return lost(wanted, now, mode, plan);
    };
    let (then, present) = (functions.then, functions.present);
    if mode != NicMode::Restore {
        return not_restored(&functions, mode, plan);
    }
    if functions.are_missing() {
        if present.autoprobe && functions.are_devices() {
            functions.push(SriovChange::Autoprobe(false), plan);
        }
        functions.push(SriovChange::Number(then.vfs), plan);
    } else if present.vfs != then.vfs {
        let (now, then) = (present.vfs, then.vfs);
        let cause = PlanCause::OtherNumberOfFunctions { now, then };
        plan.problems.push(cause.error(&functions.now.name));
    }
    for (then, now) in functions.pairs() {
        for setting in then.settings() {
            let was = now.alike(setting);
            if was.is_some_and(|was| are_equal(was, setting)) {
                continue;
            }
            let step = Step::set(&functions.now.name, Change::Function(then.index, setting));
            if setting.needs_carrier() && !functions.now.flags.carrier {
                plan.later.push(step);
            } else {
                plan.push(step);
            }
        }
    }
}

/// What a restore without settings of NICs leaves.
fn not_restored(functions: &Functions<'_>, mode: NicMode, plan: &mut Plan) {
    let (now, then) = (functions.present.vfs, functions.then.vfs);
    if mode == NicMode::Report && now != then {
        let cause = PlanCause::FunctionsNotRestored { now, then };
        plan.problems.push(cause.warning(&functions.now.name));
    }
}

/// What is wrong if the device had functions, and its driver cannot make any now.
fn lost(wanted: &Link, now: &Link, mode: NicMode, plan: &mut Plan) {
    let had = wanted.sriov().map_or(0, |then| then.vfs);
    if mode != NicMode::Ignore && had > 0 && wanted.is_made_anew(now) && now.sriov().is_none() {
        let cause = PlanCause::NoFunctions { then: had };
        plan.problems.push(cause.error(&now.name));
    }
}

/// Older kernels do not report the protocol of a tag.
fn are_equal(one: FunctionSetting, other: FunctionSetting) -> bool {
    use FunctionSetting::Vlan;
    match (one, other) {
        (Vlan(id, qos, None), Vlan(other, other_qos, _))
        | (Vlan(id, qos, _), Vlan(other, other_qos, None)) => (id, qos) == (other, other_qos),
        _ => one == other,
    }
}

/// The steps that bind the drivers that the functions had. The device is up by then.
pub(super) fn bind(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let Some(functions) = Functions::new(wanted, now).filter(Functions::are_devices) else {
        return;
    };
    let mut autoprobe = functions.present.autoprobe && !functions.are_missing();
    for (then, now) in functions.pairs() {
        let Some(driver) = &then.driver else { continue };
        let change = match &now.driver {
            None => SriovChange::Bind(then.index),
            Some(other) if !functions.is_idle(&now, present) && other != driver => {
                let cause = PlanCause::OtherFunctionDriver {
                    index: then.index,
                    now: other.clone(),
                    then: driver.clone(),
                };
                plan.problems.push(cause.error(&functions.now.name));
                continue;
            }
            Some(other)
                if other == driver && !functions.is_born_wrong(then, &now, state, present) =>
            {
                continue;
            }
            Some(_) => SriovChange::Rebind(then.index),
        };
        let chosen = then.is_passed_on().then_some(driver);
        let only = then.driver_override.as_ref().or(chosen);
        if let Some(only) = only.filter(|only| now.driver_override.as_ref() != Some(only)) {
            functions.push(SriovChange::Override(then.index, only.clone()), plan);
        }
        // Without it the kernel binds only a driver that is named as the only one (`pci_device_can_probe`).
        if !autoprobe && only.is_none() {
            functions.push(SriovChange::Autoprobe(true), plan);
            autoprobe = true;
        }
        functions.push(change, plan);
    }
    if autoprobe != functions.then.autoprobe {
        functions.push(SriovChange::Autoprobe(functions.then.autoprobe), plan);
    }
}

impl Functions<'_> {
    /// The device of a function, where it is in this namespace.
    fn netdev<'s>(&self, index: u32, state: &Indexed<'s>) -> Option<&'s Link> {
        let is_it = |function: &FunctionOf| function.of == self.bus && function.index == index;
        let mut links = state.state.links.iter();
        links.find(|link| {
            let hardware = link.hardware.as_ref();
            hardware.is_some_and(|own| own.function.as_ref().is_some_and(is_it))
        })
    }

    /// Whether its device is in this namespace, and no program uses it.
    fn is_idle(&self, now: &VirtualFunction, present: &Indexed<'_>) -> bool {
        self.netdev(now.index, present).is_some_and(|link| {
            let mut addresses = present.addresses_of(&link.name).iter();
            !link.flags.up && link.master.is_none() && addresses.all(|one| one.comes_by_itself())
        })
    }

    /// Whether its driver was bound before its MAC was set, or has made no device: one more binding cures it.
    fn is_born_wrong(
        &self,
        then: &VirtualFunction,
        now: &VirtualFunction,
        state: &Indexed<'_>,
        present: &Indexed<'_>,
    ) -> bool {
        if then.netdev && !now.netdev {
            return true;
        }
        let Some(admin) = then.mac.filter(|mac| mac.0 != [0; 6]) else {
            return false;
        };
        let (before, link) = (
            self.netdev(then.index, state),
            self.netdev(then.index, present),
        );
        let mac = link.and_then(|link| link.mac);
        let had = before.and_then(|before| before.mac);
        mac.is_some_and(|mac| mac != admin && Some(mac) != had) && self.is_idle(now, present)
    }
}

/// The functions whose devices come by steps of the plan.
pub(in crate::plan) fn made(wanted: &Link, now: &Link, steps: &[Step]) -> Vec<Hardware> {
    let Some(functions) = Functions::new(wanted, now) else {
        return Vec::new();
    };
    let is_made = |index: u32| {
        steps.iter().any(|step| {
            matches!(step, Step::Sriov(step) if step.bus == functions.bus && step.makes(index))
        })
    };
    let all = functions.then.functions.iter();
    let made = all.filter(|one| !one.is_passed_on() && is_made(one.index));
    made.map(|one| Hardware {
        bus: one.bus.clone(),
        driver: one.driver.clone(),
        function: Some(FunctionOf {
            of: functions.bus.to_owned(),
            index: one.index,
        }),
        ..Hardware::default()
    })
    .collect()
}

/// Whether a function has a network device, in this namespace or another.
pub(crate) fn has_netdev(function: &FunctionOf, links: &[Link]) -> bool {
    let own = of_device(function, links).and_then(|sriov| sriov.function(function.index));
    own.is_some_and(|own| own.netdev)
}

/// What is known of the device of a function.
pub(crate) fn of_device<'a>(function: &FunctionOf, links: &'a [Link]) -> Option<&'a Sriov> {
    let is_it = |own: &Hardware| own.bus.as_ref() == Some(&function.of);
    let mut links = links.iter();
    let device = links.find(|link| link.hardware.as_ref().is_some_and(is_it))?;
    device.sriov()
}
