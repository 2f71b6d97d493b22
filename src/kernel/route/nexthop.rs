//! Nexthop objects: between netlink messages and the model (`ip nexthop`, `net/ipv4/nexthop.c`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DefaultNla, NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::kernel::codec::message::{NexthopMessage, RTM_GETNEXTHOP, RTM_NEWNEXTHOP};
use crate::kernel::codec::nested::Nested;
use crate::kernel::codec::text;
use crate::kernel::route::IndexOf;
use crate::kernel::{Errno, Request};
use crate::model::IfName;
use crate::model::fidelity::{NEXTHOP, Treatment};
use crate::model::net::nexthop::{Member, Nexthop};
use crate::model::net::raw::RawAttribute;

/// `NHA_*` (linux/nexthop.h).
const ID: u16 = 1;
const GROUP: u16 = 2;
const OIF: u16 = 5;
const GATEWAY: u16 = 6;
const ENCAP: u16 = 8;
const RES_GROUP: u16 = 12;
/// Of `NHA_RES_GROUP`: the time for which the group has been unbalanced, which the kernel refuses to be given.
const UNBALANCED_TIME: u16 = 4;
/// `RTNH_F_ONLINK`; the others are states.
const ONLINK: u32 = 4;

/// The request for all of a namespace.
pub(crate) fn list() -> NexthopMessage {
    NexthopMessage {
        kind: RTM_GETNEXTHOP,
        family: 0,
        protocol: 0,
        flags: 0,
        attributes: Vec::new(),
    }
}

/// Reads one object of a dump; an error for one that the model cannot hold.
pub(crate) fn parse(
    message: &NexthopMessage,
    name: impl Fn(u32) -> Option<IfName>,
) -> Result<Nexthop, String> {
    let mut nexthop = Nexthop {
        id: 0,
        family: message.family,
        protocol: message.protocol,
        dev: None,
        gateway: None,
        onlink: message.flags & ONLINK != 0,
        group: Vec::new(),
        extra: Vec::new(),
    };
    for attribute in &message.attributes {
        let raw = text::stored(attribute);
        match raw.number {
            ID => nexthop.id = number(&raw.value).ok_or("nexthop: id")?,
            OIF => nexthop.dev = number(&raw.value).and_then(&name),
            GATEWAY => nexthop.gateway = Some(address(&raw.value).ok_or("nexthop: gateway")?),
            GROUP => nexthop.group = raw.value.chunks_exact(8).map(member).collect(),
            RES_GROUP => nexthop.extra.push(without_times(attribute)),
            other => match NEXTHOP.fate(other) {
                Some(Treatment::SentBack) => nexthop.extra.push(raw),
                Some(Treatment::State) => {}
                _ => return Err(format!("nexthop {}: attribute {other}", nexthop.id)),
            },
        }
    }
    Ok(nexthop)
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(|octets| Ipv6Addr::from(octets).into()))
        .ok()
}

/// `struct nexthop_grp`: the id, the weight minus one, and since Linux 6.12 its upper byte.
fn member(bytes: &[u8]) -> Member {
    let (id, rest) = bytes.split_at(4);
    Member {
        id: number(id).unwrap_or_default(),
        weight: u32::from(u16::from_le_bytes([rest[0], rest[1]])) + 1,
    }
}

fn member_bytes(member: Member) -> [u8; 8] {
    let [a, b, c, d] = member.id.to_ne_bytes();
    let weight = u16::try_from(member.weight.saturating_sub(1)).unwrap_or(u16::MAX);
    let [low, high] = weight.to_le_bytes();
    [a, b, c, d, low, high, 0, 0]
}

/// The settings of a resilient group without its state.
fn without_times(attribute: &DefaultNla) -> RawAttribute {
    let mut raw = text::stored(attribute);
    if let Some(mut settings) = Nested::parse(&raw.value) {
        settings.remove(&[UNBALANCED_TIME]);
        raw.value = settings.bytes();
    }
    raw
}

/// `ip nexthop add`, which the kernel refuses with `EEXIST` where the id is taken. `index` returns the ifindex of an interface.
pub fn add(nexthop: &Nexthop, index: IndexOf<'_>) -> Result<Request, Errno> {
    let message = message(nexthop, index)?;
    Ok(Request::new(message, NLM_F_CREATE | NLM_F_EXCL))
}

/// `ip nexthop replace`: routes and groups keep their reference to it.
pub fn replace(nexthop: &Nexthop, index: IndexOf<'_>) -> Result<Request, Errno> {
    let message = message(nexthop, index)?;
    Ok(Request::new(message, NLM_F_CREATE | NLM_F_REPLACE))
}

fn message(nexthop: &Nexthop, index: IndexOf<'_>) -> Result<NexthopMessage, Errno> {
    let Nexthop {
        id,
        family,
        protocol,
        dev,
        gateway,
        onlink,
        group,
        extra,
    } = nexthop;
    let attribute = |kind, value: &[u8]| DefaultNla::new(kind, value.to_vec());
    let mut attributes = vec![attribute(ID, &id.to_ne_bytes())];
    if !group.is_empty() {
        let members: Vec<u8> = group.iter().copied().flat_map(member_bytes).collect();
        attributes.push(attribute(GROUP, &members));
    }
    if let Some(dev) = dev {
        attributes.push(attribute(OIF, &index(dev)?.to_ne_bytes()));
    }
    attributes.extend(gateway.map(|gateway| match gateway {
        IpAddr::V4(ip) => attribute(GATEWAY, &ip.octets()),
        IpAddr::V6(ip) => attribute(GATEWAY, &ip.octets()),
    }));
    attributes.extend(extra.iter().map(|raw| {
        let is_nested = [ENCAP, RES_GROUP].contains(&raw.number);
        text::restored(raw, if is_nested { NLA_F_NESTED } else { 0 })
    }));
    Ok(NexthopMessage {
        kind: RTM_NEWNEXTHOP,
        family: *family,
        protocol: *protocol,
        flags: if *onlink { ONLINK } else { 0 },
        attributes,
    })
}
