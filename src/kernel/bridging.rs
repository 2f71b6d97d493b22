//! What the dump of links lacks of forwarding: entries, and the VLANs and multicast groups of ports of bridges.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::RouteNetlinkMessage;

use super::codec::Dump;
use super::dump::{Names, parsed, whole};
use super::link::{fdb, ports};
use super::{Errno, Error, Socket};
use crate::model::net::limits::{FORWARDING, GROUPS};
use crate::model::net::link::fdb::FdbEntry;
use crate::model::{IfName, Link, Mac};

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

/// Reads the forwarding entries that were added to links that are lost with a NIC, among them the MACs for which a device takes
/// packets besides its own (`bridge fdb add ... self`). The kernel has no dump of one table.
pub(super) fn forwarding(
    socket: &mut Socket,
    links: &mut [Link],
    unsupported: &mut Vec<String>,
) -> Result<(), Error> {
    let has_entries = |link: &Link| link.has_forwarding() || link.is_device();
    if !links.iter().any(has_entries) && bridge_ports(links).is_empty() {
        return Ok(());
    }
    let dump = whole(socket, fdb::list())?;
    forwarding_in(dump, links, unsupported);
    Ok(())
}

pub(super) fn forwarding_in(dump: Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let names: Names = links
        .iter()
        .map(|link| (link.index, link.name.clone()))
        .collect();
    let (ports, macs) = (bridge_ports(links), macs_of(links));
    let entries = parsed(dump, "forwarding entry", unsupported, |object| {
        let RouteNetlinkMessage::NewNeighbour(message) = object else {
            return Ok(None);
        };
        let entry = fdb::parse(&message, &names);
        Ok(entry.map(|entry| (message.header.ifindex, entry)))
    });
    let mut by_link: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for (index, entry) in entries {
        by_link.entry(index).or_default().push(entry);
    }
    for link in links {
        let (has_own, is_port) = (link.has_forwarding(), ports.contains(&link.index));
        let is_device = link.is_device();
        // A link on a device adds its own, too: those of the same namespace are left out.
        let is_added = |entry: &FdbEntry| !entry.lladdr.is_group() && !macs.contains(&entry.lladdr);
        // The kernel adds those for the MACs of a bridge and its ports.
        let is_kernels = |entry: &FdbEntry| {
            entry.state & FdbEntry::PERMANENT != 0 && macs.contains(&entry.lladdr)
        };
        let mut entries = Vec::new();
        for entry in by_link.remove(&link.index).unwrap_or_default() {
            match entry {
                Ok(entry) if entry.master => {
                    entries.extend(Some(entry).filter(|one| is_port && !is_kernels(one)));
                }
                Ok(entry) if has_own || is_device && is_added(&entry) => entries.push(entry),
                Ok(_) => {}
                // A new link has it.
                Err(entry) if !has_own || link.comes_with(&entry) => {}
                Err(entry) => unsupported.push(format!(
                    "forwarding entry {entry} dev {} via a link of another namespace",
                    link.name
                )),
            }
        }
        keep(
            &mut entries,
            FORWARDING,
            "forwarding entries",
            &link.name,
            unsupported,
        );
        link.fdb = entries;
    }
}

/// Cuts off what is more than a file may hold, and names it.
fn keep<T>(
    list: &mut Vec<T>,
    most: usize,
    what: &str,
    dev: &IfName,
    unsupported: &mut Vec<String>,
) {
    if list.len() > most {
        unsupported.push(format!("{} {what} of {dev}", list.len() - most));
        list.truncate(most);
    }
}

fn macs_of(links: &[Link]) -> BTreeSet<Mac> {
    links.iter().filter_map(|link| link.mac).collect()
}

/// The ports of bridges that can be lost with a NIC.
fn bridge_ports(links: &[Link]) -> BTreeSet<u32> {
    let bridges: BTreeSet<&IfName> = links
        .iter()
        .filter(|link| link.is_bridge())
        .map(|bridge| &bridge.name)
        .collect();
    let is_port = |link: &&Link| {
        let mut master = link.master.iter();
        link.can_be_uplink() && master.any(|master| bridges.contains(master))
    };
    let ports = links.iter().filter(is_port);
    ports.map(|port| port.index).collect()
}
