//! VLANs and multicast groups of ports of bridges (`bridge vlan`, `bridge mdb`): between rtnetlink messages and the model.

use std::net::IpAddr;

use netlink_packet_core::{DefaultNla, NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::link::{
    AfSpecBridge, BridgeVlanInfo, BridgeVlanInfoFlags, LinkAttribute, LinkExtentMask, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::Request;
use crate::kernel::codec::message::{MdbMessage, RTM_GETMDB, RTM_NEWMDB};
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::text;
use crate::model::Mac;
use crate::model::net::link::VlanId;
use crate::model::net::link::port::{MdbEntry, MulticastGroup, PortVlans};

/// `IFLA_BRIDGE_FLAGS`, `…_VLAN_INFO` and `…_VLAN_TUNNEL_INFO` in the `IFLA_AF_SPEC` of a message about a port (`linux/if_bridge.h`).
const FLAGS: u16 = 0;
const VLAN_INFO: u16 = 2;
const TUNNEL_INFO: u16 = 3;
/// `BRIDGE_FLAGS_SELF`: the message is of the device's driver. The bridge sends another one about the same port.
const SELF: u16 = 2;

/// The request for a dump of all ports of bridges with their VLANs.
pub(in crate::kernel) fn list() -> RouteNetlinkMessage {
    let mut request = LinkMessage::default();
    request.header.interface_family = AddressFamily::Bridge;
    let mask = vec![LinkExtentMask::BrvlanCompressed];
    request.attributes.push(LinkAttribute::ExtMask(mask));
    RouteNetlinkMessage::GetLink(request)
}

/// The VLANs that the bridge of a port has for it, and whether they are also those of tunnels; `None` for a message of the port's
/// driver, which may have VLANs of its embedded switch.
pub(in crate::kernel) fn vlans(
    message: &LinkMessage,
) -> Result<Option<(Vec<PortVlans>, bool)>, String> {
    let spec = message.attributes.iter().find_map(|one| match one {
        LinkAttribute::Other(raw) if text::is(raw, text::IFLA_AF_SPEC) => Some(text::stored(raw)),
        _ => None,
    });
    let Some(spec) = spec else {
        return Ok(Some((Vec::new(), false)));
    };
    let strange = || "the VLANs cannot be decoded".to_owned();
    let spec = Nested::parse(&spec.value).ok_or_else(strange)?;
    if is_of_driver(&spec) {
        return Ok(None);
    }
    let infos = spec
        .all(VLAN_INFO)
        .map(|info| BridgeVlanInfo::try_from(info).ok());
    let infos: Option<Vec<_>> = infos.collect();
    let vlans = ranges(infos.ok_or_else(strange)?).ok_or_else(strange)?;
    Ok(Some((vlans, spec.get(TUNNEL_INFO).is_some())))
}

/// Whether the driver of a port sent this `IFLA_AF_SPEC` (`ndo_dflt_bridge_getlink` in `net/core/rtnetlink.c`).
pub(in crate::kernel) fn is_of_driver(spec: &Nested) -> bool {
    let flags = spec.get(FLAGS).and_then(|flags| flags.try_into().ok());
    flags.is_some_and(|flags| u16::from_ne_bytes(flags) & SELF != 0)
}

fn ranges(infos: Vec<BridgeVlanInfo>) -> Option<Vec<PortVlans>> {
    let mut vlans = Vec::new();
    let mut begin = None;
    for BridgeVlanInfo { flags, vid } in infos {
        let id = VlanId::try_from(vid).ok()?;
        if flags.contains(BridgeVlanInfoFlags::RangeBegin) {
            begin = Some(id);
            continue;
        }
        let is_end = flags.contains(BridgeVlanInfoFlags::RangeEnd);
        vlans.push(PortVlans {
            first: begin.take().filter(|_| is_end).unwrap_or(id),
            last: id,
            pvid: flags.contains(BridgeVlanInfoFlags::Pvid),
            untagged: flags.contains(BridgeVlanInfoFlags::Untagged),
        });
    }
    Some(vlans)
}

/// `bridge vlan add dev`, for each of these.
pub fn add_vlans(index: u32, vlans: &[PortVlans]) -> Request {
    Request::new(RouteNetlinkMessage::SetLink(vlan_message(index, vlans)), 0)
}

/// `bridge vlan del dev`, for each of these.
pub fn delete_vlans(index: u32, vlans: &[PortVlans]) -> Request {
    Request::new(RouteNetlinkMessage::DelLink(vlan_message(index, vlans)), 0)
}

fn vlan_message(index: u32, vlans: &[PortVlans]) -> LinkMessage {
    let mut infos = Vec::new();
    for vlans in vlans {
        let mut flags = BridgeVlanInfoFlags::empty();
        flags.set(BridgeVlanInfoFlags::Pvid, vlans.pvid);
        flags.set(BridgeVlanInfoFlags::Untagged, vlans.untagged);
        let mut push = |id: VlanId, more| {
            infos.push(AfSpecBridge::VlanInfo(BridgeVlanInfo {
                flags: flags | more,
                vid: id.into(),
            }));
        };
        if vlans.first == vlans.last {
            push(vlans.first, BridgeVlanInfoFlags::empty());
        } else {
            push(vlans.first, BridgeVlanInfoFlags::RangeBegin);
            push(vlans.last, BridgeVlanInfoFlags::RangeEnd);
        }
    }
    let mut message = LinkMessage::default();
    message.header.interface_family = AddressFamily::Bridge;
    message.header.index = index;
    message.attributes = vec![LinkAttribute::AfSpecBridge(infos)];
    message
}

/// `MDBA_MDB`, `MDBA_MDB_ENTRY`, `MDBA_MDB_ENTRY_INFO`, each in the one before (`linux/if_bridge.h`).
const MDB: u16 = 1;
const MDB_ENTRY: u16 = 1;
const MDB_ENTRY_INFO: u16 = 1;
/// `MDBA_MDB_EATTR_SRC_LIST`, `…_GROUP_MODE`, `…_SOURCE`, `…_RTPROT`, after the `struct br_mdb_entry` of an entry.
const SOURCE_LIST: u16 = 2;
const GROUP_MODE: u16 = 3;
const SOURCE: u16 = 4;
const PROTOCOL: u16 = 5;
/// `MCAST_INCLUDE` (`linux/in.h`).
const INCLUDE: u8 = 1;
/// `RTPROT_STATIC`, which an entry that was added has by itself.
const STATIC: u8 = 4;
/// `struct br_mdb_entry` in bytes, and its parts: `ifindex`, `state`, `vid`, the address, and the protocol of that.
const ENTRY: usize = 28;
const STATE: usize = 4;
const VID: usize = 6;
const ADDRESS: usize = 8;
const ADDRESS_KIND: usize = 24;
/// `MDB_PERMANENT`.
const PERMANENT: u8 = 1;
/// `ETH_P_IP`, `ETH_P_IPV6`; 0: an address of the link layer.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The request for a dump of all multicast groups.
pub(in crate::kernel) fn list_groups() -> MdbMessage {
    MdbMessage {
        kind: RTM_GETMDB,
        index: 0,
        attributes: Vec::new(),
    }
}

/// The permanent entries of a bridge, each with the ifindex of its port.
pub(in crate::kernel) fn groups(message: &MdbMessage) -> Vec<(u32, Result<MdbEntry, String>)> {
    let tables = message.attributes.iter().map(text::stored);
    let tables = tables.filter(|raw| raw.number == MDB);
    let inside = |bytes: &[u8], number| -> Vec<Vec<u8>> {
        let nested = Nested::parse(bytes).unwrap_or_default();
        nested.all(number).map(<[u8]>::to_vec).collect()
    };
    let entries = tables.flat_map(|table| inside(&table.value, MDB_ENTRY));
    let infos = entries.flat_map(|entry| inside(&entry, MDB_ENTRY_INFO));
    infos.filter_map(|info| group(&info)).collect()
}

/// One entry, unless the kernel learnt it.
fn group(info: &[u8]) -> Option<(u32, Result<MdbEntry, String>)> {
    let (entry, attributes) = info.split_at_checked(ENTRY)?;
    let index = word(entry, 0)?;
    if entry[STATE] != PERMANENT {
        return None;
    }
    let vid = u16::from_ne_bytes([entry[VID], entry[VID + 1]]);
    let kind = u16::from_be_bytes([entry[ADDRESS_KIND], entry[ADDRESS_KIND + 1]]);
    let address = &entry[ADDRESS..ADDRESS_KIND];
    let group = match kind {
        IPV4 => MulticastGroup::Ip(ip(&address[..4])?),
        IPV6 => MulticastGroup::Ip(ip(address)?),
        _ => MulticastGroup::Link(Mac::from_slice(&address[..6])?),
    };
    let attributes = Nested::parse(attributes).unwrap_or_default();
    let number = |number| attributes.get(number).and_then(<[u8]>::first).copied();
    let read = MdbEntry {
        group,
        vlan: VlanId::try_from(vid).ok().filter(|_| vid != 0),
        source: attributes.get(SOURCE).and_then(ip),
        protocol: number(PROTOCOL).filter(|protocol| *protocol != STATIC),
    };
    let has_list = attributes
        .get(SOURCE_LIST)
        .is_some_and(|list| !list.is_empty());
    let is_filter = read.source.is_none() && number(GROUP_MODE) == Some(INCLUDE);
    Some(if has_list || is_filter {
        (
            index,
            Err(format!("multicast entry {read} with a list of sources")),
        )
    } else {
        (index, Ok(read))
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// `MDBA_SET_ENTRY`, `MDBA_SET_ENTRY_ATTRS`, and `MDBE_ATTR_SOURCE` and `MDBE_ATTR_RTPROT` in the latter.
const SET_ENTRY: u16 = 1;
const SET_ATTRIBUTES: u16 = 2;
const SET_SOURCE: u16 = 1;
const SET_PROTOCOL: u16 = 4;

/// `bridge mdb add dev … port … grp … permanent`.
pub fn add_group(bridge: u32, port: u32, entry: &MdbEntry) -> Request {
    let MdbEntry {
        group,
        vlan,
        source,
        protocol,
    } = entry;
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let (kind, address) = match group {
        MulticastGroup::Ip(ip) if ip.is_ipv4() => (IPV4, octets(*ip)),
        MulticastGroup::Ip(ip) => (IPV6, octets(*ip)),
        MulticastGroup::Link(mac) => (0, mac.0.to_vec()),
    };
    let mut bytes = port.to_ne_bytes().to_vec();
    bytes.extend([PERMANENT, 0]);
    bytes.extend(vlan.map_or(0, u16::from).to_ne_bytes());
    bytes.extend(address);
    bytes.resize(ADDRESS_KIND, 0);
    bytes.extend(kind.to_be_bytes());
    bytes.resize(ENTRY, 0);
    let mut more = Nested::default();
    if let Some(source) = source {
        more.push(SET_SOURCE, octets(*source));
    }
    if let Some(protocol) = protocol {
        more.push(SET_PROTOCOL, vec![*protocol]);
    }
    let mut attributes = vec![DefaultNla::new(SET_ENTRY, bytes)];
    if more != Nested::default() {
        attributes.push(DefaultNla::new(SET_ATTRIBUTES | NLA_F_NESTED, more.bytes()));
    }
    let message = MdbMessage {
        kind: RTM_NEWMDB,
        index: bridge,
        attributes,
    };
    Request::new(message, NLM_F_CREATE | NLM_F_EXCL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(group: &str, source: Option<&str>) -> MdbEntry {
        MdbEntry {
            group: serde_json::from_value(group.into()).unwrap(),
            vlan: VlanId::try_from(5).ok(),
            source: source.map(|source| source.parse().unwrap()),
            protocol: None,
        }
    }

    /// The kernel's report of an entry, from the request that adds it.
    fn reported(entry: &MdbEntry, more: &[(u16, &[u8])]) -> MdbMessage {
        let request = add_group(3, 7, entry);
        let crate::kernel::codec::message::Message::Mdb(request) = request.message else {
            panic!("{request:?}");
        };
        let mut info = text::stored(&request.attributes[0]).value;
        let mut attributes = Nested::default();
        if let Some(source) = entry.source {
            let IpAddr::V4(source) = source else {
                panic!("{source}")
            };
            attributes.push(SOURCE, source.octets().to_vec());
        }
        for (number, value) in more {
            attributes.push(*number, value.to_vec());
        }
        info.extend(attributes.bytes());
        let nest = |number, bytes| {
            let mut nested = Nested::default();
            nested.push(number, bytes);
            nested.bytes()
        };
        let table = nest(MDB_ENTRY, nest(MDB_ENTRY_INFO, info));
        MdbMessage {
            kind: RTM_NEWMDB,
            index: 3,
            attributes: vec![DefaultNla::new(MDB, table)],
        }
    }

    #[test]
    fn a_group_is_read_as_it_is_added() {
        for (group, source) in [
            ("239.1.1.1", None),
            ("239.1.1.1", Some("10.0.0.1")),
            ("ff0e::1", None),
            ("01:02:03:04:05:06", None),
        ] {
            let entry = entry(group, source);
            let read = groups(&reported(&entry, &[(PROTOCOL, &[STATIC])]));
            assert_eq!(read, [(7, Ok(entry))], "{group} {source:?}");
        }
    }

    #[test]
    fn a_group_with_a_list_of_sources_is_named_and_short_bytes_are_none() {
        let entry = entry("239.1.1.1", None);
        for more in [(GROUP_MODE, &[INCLUDE][..]), (SOURCE_LIST, &[0; 4])] {
            let read = groups(&reported(&entry, &[more]));
            assert!(read[0].1.is_err(), "{read:?}");
        }
        let mut short = reported(&entry, &[]);
        short.attributes = vec![DefaultNla::new(MDB, vec![8, 0, 1, 0, 4, 0, 1, 0])];
        assert_eq!(groups(&short), []);
    }

    #[test]
    fn ranges_of_vlans_are_read_as_they_are_added() {
        let id = |id| VlanId::try_from(id).unwrap();
        let vlans = |first, last, pvid| PortVlans {
            first: id(first),
            last: id(last),
            pvid,
            untagged: pvid,
        };
        let all = [vlans(10, 10, true), vlans(100, 110, false)];
        let message = vlan_message(7, &all);
        let infos = message.attributes.iter().flat_map(|one| match one {
            LinkAttribute::AfSpecBridge(infos) => infos.clone(),
            _ => Vec::new(),
        });
        let infos = infos.filter_map(|info| match info {
            AfSpecBridge::VlanInfo(info) => Some(info),
            _ => None,
        });
        assert_eq!(ranges(infos.collect()).unwrap(), all);
    }
}
