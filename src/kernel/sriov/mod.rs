//! Virtual functions (single root I/O virtualization): their number and drivers by sysfs, their settings by rtnetlink.
//!
//! The files are those of the bus, not of a network device: they are there in every namespace, also for the virtual functions that
//! are inside pods.

mod attributes;
mod files;

use std::collections::BTreeMap;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};

pub use self::attributes::set;
pub use self::files::{bind, rebind, set_autoprobe, set_number, set_override};

use self::files::BusFiles;
use super::codec::text;
use crate::kernel::{Error, Socket};
use crate::model::net::link::nic::VirtualFunction;
use crate::model::{Hardware, Link, LinkKind};

/// The devices that can have virtual functions or be one. A representor has the bus address of the device.
fn with_bus(links: &mut [Link]) -> impl Iterator<Item = &mut Link> {
    links.iter_mut().filter(|link| {
        let hardware = link.hardware.as_ref();
        let is_device = |own: &Hardware| own.bus.is_some() && !own.is_representor();
        link.kind == LinkKind::Physical && hardware.is_some_and(is_device)
    })
}

/// Adds to each virtual function which one of which device it is.
pub(super) fn identify(links: &mut [Link]) -> Result<(), Error> {
    let mut links = with_bus(links).peekable();
    if links.peek().is_none() {
        return Ok(());
    }
    let files = BusFiles::here()?;
    let mut known = BTreeMap::new();
    for hardware in links.filter_map(|link| link.hardware.as_mut()) {
        let bus = hardware.bus.as_deref();
        hardware.function = bus.and_then(|bus| files.function(bus, &mut known));
    }
    Ok(())
}

/// Adds to each device that can have virtual functions how many it has, and their settings. What cannot be read is unsupported.
///
/// # Errors
/// sysfs cannot be read.
pub(super) fn complete(
    socket: &mut Socket,
    links: &mut [Link],
    unsupported: &mut Vec<String>,
) -> Result<(), Error> {
    let mut links = with_bus(links).peekable();
    if links.peek().is_none() {
        return Ok(());
    }
    let files = BusFiles::here()?;
    for link in links {
        let hardware = link.hardware.as_ref();
        let bus = hardware.filter(|own| own.function.is_none());
        let bus = bus.and_then(|own| own.bus.as_deref());
        let Some(mut sriov) = bus.and_then(|bus| files.sriov(bus)) else {
            continue;
        };
        if sriov.vfs > 0 {
            match settings(socket, link.index) {
                Ok(settings) => attributes::merge(&mut sriov.functions, settings),
                Err(error) => unsupported.push(format!(
                    "settings of the virtual functions of {}: {error}",
                    link.name
                )),
            }
        }
        link.nic.get_or_insert_default().sriov = Some(sriov);
    }
    Ok(())
}

/// The virtual functions that the driver of a device describes.
fn settings(socket: &mut Socket, index: u32) -> Result<Vec<VirtualFunction>, Error> {
    let mut request = LinkMessage::default();
    request.header.index = index;
    let mask = vec![LinkExtentMask::Vf, LinkExtentMask::SkipStats];
    request.attributes.push(LinkAttribute::ExtMask(mask));
    let RouteNetlinkMessage::NewLink(link) = socket.get(RouteNetlinkMessage::GetLink(request))?
    else {
        return Ok(Vec::new());
    };
    let raw = link.attributes.iter().find_map(|one| match one {
        LinkAttribute::Other(raw) if text::is(raw, text::IFLA_VFINFO_LIST) => Some(raw),
        _ => None,
    });
    let Some(raw) = raw else {
        return Ok(Vec::new());
    };
    attributes::read(&text::stored(raw).value)
        .ok_or_else(|| Error::Decode("IFLA_VFINFO_LIST is no list of attributes".to_owned()))
}
