//! Links.

use super::attributes::{Collected, each, index, name as name_of, value};
use crate::kernel::conf::devconf;
use crate::kernel::dump::Names;
use crate::model::fidelity::{
    AttributeTable, BOND, BOND_PORT, BRIDGE_PORT, INET6, IPVLAN, LINK, LINK_INFO, MACVLAN, VLAN,
    VXLAN,
};
use crate::model::net::link::port::BACKUP_PORT;
use crate::model::net::link::sysctl::Folder;
use crate::model::raw_object::{LINK_ELSEWHERE, RawKind, RawObject};
use crate::model::{Bytes, IfName, Mac};

/// `struct ifinfomsg` in bytes.
const HEADER: usize = 16;
/// `IFLA_*` (`linux/if_link.h`).
const ADDRESS: u16 = 1;
const IFNAME: u16 = 3;
const LINK_OF: u16 = 5;
const MASTER: u16 = 10;
const LINKINFO: u16 = 18;
const AF_SPEC: u16 = 26;
const NETNSID: u16 = 37;
/// `IFLA_INFO_*`.
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_PORT_KIND: u16 = 4;
const INFO_PORT_DATA: u16 = 5;
/// `AF_*` (`linux/socket.h`), and what they have in `IFLA_AF_SPEC`.
const INET: u16 = 2;
const INET_CONF: u16 = 1;
const INET6_FAMILY: u16 = 10;
const INET6_CONF: u16 = 2;
/// `IFLA_VXLAN_LINK`
const VXLAN_LINK: u16 = 3;
/// `IFF_*` that `ip link set` changes (`linux/if.h`): `UP`, `NOTRAILERS`, `NOARP`, `PROMISC`, `ALLMULTI`, `MULTICAST`, `DYNAMIC`.
const FLAGS: u32 = 0x1 | 0x20 | 0x80 | 0x100 | 0x200 | 0x1000 | 0x8000;

/// The ifindex and the name of a link.
pub(super) fn name((_, body): &(u16, Vec<u8>)) -> Option<(u32, IfName)> {
    let number = index(body.get(4..8)?);
    let name = value(body.get(HEADER..)?, IFNAME)?;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    let name = IfName::try_from(Bytes::from(name.to_vec())).ok()?;
    Some((number, name))
}

/// The ifindex and the MAC of a link.
pub(super) fn mac((_, body): &(u16, Vec<u8>)) -> Option<(u32, Mac)> {
    let number = index(body.get(4..8)?);
    Some((
        number,
        Mac::from_slice(value(body.get(HEADER..)?, ADDRESS)?)?,
    ))
}

/// A link with what can be set on it.
pub(super) fn read(body: &[u8], names: &Names) -> Option<RawObject> {
    let number = index(body.get(4..8)?);
    let flags = index(body.get(8..12)?);
    let name = names.get(&number)?;
    let mut link = Collected::default();
    link.devs.insert(name.clone());
    link.add_field("ifindex", number);
    link.add_field("flags", flags & FLAGS);
    let attributes = &body[HEADER..];
    link.table(&LINK, names, attributes, special);
    // In another namespace it is an ifindex of that one.
    if let Some(parent) = value(attributes, LINK_OF).map(index) {
        if value(attributes, NETNSID).is_none() {
            link.add_dev("IFLA_LINK", names, parent);
        } else {
            link.attributes.remove("IFLA_LINK");
            link.add_field(LINK_ELSEWHERE, parent);
        }
    }
    Some(RawObject {
        what: RawKind::Link,
        name: format!("link {name}"),
        devs: link.devs,
        source: None,
        route: None,
        attributes: link.attributes,
    })
}

fn special(link: &mut Collected, names: &Names, name: &str, number: u16, value: &[u8]) -> bool {
    match number {
        MASTER => link.add_dev(name, names, index(value)),
        LINKINFO => info(link, names, value),
        AF_SPEC => settings(link, names, value),
        _ => return false,
    }
    true
}

/// `IFLA_LINKINFO`: the kind of a link, and of what it is a port of, each with its data.
fn info(link: &mut Collected, names: &Names, info: &[u8]) {
    let text = |number| {
        let text = value(info, number);
        text.map(|text| text.strip_suffix(&[0]).unwrap_or(text))
    };
    let (kind, port_of) = (text(INFO_KIND), text(INFO_PORT_KIND));
    let table: Option<&AttributeTable> = match kind {
        Some(b"macvlan" | b"macvtap") => Some(&MACVLAN),
        Some(b"ipvlan" | b"ipvtap") => Some(&IPVLAN),
        Some(b"vlan") => Some(&VLAN),
        Some(b"vxlan") => Some(&VXLAN),
        Some(b"bond") => Some(&BOND),
        _ => None,
    };
    let port: Option<&AttributeTable> = match port_of {
        Some(b"bond") => Some(&BOND_PORT),
        Some(b"bridge") => Some(&BRIDGE_PORT),
        _ => None,
    };
    for (number, data) in each(info) {
        match (number, table, port) {
            (INFO_DATA, Some(table), _) => link.table(table, names, data, on_vxlan),
            (INFO_PORT_DATA, _, Some(table)) => link.table(table, names, data, on_port),
            (INFO_PORT_DATA | INFO_PORT_KIND, ..) => {}
            _ => {
                if let Some(name) = name_of(&LINK_INFO, number) {
                    link.add(name, data);
                }
            }
        }
    }
}

/// The backup of a port of a bridge is an ifindex.
fn on_port(link: &mut Collected, names: &Names, name: &str, number: u16, value: &[u8]) -> bool {
    let is_backup = number == BACKUP_PORT && name == "backup_port";
    if is_backup {
        link.add_dev(name, names, index(value));
    }
    is_backup
}

/// The device of a vxlan is an ifindex.
fn on_vxlan(link: &mut Collected, names: &Names, name: &str, number: u16, value: &[u8]) -> bool {
    let is_device = number == VXLAN_LINK && name == "IFLA_VXLAN_LINK";
    if is_device {
        link.add_dev(name, names, index(value));
    }
    is_device
}

/// `IFLA_AF_SPEC`: the settings of `/proc/sys/net/ipv4/conf` and `ipv6/conf` as arrays, and IPv6's own attributes.
fn settings(link: &mut Collected, names: &Names, families: &[u8]) {
    for (family, attributes) in each(families) {
        match family {
            INET => {
                let conf = value(attributes, INET_CONF).unwrap_or_default();
                numbers(link, Folder::Ipv4Conf, conf);
            }
            INET6_FAMILY => link.table(&INET6, names, attributes, conf6),
            _ => link.add(format!("IFLA_AF_SPEC of family {family}"), attributes),
        }
    }
}

fn conf6(link: &mut Collected, _: &Names, _: &str, number: u16, value: &[u8]) -> bool {
    if number == INET6_CONF {
        numbers(link, Folder::Ipv6Conf, value);
    }
    number == INET6_CONF
}

/// An array of settings, each by the name of its file.
fn numbers(link: &mut Collected, folder: Folder, conf: &[u8]) {
    let names = devconf::names(folder);
    for (at, value) in conf.chunks_exact(size_of::<u32>()).enumerate() {
        match names.get(at) {
            Some(&"mc_forwarding") => {}
            Some(name) => link.add(format!("{}/{name}", folder.as_str()), value),
            None => link.add(format!("{}/{at}", folder.as_str()), value),
        }
    }
}
