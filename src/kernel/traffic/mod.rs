//! Qdiscs, classes and filters: between rtnetlink messages and the model (`tc qdisc`, `tc class`, `tc filter`).
//!
//! netfix stores the attributes of the kernel and sends them back. Only what differs between a report and a request is
//! interpreted (`options`, `filter`, `action`).

mod action;
mod bpf;
mod filter;
mod options;
mod passing;
mod read;
mod tcx;
mod u32;
mod unbound;

use netlink_packet_core::{DefaultNla, NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use super::Request;
use crate::kernel::codec::message::ActionMessage;
use crate::kernel::codec::text;
use crate::model::TrafficObject;
use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;
use crate::model::net::traffic::{OPTIONS, ObjectKind};

pub(crate) use bpf::maps as program_maps;
pub(crate) use passing::passes_on;
pub(super) use read::read;
#[cfg(feature = "fuzzing")]
pub(super) use read::read_from;
pub(super) use unbound::redirects;

/// `TCA_ACT_TAB` (`linux/rtnetlink.h`).
const TCA_ACT_TAB: u16 = 1;
/// `TCA_KIND` (`linux/rtnetlink.h`).
const KIND: u16 = 1;

/// `tc qdisc add`, `tc class add` or `tc filter add` on the link with that index.
pub fn add(index: u32, object: &TrafficObject) -> Request {
    request(index, object, NLM_F_CREATE | NLM_F_EXCL)
}

/// `tc qdisc change`, `tc class change` or `tc filter change`: only of an object that is there.
pub fn change(index: u32, object: &TrafficObject) -> Request {
    request(index, object, 0)
}

/// `tc actions replace`: the actions of a filter, which keeps them. A filter that is deleted keeps them for a moment, and one of
/// kind `matchall` cannot be changed.
pub fn replace_actions(filter: &TrafficObject) -> Request {
    let options = filter.attribute(OPTIONS).unwrap_or_default();
    let list = filter::actions(&filter.kind, options);
    let list = DefaultNla::new(TCA_ACT_TAB | NLA_F_NESTED, list);
    Request::new(
        ActionMessage {
            attributes: vec![list],
        },
        NLM_F_CREATE | NLM_F_REPLACE,
    )
}

fn request(index: u32, object: &TrafficObject, flags: u16) -> Request {
    let TrafficObject {
        object: which,
        kind,
        handle,
        table,
        parent,
        info,
        attributes,
        links: _,
    } = object;
    let is_new = flags & NLM_F_CREATE != 0;
    let mut message = TcMessage::default();
    message.header.index = index.cast_signed();
    let table = if is_new { 0 } else { *table };
    message.header.handle = TcHandle::from(*handle | table);
    message.header.parent = TcHandle::from(*parent);
    message.header.info = *info;
    let mut kind_text = kind.as_bytes().to_vec();
    kind_text.push(0);
    let [low, high, ..] = info.to_ne_bytes();
    message.attributes = vec![TcAttribute::Other(text::write(KIND, &kind_text))];
    message.attributes.extend(attributes.iter().map(|raw| {
        let value = match (raw.number, which) {
            (OPTIONS, ObjectKind::Filter) => filter::sendable(kind, &raw.value, [low, high]),
            (OPTIONS, _) => options::sendable(kind, &raw.value, is_new),
            _ => raw.value.clone(),
        };
        // A stored file can have options to which nothing can be added.
        let fits = value.len() <= limits::PAYLOAD;
        let value = if fits { &value } else { &raw.value };
        TcAttribute::Other(text::write(raw.number, value))
    }));
    let message = match which {
        ObjectKind::Qdisc => RouteNetlinkMessage::NewQueueDiscipline(message),
        ObjectKind::Class => RouteNetlinkMessage::NewTrafficClass(message),
        ObjectKind::Filter => RouteNetlinkMessage::NewTrafficFilter(message),
    };
    Request::new(message, flags)
}

/// An object as the kernel reports it, with all its attributes, and the index of its link.
pub(super) fn parse(message: &RouteNetlinkMessage) -> Option<(u32, TrafficObject)> {
    let (which, message) = match message {
        RouteNetlinkMessage::NewQueueDiscipline(message) => (ObjectKind::Qdisc, message),
        RouteNetlinkMessage::NewTrafficClass(message) => (ObjectKind::Class, message),
        RouteNetlinkMessage::NewTrafficFilter(message) => (ObjectKind::Filter, message),
        _ => return None,
    };
    let header = &message.header;
    let raw = |attribute: &TcAttribute| match attribute {
        TcAttribute::Other(raw) => text::stored(raw),
        known => RawAttribute {
            number: known.kind(),
            value: Vec::new(),
        },
    };
    let mut attributes: Vec<RawAttribute> = message.attributes.iter().map(raw).collect();
    let kind = attributes.iter().position(|raw| raw.number == KIND)?;
    let kind = attributes.remove(kind).value;
    let kind = String::from_utf8_lossy(&kind);
    let info = match which {
        ObjectKind::Filter => header.info,
        ObjectKind::Qdisc | ObjectKind::Class => 0,
    };
    let object = TrafficObject {
        object: which,
        kind: kind.trim_end_matches('\0').to_owned(),
        handle: header.handle.into(),
        table: 0,
        parent: header.parent.into(),
        info,
        attributes,
        links: Vec::new(),
    };
    Some((header.index.cast_unsigned(), object))
}
