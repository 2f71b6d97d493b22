//! What programs have on the links of a namespace and lose with them, from `/proc/net`: no netlink dump has it on all kernels.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::net::link::socket::{LinkSocket, SocketKind};
use crate::model::net::link::sysctl::SysctlKey;
use crate::model::{Address, IfName, IpFamily, Link, LinkKind};

/// More of one file are not read: a tenant may make any number.
const MOST: usize = 16 << 10;

/// What is on these links of the calling thread's namespace, beyond what the kernel makes itself; and the packet sockets that have
/// lost their link. What a kernel without IPv6 or multicast routing does not have is empty.
pub(crate) fn read(links: &[Link], addresses: &[Address]) -> io::Result<Vec<LinkSocket>> {
    let tables = Tables::new(links, addresses);
    let mut sockets = tables.packet(&file("packet")?);
    sockets.extend(tables.igmp(&file("igmp")?));
    sockets.extend(tables.igmp6(&file("igmp6")?));
    sockets.extend(tables.anycast6(&file("anycast6")?));
    sockets.extend(tables.routing(IpFamily::V4, &file("ip_mr_vif")?));
    sockets.extend(tables.routing(IpFamily::V6, &file("ip6_mr_vif")?));
    sockets.sort();
    sockets.dedup();
    Ok(sockets)
}

/// The packet sockets alone.
pub(crate) fn read_packet(links: &[Link]) -> io::Result<Vec<LinkSocket>> {
    Ok(Tables::new(links, &[]).packet(&file("packet")?))
}

/// A table of the calling thread's namespace, in which only the names of links may have any bytes.
fn file(name: &str) -> io::Result<Vec<u8>> {
    // One that grows would be read in small parts.
    let mut bytes = Vec::with_capacity(4096);
    match File::open(format!("/proc/thread-self/net/{name}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => drop(file?.read_to_end(&mut bytes)?),
    }
    Ok(bytes)
}

/// The tables of a namespace, and its links.
struct Tables<'a> {
    links: HashMap<u32, &'a Link>,
    addresses: &'a [Address],
}

impl<'a> Tables<'a> {
    fn new(links: &'a [Link], addresses: &'a [Address]) -> Self {
        let links = links.iter();
        let links = links.filter(|link| link.kind != LinkKind::Loopback);
        Self {
            links: links.map(|link| (link.index, link)).collect(),
            addresses,
        }
    }

    /// Columns: `sk RefCnt Type Proto Iface R Rmem User Inode`. A socket that is bound to no link has Iface 0, one that has
    /// lost its link -1 (`packet_notifier` in `net/packet/af_packet.c`).
    fn packet(&self, table: &[u8]) -> Vec<LinkSocket> {
        let sockets = rows(table).skip(1).filter_map(|row| {
            let dev = match number::<i64>(&row, 4)? {
                -1 => None,
                index => Some(self.name(u32::try_from(index).ok()?)?),
            };
            let inode = number(&row, 8)?;
            Some(LinkSocket {
                dev,
                kind: SocketKind::Packet { inode },
            })
        });
        sockets.take(MOST).collect()
    }

    /// A line of a link (index, name) and, indented, those of its groups (group in the order of the machine, users, timer).
    fn igmp(&self, table: &[u8]) -> Vec<LinkSocket> {
        const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
        let mut sockets = Vec::new();
        let mut index = 0;
        for line in table.split(|byte| *byte == b'\n').skip(1) {
            let row = words(line);
            if !line.starts_with(b"\t") {
                index = number(&row, 0).unwrap_or_default();
                continue;
            }
            let group = text(&row, 0).and_then(|text| u32::from_str_radix(text, 16).ok());
            let Some(group) = group.map(|group| Ipv4Addr::from(group.to_ne_bytes())) else {
                continue;
            };
            let dev = self.name(index).filter(|_| group != ALL_HOSTS);
            let kind = SocketKind::Group {
                index,
                group: IpAddr::V4(group),
            };
            sockets.extend(dev.map(|dev| LinkSocket {
                dev: Some(dev),
                kind,
            }));
        }
        sockets.truncate(MOST);
        sockets
    }

    /// Columns: index, name, group, users, flags, timer.
    fn igmp6(&self, table: &[u8]) -> Vec<LinkSocket> {
        let sockets = rows(table).filter_map(|row| {
            let (index, group) = (number(&row, 0)?, ipv6(&row, 2)?);
            let link = self.links.get(&index)?;
            (!is_joined_by_kernel(group, forwards(link))).then(|| LinkSocket {
                dev: Some(link.name.clone()),
                kind: SocketKind::Group {
                    index,
                    group: IpAddr::V6(group),
                },
            })
        });
        sockets.take(MOST).collect()
    }

    /// The same columns. A router has the anycast address of each of its subnets (`addrconf_join_anycast`).
    fn anycast6(&self, table: &[u8]) -> Vec<LinkSocket> {
        let is_of_router = |link: &Link, group: Ipv6Addr| {
            let own = self.addresses.iter().filter(|one| one.dev == link.name);
            let mut subnets = own.filter_map(|one| {
                let net = ipnet::IpNet::new(one.local, one.prefix_len).ok()?;
                Some(net.network())
            });
            forwards(link) && (subnets.any(|net| net == IpAddr::V6(group)) || is_link_local(group))
        };
        let sockets = rows(table).filter_map(|row| {
            let (index, group) = (number(&row, 0)?, ipv6(&row, 2)?);
            let link = self.links.get(&index)?;
            (!is_of_router(link, group)).then(|| LinkSocket {
                dev: Some(link.name.clone()),
                kind: SocketKind::Anycast { index, group },
            })
        });
        sockets.take(MOST).collect()
    }

    /// Columns: number, name, counters.
    fn routing(&self, family: IpFamily, table: &[u8]) -> Vec<LinkSocket> {
        let sockets = rows(table).skip(1).filter_map(|row| {
            let name = *row.get(1)?;
            let mut links = self.links.values();
            let link = links.find(|link| link.name.as_bytes() == name)?;
            Some(LinkSocket {
                dev: Some(link.name.clone()),
                kind: SocketKind::Routing { family },
            })
        });
        sockets.take(MOST).collect()
    }

    fn name(&self, index: u32) -> Option<IfName> {
        self.links.get(&index).map(|link| link.name.clone())
    }
}

/// Whether a link is in this group without a program, and a new link will be too.
fn is_joined_by_kernel(group: Ipv6Addr, forwards: bool) -> bool {
    match group.segments() {
        // All nodes, and the solicited-node group of an address.
        [0xff01 | 0xff02, 0, 0, 0, 0, 0, 0, 1] | [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _] => {
            true
        }
        // All routers.
        [0xff01 | 0xff02 | 0xff05, 0, 0, 0, 0, 0, 0, 2] => forwards,
        _ => false,
    }
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn forwards(link: &Link) -> bool {
    const FORWARDING: SysctlKey = SysctlKey::known("forwarding");
    link.sysctls.ipv6.get(&FORWARDING) == Some(&1)
}

fn rows(table: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    table.split(|byte| *byte == b'\n').map(words)
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty()).collect()
}

fn text<'a>(row: &[&'a [u8]], at: usize) -> Option<&'a str> {
    str::from_utf8(row.get(at)?).ok()
}

fn number<T: std::str::FromStr>(row: &[&[u8]], at: usize) -> Option<T> {
    text(row, at)?.parse().ok()
}

/// 32 hexadecimal digits.
fn ipv6(row: &[&[u8]], at: usize) -> Option<Ipv6Addr> {
    let digits = text(row, at).filter(|text| text.len() == 32)?;
    u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Vec<Link> {
        let mut link = Link::plain("eth0".parse().unwrap(), LinkKind::Physical);
        link.index = 3;
        vec![link]
    }

    fn shown(sockets: &[LinkSocket]) -> Vec<String> {
        let text = |one| serde_json::to_string(one).unwrap();
        sockets.iter().map(text).collect()
    }

    #[test]
    fn groups_beyond_the_kernels_own_are_of_programs() {
        let links = links();
        let tables = Tables::new(&links, &[]);
        let igmp = b"Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
            1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
            3\teth0      :     2      V3\n\t\t\t\t070707EF     1 0:00000000\t\t0\n\
            \t\t\t\t010000E0     1 0:00000000\t\t0\n";
        let expected = if cfg!(target_endian = "little") {
            "239.7.7.7"
        } else {
            "7.7.7.239"
        };
        assert_eq!(
            shown(&tables.igmp(igmp)),
            [format!(
                r#"{{"dev":"eth0","kind":"group","index":3,"group":"{expected}"}}"#
            )]
        );
        let igmp6 = b"1    lo              ff150000000000000000000000850005     1 00000004 0\n\
            3    eth0            ff150000000000000000000000850005     1 00000004 0\n\
            3    eth0            ff0200000000000000000001ff2ccaf3     1 00000004 0\n\
            3    eth0            ff020000000000000000000000000002     1 00000004 0\n\
            3    eth0            ff020000000000000000000000000001     1 0000000C 0\n\
            3    eth0            ff010000000000000000000000000001     1 00000008 0\n";
        assert_eq!(
            shown(&tables.igmp6(igmp6)),
            [
                r#"{"dev":"eth0","kind":"group","index":3,"group":"ff15::85:5"}"#,
                r#"{"dev":"eth0","kind":"group","index":3,"group":"ff02::2"}"#,
            ]
        );
    }

    #[test]
    fn a_packet_socket_is_on_a_link_on_none_or_has_lost_it() {
        let links = links();
        let table = b"sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
            00000000daf71874 3      3    88b5   3     1 0      0      35433975\n\
            00000000daf71875 3      3    88b5   0     1 0      0      35433976\n\
            00000000daf71876 2      3    88b5   -1    0 0      0      35433977\n";
        assert_eq!(
            shown(&Tables::new(&links, &[]).packet(table)),
            [
                r#"{"dev":"eth0","kind":"packet","inode":35433975}"#,
                r#"{"kind":"packet","inode":35433977}"#,
            ]
        );
    }

    #[test]
    fn a_multicast_router_has_links_by_their_names() {
        let links = links();
        let table = b"Interface      BytesIn  PktsIn  BytesOut PktsOut Flags Local    Remote\n \
            0 eth0              0       0         0       0 00000 0100000A 00000000\n \
            1 pimreg            0       0         0       0 00004 00000000 00000000\n";
        assert_eq!(
            shown(&Tables::new(&links, &[]).routing(IpFamily::V4, table)),
            [r#"{"dev":"eth0","kind":"routing","family":"inet"}"#]
        );
    }
}
