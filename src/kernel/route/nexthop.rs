//! Nexthop objects: between netlink messages and the model (`ip nexthop`, `net/ipv4/nexthop.c`).

use netlink_packet_core::{NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::kernel::codec::message::{NexthopMessage, RTM_GETNEXTHOP, RTM_NEWNEXTHOP};
use crate::kernel::codec::nested::Nested;
use crate::kernel::codec::text;
use crate::kernel::route::IndexOf;
use crate::kernel::{Errno, Request};
use crate::model::IfName;
use crate::model::fidelity::form::U32;
use crate::model::fidelity::{NEXTHOP, Treatment};
use crate::model::net::nexthop::Nexthop;
use crate::model::net::raw::RawAttribute;

/// `NHA_*` (linux/nexthop.h).
const OIF: u16 = 5;
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
        family: message.family,
        protocol: message.protocol,
        onlink: message.flags & ONLINK != 0,
        ..Nexthop::default()
    };
    for attribute in &message.attributes {
        let raw = text::stored(attribute);
        let field = nexthop.read(raw.number, &raw.value);
        match (field, NEXTHOP.fate(raw.number)) {
            (Some(true), _) | (None, Some(Treatment::State)) => {}
            (None, _) if raw.number == OIF => {
                nexthop.dev = (U32.read)(&raw.value).and_then(&name);
            }
            (None, Some(Treatment::SentBack)) => nexthop.extra.push(without_times(raw)),
            _ => return Err(format!("nexthop {}: attribute {}", nexthop.id, raw.number)),
        }
    }
    Ok(nexthop)
}

/// The settings of a resilient group without its state; every other attribute as it is.
fn without_times(mut raw: RawAttribute) -> RawAttribute {
    if raw.number == RES_GROUP
        && let Some(mut settings) = Nested::parse(&raw.value)
    {
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
    let mut attributes: Vec<_> = nexthop.attributes().collect();
    if let Some(dev) = &nexthop.dev {
        let value = index(dev)?.to_ne_bytes().to_vec();
        attributes.push(RawAttribute { number: OIF, value });
    }
    attributes.extend_from_slice(&nexthop.extra);
    let sent = |raw: &RawAttribute| {
        let is_nested = [ENCAP, RES_GROUP].contains(&raw.number);
        text::restored(raw, if is_nested { NLA_F_NESTED } else { 0 })
    };
    Ok(NexthopMessage {
        kind: RTM_NEWNEXTHOP,
        family: nexthop.family,
        protocol: nexthop.protocol,
        flags: if nexthop.onlink { ONLINK } else { 0 },
        attributes: attributes.iter().map(sent).collect(),
    })
}
