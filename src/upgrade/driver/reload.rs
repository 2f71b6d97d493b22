//! Whether COMMAND has reloaded the driver that it was for.

use std::collections::BTreeSet;

use crate::inventory::drivers;
use crate::model::problem::DriverCause;
use crate::model::{IfName, Nic, Problem, Window, WindowNic};
use crate::upgrade::condition::other_versions;
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::Area;

impl Driver<'_> {
    /// Checks whether COMMAND has reloaded the driver. After a rollback that is as it was.
    pub(super) fn check_reload(&mut self) {
        let window = self.ledger.session.window();
        if window.rollback.is_none() {
            let not_reloaded = not_reloaded(window, &self.request.devices);
            self.ledger.problems.add(Area::Command, not_reloaded);
        }
    }

    /// Checks what became of drivers and modules. After a rollback they are as they were.
    pub(super) fn check_drivers(&mut self) {
        if self.ledger.session.window().rollback.is_some() {
            return;
        }
        let gone = self.modules.as_ref().zip(drivers::modules());
        let gone: Vec<_> = gone.iter().flat_map(|(then, now)| then.gone(now)).collect();
        let gone = gone
            .into_iter()
            .map(|module| DriverCause::ModuleGone.info(module.as_str()));
        self.ledger.problems.add(Area::Command, gone);
        let other = other_versions(self.request.drivers);
        self.ledger.problems.add(Area::Command, other);
    }
}

/// The driver that COMMAND was for, if it left all its devices as they were and succeeded: a command that failed in it may have been hidden.
/// It is the driver of the devices that the user named, and any driver otherwise.
fn not_reloaded(window: &Window, wanted: &[IfName]) -> Option<Problem> {
    let lost = window.devices_lost.as_ref()?;
    let has_succeeded = window
        .run
        .as_ref()
        .is_some_and(|run| run.exit == Some(0) && run.timed_out.is_none());
    let nics = window
        .nics
        .iter()
        .flatten()
        .filter_map(|nic: &WindowNic| nic.before.as_ref());
    let nics: Vec<&Nic> = nics.collect();
    let named = nics.iter().filter(|nic| wanted.contains(&nic.name));
    let drivers: BTreeSet<_> = named.map(|nic| &nic.driver).collect();
    let is_meant = |nic: &&&Nic| drivers.is_empty() || drivers.contains(&nic.driver);
    let meant: Vec<_> = nics.iter().filter(is_meant).collect();
    if !has_succeeded || meant.is_empty() || meant.iter().any(|nic| lost.contains(&nic.name)) {
        return None;
    }
    let nics = meant.iter().map(|nic| nic.name.clone()).collect();
    let drivers: BTreeSet<_> = meant
        .iter()
        .filter_map(|nic| nic.driver.as_deref())
        .collect();
    let drivers = drivers.into_iter().collect::<Vec<_>>().join(", ");
    Some(DriverCause::NotReloaded { nics }.warning(drivers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record in which COMMAND succeeded, and these devices were lost.
    fn window(lost: &[&str]) -> Window {
        let text = include_str!("../../../testdata/windows/well.json");
        let mut window: Window = serde_json::from_str(text).unwrap();
        window.devices_lost = Some(lost.iter().map(|name| name.parse().unwrap()).collect());
        window
    }

    #[test]
    fn a_window_in_which_no_device_of_the_driver_was_made_again_says_so() {
        let nics = window(&[]).nics.unwrap();
        let name = |nic: &WindowNic| nic.before.as_ref().unwrap().name.clone();
        let (first, last) = (name(&nics[0]), name(nics.last().unwrap()));
        assert_ne!(first, last);
        let told = |lost: &[&str], wanted: &[IfName]| not_reloaded(&window(lost), wanted).is_some();
        assert!(told(&[], &[]) && told(&[], std::slice::from_ref(&first)));
        assert!(!told(&[first.as_str().unwrap()], &[]));
        // The other one has another driver.
        let other = [last.as_str().unwrap()];
        assert!(told(&other, &[first]) && !told(&other, std::slice::from_ref(&last)));
        let mut failed = window(&[]);
        failed.run.as_mut().unwrap().exit = Some(1);
        assert!(not_reloaded(&failed, &[]).is_none());
    }
}
