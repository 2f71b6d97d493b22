//! What ports of bridges have in tables that the dump of links lacks.

use netlink_packet_route::RouteNetlinkMessage;

use super::codec::Dump;
use super::dump::{bridge_ports, keep, parsed, whole};
use super::link::ports;
use super::{Errno, Error, Socket};
use crate::model::Link;
use crate::model::net::limits::GROUPS;

/// Reads the VLANs and the multicast groups of the ports of bridges that can be lost with a NIC.
pub(super) fn read(
    socket: &mut Socket,
    links: &mut [Link],
    unsupported: &mut Vec<String>,
) -> Result<(), Error> {
    if bridge_ports(links).is_empty() {
        return Ok(());
    }
    vlans_in(whole(socket, ports::list())?, links, unsupported);
    let groups = match socket.dump(ports::list_groups()) {
        // A kernel without multicast snooping.
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(()),
        dump => dump?,
    };
    groups_in(&groups, links, unsupported);
    Ok(())
}

pub(super) fn vlans_in(dump: Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let known = bridge_ports(links);
    let read = parsed(dump, "VLANs of a port", unsupported, |object| {
        let RouteNetlinkMessage::NewLink(message) = object else {
            return Ok(None);
        };
        let index = message.header.index;
        let read = || Ok(Some((index, ports::vlans(&message)?)));
        known.contains(&index).then(read).unwrap_or(Ok(None))
    });
    for (index, (vlans, has_tunnels)) in read {
        let Some(port) = links.iter_mut().find(|link| link.index == index) else {
            continue;
        };
        if has_tunnels {
            unsupported.push(format!("VLANs of tunnels of {}", port.name));
        }
        port.vlans = Some(vlans);
    }
}

pub(super) fn groups_in(dump: &Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let known = bridge_ports(links);
    let groups = dump.groups.iter().flat_map(ports::groups);
    for (index, entry) in groups.filter(|(index, _)| known.contains(index)) {
        let Some(port) = links.iter_mut().find(|link| link.index == index) else {
            continue;
        };
        match entry {
            Ok(entry) => port.mdb.push(entry),
            Err(what) => unsupported.push(format!("{what} of {}", port.name)),
        }
    }
    for port in links {
        port.mdb.sort();
        keep(
            &mut port.mdb,
            GROUPS,
            "multicast groups",
            &port.name,
            unsupported,
        );
    }
}
