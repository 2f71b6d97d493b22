//! ethtool(8): driver, firmware, bus address and permanent MAC of a device (linux/ethtool.h).
//!
//! By ioctl(2), because kernels before 5.6 report the permanent MAC nowhere else.

use std::os::fd::OwnedFd;

use super::ifreq;
use crate::model::{Hardware, IfName, Link, Mac, Nic};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GPERMADDR: u32 = 0x20;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rest: [u8; 64],
}

/// `struct ethtool_perm_addr` with room for an InfiniBand address.
#[repr(C)]
struct PermanentAddress {
    command: u32,
    size: u32,
    data: [u8; 32],
}

/// A pointer to one, padded to the size of the union in `struct ifreq`.
#[repr(C)]
struct Data<T> {
    pointer: *mut T,
    rest: [u8; 16],
}

/// Queries a device of the calling thread's namespace; what the driver does not report is `None`.
pub(super) fn hardware(name: &IfName) -> Hardware {
    let Ok(socket) = ifreq::open() else {
        return Hardware::default();
    };
    let info = driver(&socket, name);
    Hardware {
        permanent_mac: permanent_mac(&socket, name),
        bus: info.as_ref().and_then(|info| text(&info.bus)),
        driver: info.as_ref().and_then(|info| text(&info.driver)),
        function: None,
    }
}

/// Queries a link of any kind for its driver, bus address, and the versions of driver and firmware.
pub(crate) fn nic(link: &Link) -> Nic {
    let info = ifreq::open()
        .ok()
        .and_then(|socket| driver(&socket, &link.name));
    let info = info.as_ref();
    let hardware = link.hardware.as_ref();
    Nic {
        name: link.name.clone(),
        driver: info.and_then(|info| text(&info.driver)),
        version: info.and_then(|info| text(&info.version)),
        firmware: info.and_then(|info| text(&info.firmware)),
        bus: info.and_then(|info| text(&info.bus)),
        permanent_mac: hardware.and_then(|hardware| hardware.permanent_mac),
        carrier: link.flags.carrier,
    }
}

fn driver(socket: &OwnedFd, name: &IfName) -> Option<DriverInfo> {
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        bus: [0; 32],
        rest: [0; 64],
    };
    ethtool(socket, name, &mut info)?;
    Some(info)
}

fn permanent_mac(socket: &OwnedFd, name: &IfName) -> Option<Mac> {
    let mut address = PermanentAddress {
        command: ETHTOOL_GPERMADDR,
        size: 32,
        data: [0; 32],
    };
    ethtool(socket, name, &mut address)?;
    let bytes = address.data.get(..usize::try_from(address.size).ok()?)?;
    Mac::from_slice(bytes).filter(|mac| mac.0 != [0; 6])
}

#[allow(unsafe_code)]
fn ethtool<T>(socket: &OwnedFd, name: &IfName, data: &mut T) -> Option<()> {
    let data = Data {
        pointer: &raw mut *data,
        rest: [0; 16],
    };
    // SAFETY: `ifr_data`, padded to the size of the union; it points to the structure that the command in its first word names,
    // alive and exclusively borrowed for the call.
    unsafe { ifreq::ioctl(socket, SIOCETHTOOL, name, data) }
        .ok()
        .map(drop)
}

/// A fixed-size C string; `None` when it is empty or `N/A`.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Some(text).filter(|text| !text.is_empty() && text != "N/A")
}
