//! ethtool(8): identity of a device, and what is set on it (`linux/ethtool.h`, `linux/ethtool_netlink.h`).
//!
//! Generic netlink first, which says in words why it refuses something; ioctl(2) on kernels before 5.6, and for what has no message.
//! All functions are about devices of the calling thread's namespace.

mod bits;
mod dcb;
mod device;
mod features;
mod fields;
mod ioctl;
mod irqs;
mod link_modes;
mod message;
mod queues;
mod read;
mod write;

pub(super) use device::hardware;
pub(crate) use device::nic;
#[cfg(feature = "fuzzing")]
pub(crate) use read::nic_in;
pub(crate) use write::set;

use std::collections::BTreeSet;

use crate::kernel::devlink::DevlinkReader;
use crate::kernel::ethtool::read::NicReader;
use crate::kernel::link::hwmode::HardwareBridges;
use crate::model::NetState;
use crate::model::net::link::nic::{NicGroup, NicState};

/// Adds what is set on them to the physical links of the calling thread's namespace. What cannot be read is unsupported.
pub(super) fn complete(state: &mut NetState) {
    let NetState {
        links, unsupported, ..
    } = state;
    let mut links = links.iter_mut().filter(|link| link.is_device()).peekable();
    if links.peek().is_none() {
        return;
    }
    let mut reader = NicReader::open_here();
    let devlink = DevlinkReader::open_here();
    let bridges = HardwareBridges::open_here();
    let mut devices = BTreeSet::new();
    for link in links {
        let (mut nic, mut unreadable) = reader.read(&link.name);
        let bridge = bridges.of(link.index);
        if !bridge.is_empty() {
            let settings = &mut nic.get_or_insert_default().settings;
            settings.insert(NicGroup::Bridge, bridge);
        }
        let hardware = link.hardware.as_ref().filter(|own| !own.is_representor());
        if let Some(address) = hardware.and_then(|own| own.bus.as_deref()) {
            let (settings, more) = devlink.read(address);
            // Of all ports of a device once.
            if devices.insert(address) {
                unreadable.extend(more);
            }
            if !settings.is_empty() {
                nic.get_or_insert_default().settings.extend(settings);
            }
        }
        // Its virtual functions are read elsewhere.
        let sriov = link.nic.take().and_then(|known| known.sriov);
        link.nic = (nic.is_some() || sriov.is_some()).then(|| {
            let nic = nic.unwrap_or_default();
            Box::new(NicState { sriov, ..nic })
        });
        unsupported.extend(unreadable);
    }
}

#[cfg(test)]
mod fakes;
#[cfg(test)]
mod tests;
