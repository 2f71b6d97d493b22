//! Gives devices of the host their former ifindexes back, before anything else is done with them.

use std::collections::BTreeSet;

use super::HostJob;
use crate::inventory::observe::Host;
use crate::kernel::Error;
use crate::managers::Owners;
use crate::model::problem::KeptIndex;
use crate::model::{Hardware, IfName, Link, Problem};
use crate::plan::{Plan, Step};
use crate::progress::Listener;
use crate::restore::host::wait_nic;
use crate::situation::plan_of;

impl HostJob<'_> {
    /// Waits until the devices under the pods and those that were `inside` pods are back, and gives them their ifindexes back at once:
    /// network managers begin when udev has finished. Then waits for their final names.
    pub(in crate::restore) fn wait_for_devices(
        &mut self,
        inside: &[Hardware],
        progress: &mut dyn Listener,
    ) -> Result<Vec<Problem>, Error> {
        wait_nic::for_return(self.host, self.baseline, inside, &mut self.limit)?;
        let (missing, _) = plan_of(self.host, self.baseline);
        self.renumber(&missing, progress)?;
        wait_nic::for_devices(self.host, self.baseline, inside, &mut self.limit)
    }

    fn is_up(&self, dev: &IfName) -> bool {
        self.host.state.link(dev).is_some_and(|link| link.flags.up)
    }

    /// Gives devices their former ifindexes back, and waits until udev has finished with them again. Returns whether it tried: once for
    /// each.
    pub(super) fn renumber(
        &mut self,
        missing: &Plan,
        progress: &mut dyn Listener,
    ) -> Result<bool, Error> {
        let mut steps = missing.steps.clone();
        steps.retain(|step| step.renumbered().is_some());
        if steps.is_empty() {
            return Ok(false);
        }
        // systemd-networkd never makes a VLAN again whose device goes while networkd makes it.
        let devs = steps.iter().filter_map(Step::renumbered);
        let begun: BTreeSet<IfName> = devs
            .filter(|(dev, _)| self.is_up(dev))
            .map(|(dev, _)| dev.clone())
            .collect();
        let is_at_work = |known: &Owners, manager, link: &Link, _: &Host| {
            begun.contains(&link.name) && !known.has_finished(manager, &link.name, link.index)
        };
        self.managed
            .wait_until_done(self.host, self.baseline, progress, is_at_work)?;
        self.apply(&steps);
        // They went down, as devices that were away.
        self.limit.limits.awaits_carrier = true;
        self.managed.limit.limits.awaits_carrier = true;
        wait_nic::for_devices(self.host, self.baseline, &[], &mut self.limit)?;
        for step in &steps {
            let Some((_, index)) = step.renumbered() else {
                continue;
            };
            let mut links = self.host.state.links.iter();
            if !links.any(|link| link.index == index) {
                let mut failures = self.failures.iter();
                let failed = failures.find(|failed| failed.step == *step);
                let error = failed.map(|failed| failed.error.to_string());
                let kept = KeptIndex::Refused(error);
                self.baseline.kept_indexes.insert(index, kept);
            }
        }
        Ok(true)
    }
}
