//! What the dump of links lacks of forwarding: entries, and the VLANs and multicast groups of ports of bridges.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::codec::Dump;
use super::dump::{Names, parsed, whole};
use super::link::{fdb, ports, vlan_options};
use super::plain::PlainSocket;
use super::{Errno, Error, Socket};
use crate::model::net::limits::{FORWARDING, GROUPS};
use crate::model::net::link::fdb::FdbEntry;
use crate::model::{IfName, Link, Mac, Parent};

/// Reads the VLANs of the ports of bridges, where one can be lost with a NIC or the bridge filters by them, and the multicast groups.
pub(super) fn read(
    socket: &mut Socket,
    links: &mut [Link],
    unsupported: &mut Vec<String>,
) -> Result<(), Error> {
    if !bridge_ports(links).is_empty() || links.iter().any(|link| link.vlan_filtering) {
        vlans_in(whole(socket, ports::list())?, links, unsupported);
        unsupported.extend(options(links));
    } else if all_ports(links).is_empty() && !links.iter().any(Link::has_forwarding) {
        return Ok(());
    }
    let groups = match socket.dump(ports::list_groups()) {
        // A kernel without multicast snooping.
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(()),
        dump => dump?,
    };
    groups_in(&groups, links, unsupported);
    Ok(())
}

/// What is set for single VLANs of ports of bridges that can be lost with a NIC, in words.
fn options(links: &[Link]) -> Vec<String> {
    let has_vlans = |link: &Link| link.vlans.as_ref().is_some_and(|vlans| !vlans.is_empty());
    if !links.iter().any(has_vlans) {
        return Vec::new();
    }
    let socket = PlainSocket::open(NETLINK_ROUTE).map_err(|error| error.to_string());
    let dump = socket.and_then(|socket| {
        let dump = socket.dump(vlan_options::GET, &vlan_options::ALL);
        dump.or_else(|errno| match errno {
            // Before Linux 5.6.
            Errno::EOPNOTSUPP => Ok(Vec::new()),
            errno => Err(errno.to_string()),
        })
    });
    match dump {
        Ok(dump) => options_in(&dump, links),
        Err(error) => vec![format!("options of VLANs of ports cannot be read: {error}")],
    }
}

fn options_in(dump: &[Vec<u8>], links: &[Link]) -> Vec<String> {
    let (known, names) = (bridge_ports(links), by_index(links));
    let words = dump.iter().filter_map(|message| {
        let (index, options) = vlan_options::words(message)?;
        let port = names.get(&index).filter(|_| known.contains(&index))?;
        Some(format!("VLAN options of {port}: {options}"))
    });
    words.collect()
}

pub(super) fn vlans_in(dump: Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let known = all_ports(links);
    let read = parsed(dump, "VLANs of a port", unsupported, |object| {
        let RouteNetlinkMessage::NewLink(message) = object else {
            return Ok(None);
        };
        let index = message.header.index;
        let read = || Ok(ports::vlans(&message)?.map(|vlans| (index, vlans)));
        known.contains(&index).then(read).unwrap_or(Ok(None))
    });
    let mut ports: BTreeMap<u32, &mut Link> =
        links.iter_mut().map(|link| (link.index, link)).collect();
    for (index, (vlans, has_tunnels)) in read {
        let Some(port) = ports.get_mut(&index) else {
            continue;
        };
        if has_tunnels {
            unsupported.push(format!("VLANs of tunnels of {}", port.name));
        }
        port.vlans = Some(vlans);
    }
}

pub(super) fn groups_in(dump: &Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let known = all_ports(links);
    let groups = dump.groups.iter().flat_map(ports::groups);
    let mut of_tunnels = BTreeMap::<&IfName, usize>::new();
    let tunnels = links.iter().filter(|link| link.has_forwarding());
    let tunnels: BTreeMap<u32, IfName> = tunnels
        .map(|link| (link.index, link.name.clone()))
        .collect();
    let mut ports: BTreeMap<u32, &mut Link> =
        links.iter_mut().map(|link| (link.index, link)).collect();
    for (index, entry) in groups {
        if let Some(tunnel) = tunnels.get(&index) {
            *of_tunnels.entry(tunnel).or_default() += 1;
        }
        let port = ports.get_mut(&index).filter(|_| known.contains(&index));
        let Some(port) = port else {
            continue;
        };
        match entry {
            Ok(entry) => port.mdb.push(entry),
            Err(what) => unsupported.push(format!("{what} of {}", port.name)),
        }
    }
    for (tunnel, entries) in of_tunnels {
        unsupported.push(format!(
            "{entries} multicast entries of {tunnel} (bridge mdb)"
        ));
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

/// Reads the forwarding entries that were added to links that are lost with a NIC, among them the MACs for which a link takes
/// packets besides its own. The kernel has no dump of one table. Returns what bridges with several uplinks have learnt.
pub(super) fn forwarding(
    socket: &mut Socket,
    links: &mut [Link],
    unsupported: &mut Vec<String>,
) -> Result<Vec<(IfName, Mac)>, Error> {
    let has_entries = |link: &Link| link.has_forwarding() || link.has_filter();
    if !links.iter().any(has_entries) && all_ports(links).is_empty() {
        return Ok(Vec::new());
    }
    let dump = whole(socket, fdb::list())?;
    let uplinks = uplinks_of_several(links);
    let learned = fdb::learned(&dump, &uplinks).take(FORWARDING).collect();
    forwarding_in(dump, links, unsupported);
    Ok(learned)
}

/// The ports of bridges with several of them that can be lost with a NIC.
pub(super) fn uplinks_of_several(links: &[Link]) -> Names {
    let ports = bridge_ports(links);
    let ports = links.iter().filter(|link| ports.contains(&link.index));
    let masters: Vec<_> = ports.clone().map(|port| &port.master).collect();
    let count = |master| masters.iter().filter(|one| **one == master).count();
    let several = ports.filter(|port| count(&port.master) > 1);
    several.map(|one| (one.index, one.name.clone())).collect()
}

pub(super) fn forwarding_in(dump: Dump, links: &mut [Link], unsupported: &mut Vec<String>) {
    let names = by_index(links);
    let (ports, macs) = (all_ports(links), macs_of(links));
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
    let above = of_links_above(links, &by_link);
    for link in links {
        let (has_own, is_port) = (link.has_forwarding(), ports.contains(&link.index));
        let has_filter = link.has_filter();
        // A link on another adds its own to it, and what was added to its own filter: those of the same namespace are left out.
        let is_added = |entry: &FdbEntry| {
            let is_of_above = above.contains(&(link.index, entry.lladdr));
            !entry.lladdr.is_group() && !macs.contains(&entry.lladdr) && !is_of_above
        };
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
                Ok(entry) if has_own || has_filter && is_added(&entry) => entries.push(entry),
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

/// The entries of links that are on another link of the namespace, or that have it as a port: each with the index of that link, which
/// has them too (`dev_uc_sync`).
fn of_links_above(
    links: &[Link],
    entries: &BTreeMap<u32, Vec<Result<FdbEntry, FdbEntry>>>,
) -> BTreeSet<(u32, Mac)> {
    let indexes = links.iter().map(|link| (&link.name, link.index));
    let indexes: BTreeMap<&IfName, u32> = indexes.collect();
    let mut ports: BTreeMap<&IfName, Vec<u32>> = BTreeMap::new();
    for link in links {
        if let Some(master) = &link.master {
            ports.entry(master).or_default().push(link.index);
        }
    }
    let mut all = BTreeSet::new();
    for upper in links.iter().filter(|link| link.has_filter()) {
        let own = entries.get(&upper.index).into_iter().flatten().flatten();
        let own: Vec<Mac> = own
            .filter(|entry| !entry.master)
            .map(|entry| entry.lladdr)
            .collect();
        let parent = match &upper.parent {
            Some(Parent::Own(name)) => indexes.get(name),
            _ => None,
        };
        for lower in ports.get(&upper.name).into_iter().flatten().chain(parent) {
            all.extend(own.iter().map(|mac| (*lower, *mac)));
        }
    }
    all
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

fn by_index(links: &[Link]) -> Names {
    let names = links.iter().map(|link| (link.index, link.name.clone()));
    names.collect()
}

fn macs_of(links: &[Link]) -> BTreeSet<Mac> {
    links.iter().filter_map(|link| link.mac).collect()
}

/// The ports of bridges that can be lost with a NIC.
fn bridge_ports(links: &[Link]) -> BTreeSet<u32> {
    ports_of(links, Link::can_be_uplink)
}

/// These, and the ports that are ends of pairs: the entries of the latter are read to be named in a snapshot, and no restore adds them.
fn all_ports(links: &[Link]) -> BTreeSet<u32> {
    ports_of(links, |link| link.can_be_uplink() || link.is_pair())
}

fn ports_of(links: &[Link], is_wanted: impl Fn(&Link) -> bool) -> BTreeSet<u32> {
    let bridges: BTreeSet<&IfName> = links
        .iter()
        .filter(|link| link.is_bridge())
        .map(|bridge| &bridge.name)
        .collect();
    let is_port = |link: &&Link| {
        let mut master = link.master.iter();
        is_wanted(link) && master.any(|master| bridges.contains(master))
    };
    let ports = links.iter().filter(is_port);
    ports.map(|port| port.index).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::kernel::codec::nested::Nested;
    use crate::kernel::plain::genl::ask;
    use crate::kernel::{netns, state};
    use crate::model::LinkKind;

    fn run(program: &str, arguments: &str) {
        let mut command = Command::new(program);
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{program} {arguments}: {output:?}");
    }

    fn unsupported() -> Vec<String> {
        let mut socket = Socket::open_here().unwrap();
        let state = state::whole(&mut socket, None).unwrap();
        state.unsupported
    }

    /// `bridge mdb add dev … port … grp 239.1.1.1 dst 198.51.100.1 permanent` with the link as its own port, for which bridge(8) is
    /// new enough only since 6.3.
    fn add_to_vxlan(index: u32) -> Result<(), Errno> {
        /// `NLM_F_CREATE`, `NLM_F_EXCL`, `NLM_F_ACK`.
        const CREATE_EXCL_ACK: u16 = 0x400 | 0x200 | 4;
        let (permanent, ipv4) = ([1, 0, 0, 0], [8, 0, 0, 0]);
        let group = [[239, 1, 1, 1], [0; 4], [0; 4], [0; 4]].concat();
        let entry = [&index.to_ne_bytes()[..], &permanent, &group, &ipv4].concat();
        let mut options = Nested::default();
        options.push(5, vec![198, 51, 100, 1]);
        let mut attributes = Nested::default();
        attributes.push(1, entry);
        attributes.push(2 | 0x8000, options.bytes());
        let header = [&[7, 0, 0, 0][..], &index.to_ne_bytes()].concat();
        let body = [header, attributes.bytes()].concat();
        let socket = PlainSocket::open(NETLINK_ROUTE).unwrap();
        let answer = ask(&socket, 84, CREATE_EXCL_ACK, &[body])?.remove(0);
        answer.map(drop).map_err(|error| error.errno)
    }

    /// A message of the `AF_BRIDGE` dump about port 2 of bridge 9, with this in its `IFLA_AF_SPEC`.
    fn about_port(spec: &[(u16, &[u8])]) -> Vec<u8> {
        let mut inside = Nested::default();
        for (number, value) in spec {
            inside.push(*number, value.to_vec());
        }
        let mut attributes = Nested::default();
        attributes.push(3, b"eth0\0".to_vec());
        attributes.push(10, 9_u32.to_ne_bytes().to_vec());
        attributes.push(26, inside.bytes());
        let header = [&[7, 0, 1, 0, 2, 0, 0, 0][..], &[0; 8]].concat();
        let mut message = Vec::new();
        let body = [header, attributes.bytes()].concat();
        crate::kernel::plain::put(libc::RTM_NEWLINK, 0, 1, &body, &mut message);
        message
    }

    /// ice and mlx5, and i40e and ixgbe with virtual functions, answer the dump beside the bridge: with a mode, and some with VLANs of
    /// their own.
    #[test]
    fn a_message_of_the_driver_takes_no_vlans_from_the_one_of_the_bridge() {
        let of_bridge = about_port(&[(2, &[6, 0, 10, 0]), (2, &[0, 0, 20, 0])]);
        let of_driver = [
            about_port(&[(0, &[2, 0]), (1, &[0, 0])]),
            about_port(&[(0, &[2, 0]), (1, &[1, 0]), (2, &[6, 0, 1, 0])]),
        ];
        for of_driver in of_driver {
            for dump in [[&of_bridge, &of_driver], [&of_driver, &of_bridge]] {
                let port = Link {
                    index: 2,
                    master: Some("br0".parse().unwrap()),
                    ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
                };
                let bridge = Link::plain("br0".parse().unwrap(), LinkKind::other("bridge"));
                let mut links = [port, bridge];
                let bytes = dump.map(Vec::as_slice).concat();
                let mut unsupported = Vec::new();
                let dump = crate::kernel::codec::decode_dump(&bytes).unwrap();
                vlans_in(dump, &mut links, &mut unsupported);
                assert_eq!(unsupported, [""; 0]);
                let vlans = links[0].vlans.clone().unwrap();
                let ids: Vec<u16> = vlans.iter().map(|vlans| vlans.first.into()).collect();
                assert_eq!(ids, [10, 20]);
            }
        }
    }

    #[test]
    fn multicast_entries_of_a_vxlan_are_named() {
        netns::in_new(|| {
            run("ip", "link add v0 type veth peer v1");
            run(
                "ip",
                "link add x0 type vxlan dev v0 id 7 dstport 4789 local 192.0.2.1",
            );
            assert_eq!(unsupported(), [""; 0]);
            let index = nix::net::if_::if_nametoindex("x0").unwrap();
            match add_to_vxlan(index) {
                Ok(()) => assert_eq!(unsupported(), ["1 multicast entries of x0 (bridge mdb)"]),
                // Before Linux 6.4.
                Err(errno) => assert_eq!(errno, Errno::EOPNOTSUPP),
            }
        })
        .unwrap();
    }
}
