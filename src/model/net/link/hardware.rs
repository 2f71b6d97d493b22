//! The identity of a device.

use serde::{Deserialize, Serialize};

use crate::model::Mac;
use crate::model::net::link::nic::FunctionOf;

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
            (known, None) | (None, known) => known == Some(true),
        }
    }

    /// Whether it is a virtual function of the other one.
    pub(crate) fn is_function_of(&self, other: &Self) -> bool {
        let of = self.function.as_ref().map(|own| &own.of);
        same(of, other.bus.as_ref()).unwrap_or_default()
    }

    /// Whether it can be recognised under another name.
    pub(crate) fn is_known(&self) -> bool {
        self.permanent_mac.is_some() || self.bus.is_some()
    }
}

fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
    Some(a? == b?)
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
            function: None,
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
        assert!(one.is_function_of(&hardware(Some(7), Some("0000:01:00.0"))));
        assert!(!hardware(Some(1), bus).is_function_of(&hardware(None, None)));
    }
}
