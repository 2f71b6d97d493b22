//! Driver, firmware, bus address and permanent MAC of a device.
//!
//! By ioctl(2), because kernels before 5.6 report the permanent MAC nowhere else.

use super::ioctl::{IoctlDevice, words};
use crate::kernel::codec::nested::word;
use crate::model::net::link::NicDriver;
use crate::model::{Hardware, IfName, Link, Mac, Nic};

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GPERMADDR: u32 = 0x20;

/// `struct ethtool_drvinfo`.
pub(super) struct DriverInfo(Vec<u8>);

impl DriverInfo {
    const LENGTH: usize = 196;

    pub fn of(device: &IoctlDevice<'_>) -> Option<Self> {
        let mut request = words(&[ETHTOOL_GDRVINFO]);
        request.resize(Self::LENGTH, 0);
        device.call(&request).ok().map(Self)
    }

    fn driver(&self) -> Option<String> {
        self.text(4)
    }

    fn version(&self) -> Option<String> {
        self.text(36)
    }

    fn firmware(&self) -> Option<String> {
        self.text(68)
    }

    pub fn bus(&self) -> Option<String> {
        self.text(100)
    }

    /// The driver with its versions, where it has a name.
    pub fn whole(&self) -> Option<NicDriver> {
        Some(NicDriver {
            name: self.driver()?,
            version: self.version(),
            firmware: self.firmware(),
        })
    }

    fn text(&self, at: usize) -> Option<String> {
        text(self.0.get(at..at + 32)?)
    }
}

/// Queries a device of the calling thread's namespace; what the driver does not report is `None`.
pub(in crate::kernel) fn hardware(name: &IfName) -> Hardware {
    let Ok(device) = IoctlDevice::open(name) else {
        return Hardware::default();
    };
    let info = DriverInfo::of(&device);
    Hardware {
        permanent_mac: permanent_mac(&device),
        bus: info.as_ref().and_then(DriverInfo::bus),
        driver: info.as_ref().and_then(DriverInfo::driver),
        ..Hardware::default()
    }
}

/// Queries a link of any kind for its driver, bus address, and the versions of driver and firmware.
pub(crate) fn nic(link: &Link) -> Nic {
    let device = IoctlDevice::open(&link.name).ok();
    let info = device.and_then(|device| DriverInfo::of(&device));
    let info = info.as_ref();
    let hardware = link.hardware.as_ref();
    Nic {
        name: link.name.clone(),
        driver: info.and_then(DriverInfo::driver),
        version: info.and_then(DriverInfo::version),
        firmware: info.and_then(DriverInfo::firmware),
        bus: info.and_then(DriverInfo::bus),
        permanent_mac: hardware.and_then(|hardware| hardware.permanent_mac),
        function: hardware.and_then(|hardware| hardware.function.clone()),
        carrier: link.flags.carrier,
    }
}

/// `struct ethtool_perm_addr` with room for an InfiniBand address.
fn permanent_mac(device: &IoctlDevice<'_>) -> Option<Mac> {
    const ROOM: u32 = 32;
    let mut request = words(&[ETHTOOL_GPERMADDR, ROOM]);
    request.resize(8 + ROOM as usize, 0);
    let answer = device.call(&request).ok()?;
    let length = usize::try_from(word(&answer, 4)?).ok()?;
    let bytes = answer.get(8..8_usize.checked_add(length)?)?;
    Mac::from_slice(bytes).filter(|mac| mac.0 != [0; 6])
}

/// A fixed-size C string; `None` when it is empty or `N/A`.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Some(text).filter(|text| !text.is_empty() && text != "N/A")
}
