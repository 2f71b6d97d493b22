//! Waits for the NIC: for its return, and for carrier. Link events end the wait.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::events::{self, LATE_LINKWATCH, LINKWATCH};
use crate::kernel::udev::{self, FormerEntries};
use crate::kernel::{Error, link};
use crate::matching::host_baseline::HostBaseline;
use crate::model::net::link::nic::Sriov;
use crate::model::problem::RestoreCause;
use crate::model::{Hardware, IfName, Link, LinkGraph, Problem, stack};
use crate::plan::HostLinks;
use crate::plan::link::sriov;
use crate::restore::facts::Limits;
use crate::situation::plan_of;

/// How long udev may take to finish with a new device.
const UDEV_LIMIT: Duration = Duration::from_secs(10);
/// How long another program may take to rename a new device that is down.
const RENAME_LIMIT: Duration = Duration::from_secs(2);

/// What limits a restore: above all the wait for the NIC.
#[derive(Clone, Copy)]
pub(crate) struct WaitLimit<'a> {
    until: Instant,
    pub(in crate::restore) limits: Limits,
    /// Whether a signal ends the wait, where signals may.
    interrupted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> WaitLimit<'a> {
    pub(crate) fn new(limits: Limits, interrupted: Option<&'a dyn Fn() -> bool>) -> Self {
        Self {
            until: Instant::now() + limits.wait,
            limits,
            interrupted,
        }
    }

    /// With another limit, from now.
    fn of(self, wait: Duration) -> Self {
        let limits = Limits {
            wait,
            ..self.limits
        };
        Self::new(limits, self.interrupted)
    }

    /// With the least time for carrier, which no device that is up can have at once.
    pub(super) fn for_carrier(self) -> Self {
        let mut longer = if self.limits.awaits_carrier {
            self
        } else {
            self.of(Duration::ZERO)
        };
        longer.until = longer.until.max(Instant::now() + LINKWATCH);
        longer.limits.wait = longer.limits.wait.max(LINKWATCH);
        longer
    }

    /// Waits `until` network managers are `ready`; returns whether they are.
    pub(super) fn wait_for_managers(
        self,
        until: Instant,
        ready: impl FnMut() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        events::wait_for_configuration(until, self.interrupted, ready)
    }

    /// Waits until `ready` or the limit; returns whether it is ready. Without a limit `ready` is called once.
    fn wait(self, mut ready: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        if self.limits.wait.is_zero() {
            return ready();
        }
        events::wait_for_link(self.until, self.interrupted, ready)
    }
}

/// Waits until every device under the pods exists, and every one that was `inside` a pod, under any name. What comes back meanwhile gets
/// the rest of the time for its carrier. The plans name the missing ones.
pub(super) fn for_return(
    host: &mut Host,
    baseline: &mut HostBaseline,
    inside: &[Hardware],
    limit: &mut WaitLimit<'_>,
) -> Result<(), Error> {
    let mut were_missing = false;
    limit.wait(|| {
        host.refresh()?;
        baseline.learn(&host.state);
        let are_back = are_all_back(host, baseline, inside);
        were_missing |= !are_back;
        Ok(are_back)
    })?;
    limit.limits.awaits_carrier |= were_missing;
    Ok(())
}

/// Whether every device is there, comes with a step of the plan, or is a virtual function that does not come.
fn are_all_back(host: &Host, baseline: &HostBaseline, inside: &[Hardware]) -> bool {
    let (_, links) = plan_of(host, baseline);
    let is_awaited = |then: &Hardware| {
        let is_same = |now: &Hardware| now.is_same(then);
        let is_back = recognised(host, then).is_some();
        let comes = links.functions.iter().any(is_same);
        !is_back && !comes && !is_elsewhere(host, then)
    };
    let hardware = |name: &IfName| baseline.state.link(name)?.hardware.as_ref();
    let devices = baseline.devices.iter();
    let mut missing = devices.filter(|name| !links.present.contains(*name));
    !missing.any(|name| hardware(name).is_none_or(is_awaited)) && !inside.iter().any(is_awaited)
}

/// Whether a virtual function is in another namespace, or its device has fewer functions now, which another program made.
fn is_elsewhere(host: &Host, then: &Hardware) -> bool {
    let Some(function) = &then.function else {
        return false;
    };
    let is_beyond = |sriov: &Sriov| sriov.vfs > 0 && function.index >= sriov.vfs;
    let sriov = sriov::of_device(function, &host.state.links);
    sriov::has_netdev(function, &host.state.links) || sriov.is_some_and(is_beyond)
}

/// The device of the host that is this one.
fn recognised<'a>(host: &'a Host, then: &Hardware) -> Option<&'a Link> {
    let is_same = |link: &&Link| link.hardware.as_ref().is_some_and(|now| now.is_same(then));
    host.state.links.iter().find(is_same)
}

/// Waits for the network devices of virtual functions to which a driver is bound: some come a while later, and udev renames them.
/// The plan names those that do not come.
pub(super) fn for_functions(
    host: &mut Host,
    made: &[Hardware],
    limit: WaitLimit<'_>,
) -> Result<(), Error> {
    let udev_runs = udev::is_running();
    let is_ready = |host: &Host, one: &Hardware| {
        if let Some(link) = recognised(host, one) {
            return !udev_runs || udev::has_finished(link.index);
        }
        let now = one.function.as_ref().and_then(|function| {
            let sriov = sriov::of_device(function, &host.state.links)?;
            sriov.function(function.index)
        });
        now.is_none_or(|now| now.driver.is_none())
    };
    limit.of(UDEV_LIMIT).wait(|| {
        host.refresh()?;
        Ok(made.iter().all(|one| is_ready(host, one)))
    })?;
    Ok(())
}

/// The devices that a driver gave to the host and that were inside a pod.
fn returned<'a>(host: &'a Host, inside: &'a [Hardware]) -> impl Iterator<Item = &'a Link> {
    inside.iter().filter_map(|then| recognised(host, then))
}

/// Each device under the pods that exists, as it was recorded and as it is.
fn devices<'a>(host: &'a Host, baseline: &'a HostBaseline) -> Vec<(&'a Link, &'a Link)> {
    let (_, links) = plan_of(host, baseline);
    baseline
        .devices
        .iter()
        .filter(|name| links.present.contains(*name))
        .filter_map(|name| {
            let then = baseline.state.link(name)?;
            Some((then, host.state.link(&links.name_now(name))?))
        })
        .collect()
}

/// A device that the driver has just made may have a passing name: udev renames it, but only while it is down. Returns a problem for each
/// that udev has not finished with; what it has of `former` devices with the same ifindexes does not count.
pub(super) fn for_final_names(
    host: &mut Host,
    baseline: &HostBaseline,
    inside: &[Hardware],
    former: &FormerEntries,
    limit: WaitLimit<'_>,
) -> Result<Vec<Problem>, Error> {
    let is_new = |(then, now): &(&Link, &Link)| then.is_made_anew(now);
    if !devices(host, baseline).iter().any(is_new) && inside.is_empty() {
        return Ok(Vec::new());
    }
    let has_finished = |host: &Host| {
        let devices = devices(host, baseline);
        let new = devices.iter().filter(|device| is_new(device));
        let mut all = new.map(|(_, now)| *now).chain(returned(host, inside));
        all.all(|now| former.has_finished(now.index))
    };
    // Its name is read below.
    if udev::is_running() && !has_finished(host) {
        limit.of(UDEV_LIMIT).wait(|| {
            host.refresh()?;
            Ok(has_finished(host))
        })?;
    }
    // Without udev, or after it, another program may give the name back.
    limit.of(RENAME_LIMIT).wait(|| {
        host.refresh()?;
        let devices = devices(host, baseline);
        let mut new = devices.iter().filter(|one| is_new(one));
        Ok(new.all(|(then, now)| {
            then.name == now.name || now.flags.up || host.state.link(&then.name).is_some()
        }))
    })?;
    let limit = UDEV_LIMIT;
    let problems = devices(host, baseline)
        .iter()
        .filter(|device| is_new(device))
        .filter(|(_, now)| udev::is_running() && !former.has_finished(now.index))
        .map(|(_, now)| RestoreCause::UdevUnfinished { limit }.warning(&now.name))
        .collect();
    Ok(problems)
}

/// Waits until every device that was up, and is up, has carrier; returns those that have none. A device that could not be
/// taken up is a failed step instead.
pub(super) fn for_carrier(
    host: &mut Host,
    baseline: &HostBaseline,
    links: &HostLinks,
    limit: WaitLimit<'_>,
) -> Result<Vec<IfName>, Error> {
    let names: BTreeSet<IfName> = baseline
        .devices
        .iter()
        .filter(|name| baseline.state.link(name).is_some_and(|link| link.flags.up))
        .filter(|name| links.present.contains(*name))
        .map(|name| links.name_now(name))
        .collect();
    let has_carrier = |host: &Host, name: &IfName| {
        let now = host.state.link(name);
        now.is_some_and(|link| link.flags.carrier || !link.flags.up)
    };
    let all_have_carrier = |host: &mut Host| {
        // Asked about a single link, newer kernels, such as 6.18, declare it operational at once (`rtnl_getlink`).
        any_is_coming_up(host, &names)?;
        host.refresh()?;
        Ok(names.iter().all(|name| has_carrier(host, name)))
    };
    limit.for_carrier().wait(|| all_have_carrier(host))?;
    if any_is_coming_up(host, &names)? {
        limit.of(LATE_LINKWATCH).wait(|| all_have_carrier(host))?;
    }
    let silent = names.into_iter().filter(|name| !has_carrier(host, name));
    Ok(silent.collect())
}

/// The devices below links of the host.
pub(super) struct DevicesBelow<'a> {
    /// By their recorded names.
    pub devices: BTreeSet<IfName>,
    baseline: &'a HostBaseline,
}

impl<'a> DevicesBelow<'a> {
    pub(super) fn of(names: &BTreeSet<IfName>, baseline: &'a HostBaseline) -> Self {
        let (graph, mut devices) = (LinkGraph::new(&baseline.state.links), BTreeSet::new());
        for name in names {
            let stack = graph.stack(name);
            devices.extend(stack::devices(&stack).cloned());
        }
        Self { devices, baseline }
    }

    /// Whether none of them has carrier, and each may get it: it is up, or it `is_owned` by a manager that takes it up.
    pub(super) fn are_silent(&self, host: &Host, is_owned: &dyn Fn(&IfName) -> bool) -> bool {
        let (_, links) = plan_of(host, self.baseline);
        let names = self.devices.iter().map(|name| links.name_now(name));
        let now: Vec<&Link> = names.filter_map(|name| host.state.link(&name)).collect();
        let comes = |link: &&Link| link.flags.up || is_owned(&link.name);
        !now.is_empty() && now.iter().all(|link| !link.flags.carrier && comes(link))
    }

    /// Waits for the carrier of one. A device that has just been made has it seconds later.
    pub(super) fn wait_for_carrier(
        &self,
        host: &mut Host,
        is_owned: &dyn Fn(&IfName) -> bool,
        limit: WaitLimit<'_>,
    ) -> Result<bool, Error> {
        limit.wait(|| {
            host.refresh()?;
            Ok(!self.are_silent(host, is_owned))
        })
    }
}

/// Whether the kernel has not declared one operational yet that has carrier.
fn any_is_coming_up(host: &mut Host, names: &BTreeSet<IfName>) -> Result<bool, Error> {
    let indexes: Vec<u32> = names
        .iter()
        .filter_map(|name| host.state.link(name))
        .filter(|link| link.flags.up && !link.flags.carrier)
        .map(|link| link.index)
        .collect();
    for index in indexes {
        if link::is_coming_up(&mut host.socket, index)? {
            return Ok(true);
        }
    }
    Ok(false)
}
