//! The NICs of the host, with what their drivers report about themselves.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::net::link::nic::FunctionOf;
use crate::model::{Hardware, IfName, Mac};

/// A NIC and its driver (`ethtool -i`); what the driver does not report is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Its name.
    pub name: IfName,
    /// Its driver, such as `i40e`.
    pub driver: Option<String>,
    /// The driver's version; a driver of the kernel reports the kernel's.
    pub version: Option<String>,
    /// The firmware's version.
    pub firmware: Option<String>,
    /// Bus address, such as `0000:3b:00.0`.
    pub bus: Option<String>,
    /// The address burnt into the device.
    pub permanent_mac: Option<Mac>,
    /// Of a virtual function: which one of which device it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionOf>,
    /// Whether it has carrier.
    pub carrier: bool,
}

impl Nic {
    /// Whether both run the same driver and firmware, of the same versions.
    #[must_use]
    pub fn has_same_driver(&self, other: &Self) -> bool {
        self.driver == other.driver
            && self.version == other.version
            && self.firmware == other.firmware
    }

    fn hardware(&self) -> Hardware {
        Hardware {
            permanent_mac: self.permanent_mac,
            bus: self.bus.clone(),
            driver: None,
            function: self.function.clone(),
            ..Hardware::default()
        }
    }

    /// Whether both are the same device, maybe under another name and another driver.
    fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (self.hardware(), other.hardware());
        if own.is_known() && others.is_known() {
            own.is_same(&others)
        } else {
            self.name == other.name
        }
    }
}

/// A NIC of the host before a window, and when netfix last read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowNic {
    /// Before COMMAND; null when it did not exist.
    pub before: Option<Nic>,
    /// Whether it existed when netfix last read the host's links after COMMAND; null when it did not.
    pub present: Option<bool>,
    /// What it was then; null when it did not exist, or was not read.
    pub after: Option<Nic>,
}

impl WindowNic {
    /// A NIC before the window.
    #[must_use]
    pub fn new(before: Nic) -> Self {
        Self {
            before: Some(before),
            present: None,
            after: None,
        }
    }

    /// Its name before the window; of a new one, the name that it has.
    #[must_use]
    pub fn name(&self) -> Option<&IfName> {
        let known = self.before.as_ref().or(self.after.as_ref());
        known.map(|nic| &nic.name)
    }

    /// Whether it existed before and is missing.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.before.is_some() && self.present == Some(false)
    }
}

/// The names of those that existed before and are missing.
pub(crate) fn absent(nics: Option<&[WindowNic]>) -> BTreeSet<IfName> {
    let absent = nics.into_iter().flatten().filter(|nic| nic.is_absent());
    absent.filter_map(WindowNic::name).cloned().collect()
}

/// Notes which NICs exist now, instead of what an earlier reading found; `None`: they cannot be read.
pub(crate) fn update(nics: &mut Vec<WindowNic>, now: Option<Vec<Nic>>) {
    nics.retain(|nic| nic.before.is_some());
    let Some(mut now) = now else {
        for nic in nics {
            (nic.present, nic.after) = (None, None);
        }
        return;
    };
    for nic in nics.iter_mut() {
        let Some(before) = &nic.before else { continue };
        let same = |one: &Nic| before.is_same(one);
        // Two ports without a permanent MAC may share one bus address.
        let place = now
            .iter()
            .position(|one| same(one) && one.name == before.name);
        let place = place.or_else(|| now.iter().position(same));
        nic.after = place.map(|place| now.remove(place));
        nic.present = Some(nic.after.is_some());
    }
    nics.extend(now.into_iter().map(|new| WindowNic {
        before: None,
        present: Some(true),
        after: Some(new),
    }));
}

#[cfg(test)]
mod tests {
    use crate::model::net::nic::*;

    fn nic(name: &str, version: &str, bus: Option<&str>, mac: Option<u8>) -> Nic {
        Nic {
            name: name.parse().unwrap(),
            driver: Some("i40e".to_owned()),
            version: Some(version.to_owned()),
            firmware: None,
            bus: bus.map(str::to_owned),
            permanent_mac: mac.map(|last| Mac([2, 0, 0, 0, 0, last])),
            function: None,
            carrier: true,
        }
    }

    fn names(nics: &[WindowNic]) -> Vec<(Option<&str>, Option<bool>, Option<&str>)> {
        fn name(nic: Option<&Nic>) -> Option<&str> {
            nic?.name.as_str()
        }
        let row = |nic: &WindowNic| (nic.before.is_some(), nic.present, nic.after.is_some());
        assert!(
            nics.iter()
                .all(|nic| row(nic).1.unwrap_or_default() == row(nic).2)
        );
        nics.iter()
            .map(|nic| {
                (
                    name(nic.before.as_ref()),
                    nic.present,
                    name(nic.after.as_ref()),
                )
            })
            .collect()
    }

    #[test]
    fn a_nic_is_found_by_its_hardware_under_another_name_and_version() {
        let (one, two) = (
            nic("eth0", "1", Some("0000:3b:00.0"), Some(1)),
            nic("eth1", "1", Some("0000:3b:00.1"), Some(2)),
        );
        let mut nics = vec![WindowNic::new(one), WindowNic::new(two)];
        // The names are exchanged.
        let now = vec![
            nic("eth0", "2", Some("0000:3b:00.1"), Some(2)),
            nic("eth1", "2", Some("0000:3b:00.0"), Some(1)),
        ];
        update(&mut nics, Some(now));
        assert_eq!(
            names(&nics),
            [
                (Some("eth0"), Some(true), Some("eth1")),
                (Some("eth1"), Some(true), Some("eth0"))
            ]
        );
        let (before, after) = (nics[0].before.clone(), nics[0].after.clone());
        assert!(!before.unwrap().has_same_driver(&after.unwrap()));
    }

    #[test]
    fn a_virtual_function_with_another_mac_is_the_one_of_its_number() {
        let function = |name, mac| Nic {
            function: Some(FunctionOf {
                of: "0000:01:00.0".to_owned(),
                index: 1,
            }),
            ..nic(name, "1", Some("0000:01:10.2"), Some(mac))
        };
        let mut nics = vec![WindowNic::new(function("eth3", 1))];
        update(&mut nics, Some(vec![function("eth5", 2)]));
        assert_eq!(names(&nics), [(Some("eth3"), Some(true), Some("eth5"))]);
    }

    #[test]
    fn ports_that_share_a_bus_address_are_distinguished_by_name() {
        let bus = Some("0000:04:00.0");
        let ports = || vec![nic("eth0", "1", bus, None), nic("eth1", "1", bus, None)];
        let mut nics: Vec<WindowNic> = ports().into_iter().map(WindowNic::new).collect();
        update(&mut nics, Some(ports().into_iter().rev().collect()));
        assert_eq!(
            names(&nics),
            [
                (Some("eth0"), Some(true), Some("eth0")),
                (Some("eth1"), Some(true), Some("eth1"))
            ]
        );
    }

    #[test]
    fn each_reading_replaces_the_one_before() {
        let mut nics = vec![WindowNic::new(nic("eth0", "1", None, None))];
        update(&mut nics, Some(vec![nic("eth7", "1", Some("x"), None)]));
        assert_eq!(
            names(&nics),
            [
                (Some("eth0"), Some(false), None),
                (None, Some(true), Some("eth7"))
            ]
        );
        assert!(nics[0].is_absent() && !nics[1].is_absent());
        update(&mut nics, None);
        assert_eq!(names(&nics), [(Some("eth0"), None, None)]);
        assert!(!nics[0].is_absent(), "unknown is not absent");
        update(&mut nics, Some(vec![nic("eth0", "1", None, None)]));
        assert_eq!(names(&nics), [(Some("eth0"), Some(true), Some("eth0"))]);
    }
}
