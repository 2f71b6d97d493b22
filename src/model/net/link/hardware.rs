//! The identity of a device, and its driver.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Mac;
use crate::model::net::link::nic::FunctionOf;
use crate::model::text::{escape, join};

/// The identity of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    /// The address burnt into the device (`ip -d link`: permaddr).
    pub permanent_mac: Option<Mac>,
    /// Bus address, such as `0000:00:02.0`.
    pub bus: Option<String>,
    /// Kernel driver, such as `i40e`.
    pub driver: Option<String>,
    /// Of a virtual function: which one of which device it is. That identifies it, and its permanent MAC does not: that is the one
    /// that was set when its driver was bound, or a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionOf>,
    /// Which port of the device it is (`IFLA_PHYS_PORT_NAME`), such as `p0`, or `pf0vf1` of the representor of a virtual function.
    /// Several devices without a permanent MAC may share a bus address: this distinguishes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The inode of its folder in sysfs: another one once its driver has made it anew, while its ifindex may be given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
}

impl Hardware {
    /// Whether both are the same device: permanent MAC or bus address is known of both and equal, and the other one does
    /// not differ. A virtual function is that of the same number of the same device; the bus address tells where only one of both
    /// has the number, such as a record of an earlier version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if self.function.is_some() || other.function.is_some() {
            return same(self.function.as_ref(), other.function.as_ref())
                .or_else(|| same(self.bus.as_ref(), other.bus.as_ref()))
                .unwrap_or_default();
        }
        let mac = same(self.permanent_mac.as_ref(), other.permanent_mac.as_ref());
        let bus = same(self.bus.as_ref(), other.bus.as_ref());
        match (mac, bus) {
            (Some(mac), Some(bus)) => mac && bus,
            (None, Some(true)) => same(self.port.as_ref(), other.port.as_ref()).unwrap_or(true),
            (known, None) | (None, known) => known == Some(true),
        }
    }

    /// Whether it stands on the host for a function whose packets the embedded switch of a device forwards: the kernel calls its port
    /// `pf0vf1` or `pf0sf3`, with `c1` before it if the function belongs to another machine.
    pub(crate) fn is_representor(&self) -> bool {
        let after_number = |text: &str| {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
            (rest.len() < text.len()).then(|| rest.to_owned())
        };
        let port = self.port.as_deref().unwrap_or_default();
        let controller = port.strip_prefix('c').and_then(after_number);
        let port = controller.as_deref().unwrap_or(port);
        let function = port.strip_prefix("pf").and_then(after_number);
        function
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("vf") || rest.starts_with("sf"))
    }

    /// Whether it can be recognised under another name.
    pub(crate) fn is_known(&self) -> bool {
        self.permanent_mac.is_some() || self.bus.is_some()
    }
}

fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
    Some(a? == b?)
}

/// The driver of a device, and the versions of driver and firmware (`ethtool -i`). A driver of the kernel reports the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NicDriver {
    /// Its name, such as `i40e`.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The firmware's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
}

/// Another driver, version of it or firmware than the recorded one: the recorded value of a setting may be a default of that.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OtherDriver {
    /// The recorded one.
    pub then: NicDriver,
    /// The present one.
    pub now: NicDriver,
}

impl OtherDriver {
    /// The change, if there is one. What one of both does not report is no difference.
    #[must_use]
    pub fn between(then: Option<&NicDriver>, now: Option<&NicDriver>) -> Option<Self> {
        let (then, now) = (then?, now?);
        let differs =
            |a: &Option<String>, b: &Option<String>| same(a.as_ref(), b.as_ref()) == Some(false);
        let is_other = then.name != now.name
            || differs(&then.version, &now.version)
            || differs(&then.firmware, &now.firmware);
        is_other.then(|| Self {
            then: then.clone(),
            now: now.clone(),
        })
    }

    /// Whether the driver is the same, and only the firmware of the device is another.
    pub(crate) fn is_firmware_alone(&self) -> bool {
        let known = |one: &NicDriver| one.firmware.is_some();
        let Self { then, now } = self;
        (&then.name, &then.version) == (&now.name, &now.version) && known(then) && known(now)
    }
}

/// Such as `the new driver, igb 5.19.4 instead of 5.6.0`.
impl fmt::Display for OtherDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { then, now } = self;
        let word = |text: &Option<String>| text.as_deref().map(escape);
        let whole = |one: &NicDriver| {
            join(
                [escape(&one.name)].into_iter().chain(word(&one.version)),
                " ",
            )
        };
        if self.is_firmware_alone() {
            let [then, now] = [then, now].map(|one| word(&one.firmware).unwrap_or_default());
            return write!(f, "the new firmware, {now} instead of {then}");
        }
        let then = match word(&then.version) {
            Some(version) if then.name == now.name => version,
            _ => whole(then),
        };
        write!(f, "the new driver, {} instead of {then}", whole(now))
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::link::hardware::*;

    fn hardware(mac: Option<u8>, bus: Option<&str>) -> Hardware {
        let permanent_mac = mac.map(|last| Mac([2, 0, 0, 0, 0, last]));
        Hardware {
            permanent_mac,
            bus: bus.map(str::to_owned),
            driver: None,
            ..Hardware::default()
        }
    }

    #[test]
    fn a_device_is_known_by_mac_or_bus_and_never_by_a_contradiction() {
        let nic = hardware(Some(1), Some("0000:00:02.0"));
        assert!(nic.is_same(&hardware(Some(1), None)));
        assert!(nic.is_same(&hardware(None, Some("0000:00:02.0"))));
        assert!(!nic.is_same(&hardware(Some(2), Some("0000:00:02.0"))));
        assert!(!nic.is_same(&hardware(None, None)));
    }

    #[test]
    fn devices_without_a_mac_on_one_bus_address_are_known_by_their_ports() {
        let port = |mac, port: Option<&str>| Hardware {
            port: port.map(str::to_owned),
            ..hardware(mac, Some("0000:00:02.0"))
        };
        let first = port(None, Some("p0"));
        assert!(first.is_same(&port(None, Some("p0"))));
        assert!(!first.is_same(&port(None, Some("pf0vf0"))));
        // A record of an earlier version, and a driver that names ports in another way than before.
        assert!(first.is_same(&port(None, None)));
        assert!(port(Some(1), Some("p0")).is_same(&port(Some(1), Some("p0s0"))));
        for name in ["pf0", "pf0vf12", "pf1sf3", "c1pf0vf0"] {
            assert!(port(None, Some(name)).is_representor(), "{name}");
        }
        for name in ["", "p0", "p0s1", "c1", "pfx", "pf0x"] {
            assert!(!port(None, Some(name)).is_representor(), "{name}");
        }
    }

    #[test]
    fn another_driver_is_told_by_what_differs() {
        let driver = |name: &str, version: &str, firmware: Option<&str>| NicDriver {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            firmware: firmware.map(str::to_owned),
        };
        let then = driver("igb", "5.6.0", Some("3.20"));
        let words = |now: NicDriver| {
            let change = OtherDriver::between(Some(&then), Some(&now));
            change.map(|change| change.to_string())
        };
        assert_eq!(words(then.clone()), None);
        assert_eq!(words(driver("igb", "5.6.0", None)), None);
        for (now, expected) in [
            (
                driver("igb", "5.19.4", Some("3.25")),
                "the new driver, igb 5.19.4 instead of 5.6.0",
            ),
            (
                driver("igb", "5.6.0", Some("3.25")),
                "the new firmware, 3.25 instead of 3.20",
            ),
            (
                driver("igc", "1.0", Some("3.20")),
                "the new driver, igc 1.0 instead of igb 5.6.0",
            ),
        ] {
            assert_eq!(words(now).as_deref(), Some(expected));
        }
        assert_eq!(OtherDriver::between(None, Some(&then)), None);
    }

    #[test]
    fn a_virtual_function_is_known_by_its_number_and_never_by_its_mac() {
        let function = |index, mac, bus| Hardware {
            function: Some(FunctionOf {
                of: "0000:01:00.0".to_owned(),
                index,
            }),
            ..hardware(Some(mac), bus)
        };
        let (bus, other_bus) = (Some("0000:01:10.0"), Some("0000:02:10.0"));
        let one = function(0, 1, bus);
        assert!(one.is_same(&function(0, 2, bus)));
        assert!(one.is_same(&function(0, 2, other_bus)));
        assert!(!one.is_same(&function(1, 1, bus)));
        // A record of an earlier version has no number.
        assert!(one.is_same(&hardware(Some(2), bus)));
        assert!(!one.is_same(&hardware(Some(1), other_bus)));
        assert!(!one.is_same(&hardware(Some(1), None)));
    }
}
