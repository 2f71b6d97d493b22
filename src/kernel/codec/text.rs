//! Names and aliases in rtnetlink messages.
//!
//! They are bytes, but netlink-packet-route has them as UTF-8 strings, and refuses a whole message for one that is not.
//! Therefore netfix receives and sends them as raw attributes; so it does with all attributes of traffic control. It receives
//! the settings of links and of their neighbour tables so, too, which are nearly the same in every pod and need not be decoded in
//! each. The data of kinds of links that netfix stores as bytes is raw as well. What no part of netfix reads of a link is left out.

use std::borrow::Cow;

use netlink_packet_core::{DefaultNla, NLA_TYPE_MASK, Nla, NlasIterator};
use netlink_packet_route::link::{LinkAttribute, Prop};

use crate::model::net::link::lower;
use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, IfName};

/// Set in the type of a received text, so that the crate does not know the attribute.
const RAW: u16 = 0x2000;

/// `struct nlmsghdr` in bytes (netlink(7)).
pub(crate) const MESSAGE_HEADER: usize = 16;
/// `struct ifinfomsg` in bytes (rtnetlink(7)).
pub(crate) const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const RULE_HEADER: usize = 12;
/// `struct tcmsg` in bytes (linux/rtnetlink.h).
const TRAFFIC_HEADER: usize = 20;
/// Every `TCA_*` (linux/rtnetlink.h): netfix stores them as bytes.
const TRAFFIC: [u16; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

const IFLA_IFNAME: u16 = 3;
const IFLA_IFALIAS: u16 = 20;
const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_INFO_KIND: u16 = 1;
pub(crate) const IFLA_INFO_DATA: u16 = 2;
/// netlink-packet-route reads "not reported" (all bits set) as "on".
pub(crate) const IFLA_VFINFO_LIST: u16 = 22;
pub(crate) const IFLA_AF_SPEC: u16 = 26;
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
/// Counters and limits of a link's hardware (`linux/if_link.h`): `IFLA_STATS`, `IFLA_MAP`, `IFLA_STATS64`, `IFLA_PROMISCUITY`,
/// `IFLA_CARRIER`, `IFLA_CARRIER_CHANGES`, `IFLA_CARRIER_UP_COUNT`, `IFLA_CARRIER_DOWN_COUNT`, `IFLA_MIN_MTU`, `IFLA_MAX_MTU`,
/// `IFLA_TSO_MAX_SIZE`, `IFLA_TSO_MAX_SEGS`, `IFLA_ALLMULTI`.
const UNREAD: [u16; 13] = [7, 14, 23, 30, 33, 35, 47, 48, 50, 51, 59, 60, 61];
const IFA_LABEL: u16 = 3;
/// `struct ndtmsg` in bytes (linux/neighbour.h).
const TABLE_HEADER: usize = 4;
pub(crate) const NDTA_PARMS: u16 = 6;
pub(crate) const FRA_IIFNAME: u16 = 3;
pub(crate) const FRA_OIFNAME: u16 = 17;

/// A message with its texts as raw attributes.
pub(crate) fn with_raw_texts(message: &[u8]) -> Cow<'_, [u8]> {
    let kind = message.get(4..6).map(|kind| [kind[0], kind[1]]);
    let (header, texts, unread): (usize, &[u16], &[u16]) = match kind.map(u16::from_ne_bytes) {
        Some(libc::RTM_NEWLINK | libc::RTM_DELLINK) => {
            const RAW: [u16; 5] = [
                IFLA_IFNAME,
                IFLA_IFALIAS,
                IFLA_VFINFO_LIST,
                IFLA_AF_SPEC,
                IFLA_ALT_IFNAME,
            ];
            (LINK_HEADER, &RAW, &UNREAD)
        }
        Some(libc::RTM_NEWADDR | libc::RTM_DELADDR) => (ADDRESS_HEADER, &[IFA_LABEL], &[]),
        Some(libc::RTM_NEWRULE | libc::RTM_DELRULE) => {
            (RULE_HEADER, &[FRA_IIFNAME, FRA_OIFNAME], &[])
        }
        Some(libc::RTM_NEWNEIGHTBL) => (TABLE_HEADER, &[NDTA_PARMS], &[]),
        Some(
            libc::RTM_NEWQDISC
            | libc::RTM_DELQDISC
            | libc::RTM_NEWTCLASS
            | libc::RTM_DELTCLASS
            | libc::RTM_NEWTFILTER
            | libc::RTM_DELTFILTER,
        ) => (TRAFFIC_HEADER, &TRAFFIC, &[]),
        _ => return message.into(),
    };
    let Some((header, attributes)) = message.split_at_checked(MESSAGE_HEADER + header) else {
        return message.into();
    };
    let mut raw = Vec::with_capacity(message.len());
    raw.extend_from_slice(header);
    copy(attributes, texts, unread, &mut raw);
    if let Ok(length) = u32::try_from(raw.len()) {
        raw[..4].copy_from_slice(&length.to_ne_bytes());
    }
    raw.into()
}

/// Copies attributes with these texts marked, and without those that are `unread`.
fn copy(mut attributes: &[u8], texts: &[u16], unread: &[u16], to: &mut Vec<u8>) {
    const HEADER: usize = 4;
    while let [low, high, kind_low, kind_high, ..] = attributes {
        let length = usize::from(u16::from_ne_bytes([*low, *high])).max(HEADER);
        let flags = u16::from_ne_bytes([*kind_low, *kind_high]);
        let kind = flags & NLA_TYPE_MASK;
        let end = length.next_multiple_of(4).min(attributes.len());
        let (attribute, rest) = attributes.split_at(end);
        attributes = rest;
        if unread.contains(&kind) {
            continue;
        }
        let marked = if texts.contains(&kind) {
            flags | RAW
        } else {
            flags
        };
        to.extend_from_slice(&attribute[..2]);
        to.extend_from_slice(&marked.to_ne_bytes());
        let value = &attribute[HEADER..];
        match kind {
            IFLA_PROP_LIST => copy(value, texts, &[], to),
            // Of links alone, as `unread` is.
            IFLA_LINKINFO if !unread.is_empty() && has_raw_data(value) => {
                copy(value, &[IFLA_INFO_DATA], &[], to);
            }
            _ => to.extend_from_slice(value),
        }
    }
    to.extend_from_slice(attributes);
}

/// Whether these attributes are of a kind of link whose data is stored as bytes.
fn has_raw_data(infos: &[u8]) -> bool {
    let mut infos = NlasIterator::new(infos).map_while(Result::ok);
    let kind = infos.find(|info| info.kind() == IFLA_INFO_KIND);
    let kind = kind.as_ref().and_then(|kind| kind.value().split_last());
    let driver = kind.and_then(|(_, name)| str::from_utf8(name).ok());
    driver.is_some_and(|driver| lower::of(driver).is_some())
}

/// Type and text of a raw attribute.
pub(crate) fn read(attribute: &DefaultNla) -> (u16, Bytes) {
    let RawAttribute {
        number,
        value: mut bytes,
    } = stored(attribute);
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    (number, bytes.into())
}

/// A raw attribute with a text.
pub(crate) fn write(kind: u16, text: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, text.to_vec())
}

/// An attribute as it is stored.
pub(crate) fn stored(attribute: &impl Nla) -> RawAttribute {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    RawAttribute {
        number: attribute.kind() & NLA_TYPE_MASK & !RAW,
        value,
    }
}

/// Whether a received attribute is of this type.
pub(crate) fn is(attribute: &DefaultNla, kind: u16) -> bool {
    attribute.kind() & NLA_TYPE_MASK & !RAW == kind
}

/// A stored attribute, to be sent.
pub(crate) fn restored(raw: &RawAttribute, flags: u16) -> DefaultNla {
    DefaultNla::new(raw.number | flags, raw.value.clone())
}

/// A text of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkText {
    Name(Bytes),
    Alias(Bytes),
    Altnames(Vec<Bytes>),
}

impl LinkText {
    /// The text of an attribute, received or to be sent.
    pub fn of(attribute: &LinkAttribute) -> Option<Self> {
        match attribute {
            LinkAttribute::Other(raw) if is(raw, IFLA_IFNAME) => Some(Self::Name(read(raw).1)),
            LinkAttribute::Other(raw) if is(raw, IFLA_IFALIAS) => Some(Self::Alias(read(raw).1)),
            LinkAttribute::PropList(props) => {
                let names = props.iter().filter_map(|prop| match prop {
                    Prop::Other(raw) => {
                        Some(read(raw)).filter(|(kind, _)| *kind == IFLA_ALT_IFNAME)
                    }
                    _ => None,
                });
                Some(Self::Altnames(names.map(|(_, name)| name).collect()))
            }
            _ => None,
        }
    }
}

/// `IFLA_IFNAME`.
pub(crate) fn name(name: &IfName) -> LinkAttribute {
    LinkAttribute::Other(write(IFLA_IFNAME, name.as_bytes()))
}

/// `IFLA_IFALIAS`.
pub(crate) fn alias(alias: &Bytes) -> LinkAttribute {
    LinkAttribute::Other(write(IFLA_IFALIAS, alias.as_slice()))
}

/// `IFLA_PROP_LIST` with alternative names.
pub(crate) fn altnames(names: &[Bytes]) -> LinkAttribute {
    let raws = names.iter().map(|n| write(IFLA_ALT_IFNAME, n.as_slice()));
    LinkAttribute::PropList(raws.map(Prop::Other).collect())
}

#[cfg(test)]
mod tests {
    use crate::kernel::codec::text::*;

    #[test]
    fn what_netfix_does_not_read_of_a_link_is_left_out_and_its_texts_are_raw() {
        const NAME: [u8; 12] = *b"\x09\0\x03\0eth0\0\0\0\0";
        let unread: Vec<u8> = UNREAD
            .iter()
            .flat_map(|kind| [[8, 0], kind.to_ne_bytes(), [1; 2], [1; 2]].concat())
            .collect();
        let message = |attributes: &[&[u8]]| {
            let mut bytes = vec![0; MESSAGE_HEADER + LINK_HEADER];
            bytes[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
            bytes.extend(attributes.concat());
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            bytes
        };
        let mut raw = NAME;
        raw[2..4].copy_from_slice(&(IFLA_IFNAME | RAW).to_ne_bytes());
        let read = with_raw_texts(&message(&[&unread, &NAME, &unread])).into_owned();
        assert_eq!(read, message(&[&raw]));
        // One that ends too early is not read beyond its end.
        let cut = message(&[&NAME[..6]]);
        assert_eq!(with_raw_texts(&cut).len(), cut.len());
    }
}
