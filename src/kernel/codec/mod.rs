//! From the bytes of datagrams to rtnetlink messages, and back.

pub(crate) mod message;
pub(crate) mod nested;
pub(crate) mod text;

use netlink_packet_core::{
    NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload, Parseable,
};
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;

use crate::kernel::Error;
use crate::kernel::codec::message::{MdbMessage, Message, NexthopMessage};
use crate::kernel::error::errno;

/// The objects of a dump.
#[derive(Debug, Default)]
pub struct Dump {
    pub objects: Vec<RouteNetlinkMessage>,
    /// Nexthop objects.
    pub nexthops: Vec<NexthopMessage>,
    /// Multicast groups of bridges.
    pub groups: Vec<MdbMessage>,
    /// Objects that could not be decoded.
    pub undecodable: Vec<Undecodable>,
    /// Whether the kernel came no further than to an object that no datagram of a dump can hold. It then ends the dump with
    /// `EMSGSIZE`, or sends empty datagrams without end (IPv6 routes).
    pub is_cut: bool,
}

/// A message that netlink-packet-route refuses.
#[derive(Debug)]
pub struct Undecodable {
    /// The whole message, with its texts as raw attributes.
    pub message: Vec<u8>,
    /// What it contains that is unknown.
    pub why: String,
}

/// One message of a datagram.
pub type Received = (NetlinkHeader, Result<NetlinkMessage<Message>, Undecodable>);

impl From<Undecodable> for Error {
    fn from(Undecodable { why, .. }: Undecodable) -> Self {
        Self::Decode(why)
    }
}

/// Message types that end a dump (linux/netlink.h).
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;

/// The messages of a datagram, each with its header, still encoded.
pub(crate) fn split(
    datagram: &[u8],
) -> impl Iterator<Item = Result<(NetlinkHeader, &[u8]), Error>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut rest);
        let header =
            NetlinkBuffer::new_checked(&bytes).and_then(|checked| NetlinkHeader::parse(&checked));
        Some(
            header
                .map_err(|error| Error::Decode(error.to_string()))
                .map(|header| {
                    let length = header.length as usize;
                    rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
                    (header, &bytes[..length])
                }),
        )
    })
}

/// One message, with its texts as raw attributes.
pub(crate) fn decode(message: &[u8]) -> Result<NetlinkMessage<Message>, Undecodable> {
    let message = text::with_raw_texts(message);
    NetlinkMessage::deserialize(&message).map_err(|error| Undecodable {
        why: error.to_string(),
        message: message.into_owned(),
    })
}

/// All objects of a dump.
pub(crate) fn decode_dump(bytes: &[u8]) -> Result<Dump, Error> {
    let mut dump = Dump::default();
    for part in split(bytes) {
        let payload = match decode(part?.1) {
            Ok(message) => message.payload,
            Err(why) => {
                dump.undecodable.push(why);
                continue;
            }
        };
        match payload {
            NetlinkPayload::InnerMessage(Message::Route(object)) => dump.objects.push(object),
            NetlinkPayload::InnerMessage(Message::Nexthop(object)) => dump.nexthops.push(object),
            NetlinkPayload::InnerMessage(Message::Mdb(object)) => dump.groups.push(object),
            NetlinkPayload::Done(done) if errno(done.code) == Errno::EMSGSIZE => dump.is_cut = true,
            NetlinkPayload::Done(done) if done.code < 0 => return Err(errno(done.code).into()),
            NetlinkPayload::Error(error) if error.code.is_some() => {
                return Err(errno(error.raw_code()).into());
            }
            _ => {}
        }
    }
    Ok(dump)
}

/// Appends a request to a buffer.
pub(crate) fn encode(message: &Message, flags: u16, sequence: u32, buffer: &mut Vec<u8>) {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message.clone()));
    packet.finalize();
    let start = buffer.len();
    buffer.resize(start + packet.buffer_len().next_multiple_of(4), 0);
    packet.serialize(&mut buffer[start..]);
}
