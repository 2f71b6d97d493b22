//! Programs that set something on a NIC too: they go first, and what netfix set after them is told.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::{Error, udev};
use crate::managers::settings::{Groups, of_link_files, of_tuned};
use crate::matching::host_baseline::HostBaseline;
use crate::model::manager::SettingOwner;
use crate::model::net::link::nic::NicGroup;
use crate::model::problem::{Object, RestoreCause};
use crate::model::{IfName, Problem};
use crate::plan::{Plan, Step};
use crate::restore::host::wait_nic::WaitLimit;
use crate::situation::plan_of;

/// tuned applies its profile when udevd has announced the device, within this time.
const TUNED_LIMIT: Duration = Duration::from_secs(3);

/// tuned during a restore. udevd has finished with a device before a restore begins.
#[derive(Debug, Default)]
pub(super) struct SettingOwners {
    has_waited: bool,
}

impl SettingOwners {
    /// Waits once until tuned has set what it sets on new devices. Returns whether it waited.
    pub(super) fn go_first(
        &mut self,
        plan: &Plan,
        host: &mut Host,
        baseline: &HostBaseline,
        limit: WaitLimit<'_>,
    ) -> Result<bool, Error> {
        if self.has_waited || !plan.steps.iter().any(|step| step.nic().is_some()) {
            return Ok(false);
        }
        self.has_waited = true;
        let Some((_, groups)) = of_tuned() else {
            return Ok(false);
        };
        let is_set = |plan: &Plan| {
            !plan
                .steps
                .iter()
                .filter_map(Step::nic)
                .any(|one| groups.contains(&one.group))
        };
        if is_set(plan) {
            return Ok(false);
        }
        let until = Instant::now() + limit.limits.manager_grace.min(TUNED_LIMIT);
        limit.wait_for_managers(until, || {
            host.refresh()?;
            Ok(is_set(&plan_of(host, baseline).0))
        })?;
        Ok(true)
    }
}

/// Which of the settings that netfix set an owner sets as well, to another value.
pub(super) fn findings(
    done: &[Step],
    host: &Host,
    of_profile: impl Fn(&IfName) -> Groups,
) -> Vec<Problem> {
    let set: BTreeSet<(&IfName, NicGroup)> = done
        .iter()
        .filter_map(Step::nic)
        .map(|one| (&one.dev, one.group))
        .collect();
    if set.is_empty() {
        return Vec::new();
    }
    let tuned = of_tuned();
    let mut findings = Vec::new();
    for (dev, group) in set {
        let index = host.state.link(dev).map_or(0, |link| link.index);
        let profile = (SettingOwner::NetworkManager, of_profile(dev));
        let owners = [
            of_link_files(udev::link_files(index)),
            tuned.clone(),
            Some(profile),
        ];
        for (owner, groups) in owners.into_iter().flatten() {
            if groups.contains(&group) {
                let object = Object::nic(dev, Some(group), None);
                findings.push(RestoreCause::SettingOwned { owner }.warning(object));
            }
        }
    }
    findings
}
