//! Gives devices of the host their former ifindexes back, before anything else is done with them.

use std::collections::BTreeSet;

use super::HostJob;
use crate::inventory::observe::Host;
use crate::kernel::Error;
use crate::kernel::udev::{self, FormerEntries};
use crate::managers::Owners;
use crate::model::manager::Manager;
use crate::model::problem::KeptIndex;
use crate::model::{Hardware, IfName, Link, Problem};
use crate::plan::{Plan, Step};
use crate::progress::Listener;
use crate::restore::host::{managed, wait_nic};
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
        if let Some(problems) = self.renumber(&missing, inside, progress)? {
            return Ok(problems);
        }
        let former = FormerEntries::default();
        wait_nic::for_final_names(self.host, self.baseline, inside, &former, self.limit)
    }

    /// Gives devices their former ifindexes back, and waits for their final names. It tries that once for each; `None` where none is left.
    pub(super) fn renumber(
        &mut self,
        missing: &Plan,
        inside: &[Hardware],
        progress: &mut dyn Listener,
    ) -> Result<Option<Vec<Problem>>, Error> {
        let mut steps = missing.steps.clone();
        steps.retain(|step| step.renumbered().is_some());
        if steps.is_empty() {
            return Ok(None);
        }
        let begun = self.begun(&steps);
        self.wait_for_owners(&begun, progress)?;
        let indexes = steps.iter().filter_map(Step::renumbered);
        let former = FormerEntries::of(indexes.map(|(_, index)| index));
        let tried = self.host.state.links.clone();
        self.apply(&steps);
        // They went down, as devices that were away.
        self.limit.limits.awaits_carrier = true;
        self.managed.limit.limits.awaits_carrier = true;
        wait_nic::for_return(self.host, self.baseline, inside, &mut self.limit)?;
        let problems =
            wait_nic::for_final_names(self.host, self.baseline, inside, &former, self.limit)?;
        self.wait_until_idle(&begun);
        self.keep_refused(&steps, &tried);
        Ok(Some(problems))
    }

    /// The devices that others may have begun to configure.
    fn begun(&self, steps: &[Step]) -> BTreeSet<IfName> {
        let devs = steps.iter().filter_map(Step::renumbered);
        let now = devs.filter_map(|(dev, _)| self.host.state.link(dev));
        let begun = now.filter(|now| now.flags.up || udev::has_finished(now.index));
        begun.map(|now| now.name.clone()).collect()
    }

    /// Waits until the owners of these have finished: systemd-networkd never makes a VLAN again whose device goes while networkd makes it,
    /// and an ifup(8) fails whose device goes.
    fn wait_for_owners(
        &mut self,
        begun: &BTreeSet<IfName>,
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        let is_at_work = |known: &Owners, manager: Manager, link: &Link, _: &Host| {
            let tells = manager != Manager::Ifupdown && begun.contains(&link.name);
            tells && !known.has_finished(manager, &link.name, link.index)
        };
        if !begun.is_empty() {
            self.managed
                .wait_until_done(self.host, self.baseline, progress, is_at_work)?;
        }
        self.wait_until_idle(begun);
        Ok(())
    }

    fn wait_until_idle(&self, begun: &BTreeSet<IfName>) {
        if !begun.is_empty() {
            managed::wait_until_idle(self.limit.limits.manager_grace, &|| false);
        }
    }

    /// Takes down which of the devices that were `tried` do not have their ifindex after these steps, so that no other step tries it again.
    /// One that its driver has made anew meanwhile is another device.
    fn keep_refused(&mut self, steps: &[Step], tried: &[Link]) {
        for step in steps {
            let Some((dev, index)) = step.renumbered() else {
                continue;
            };
            let mut links = self.host.state.links.iter();
            let is_refused = |now: &Link| {
                let tried = tried.iter().find(|link| link.name == *dev);
                now.index != index && tried.is_some_and(|tried| !tried.is_made_anew(now))
            };
            if links.any(is_refused) {
                let mut failures = self.failures.iter();
                let failed = failures.find(|failed| failed.step == *step);
                let error = failed.map(|failed| failed.error.to_string());
                let kept = KeptIndex::Refused(error);
                self.baseline.kept_indexes.insert(index, kept);
            }
        }
    }
}
