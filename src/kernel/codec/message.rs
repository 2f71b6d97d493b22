//! The messages of rtnetlink: those of netlink-packet-route, and those about nexthop objects and multicast groups of bridges, which
//! it lacks.

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
    NlasIterator, Parseable,
};
use netlink_packet_route::RouteNetlinkMessage;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// One that netlink-packet-route knows.
    Route(RouteNetlinkMessage),
    /// One about a nexthop object.
    Nexthop(NexthopMessage),
    /// One about multicast groups of a bridge.
    Mdb(MdbMessage),
    /// One about actions of filters.
    Action(ActionMessage),
}

/// A message about actions of filters, which are objects of their own (`struct tcamsg`, `linux/rtnetlink.h`). None is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionMessage {
    /// `TCA_ROOT_*`.
    pub attributes: Vec<DefaultNla>,
}

/// The type of [`ActionMessage`].
const RTM_NEWACTION: u16 = 48;
/// The size of `struct tcamsg` in bytes.
const ACTION_HEADER: usize = 4;

/// A message about multicast groups (`struct br_port_msg`, `linux/if_bridge.h`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdbMessage {
    /// `RTM_NEWMDB`, `RTM_DELMDB` or `RTM_GETMDB`.
    pub kind: u16,
    /// The bridge.
    pub index: u32,
    /// `MDBA_*`.
    pub attributes: Vec<DefaultNla>,
}

/// The types of [`MdbMessage`] (linux/rtnetlink.h). The answer to a dump has that of the request.
pub const RTM_NEWMDB: u16 = 84;
pub const RTM_DELMDB: u16 = 85;
pub const RTM_GETMDB: u16 = 86;

/// A message about a nexthop object (`struct nhmsg`, linux/nexthop.h).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NexthopMessage {
    /// `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP` or `RTM_GETNEXTHOP`.
    pub kind: u16,
    /// `AF_*`.
    pub family: u8,
    /// `RTPROT_*`.
    pub protocol: u8,
    /// `RTNH_F_*`.
    pub flags: u32,
    /// `NHA_*`.
    pub attributes: Vec<DefaultNla>,
}

/// The types of [`NexthopMessage`] (linux/rtnetlink.h).
pub const RTM_NEWNEXTHOP: u16 = 104;
pub const RTM_DELNEXTHOP: u16 = 105;
pub const RTM_GETNEXTHOP: u16 = 106;
/// The size of `struct nhmsg` in bytes, and of `struct br_port_msg` with its padding.
const HEADER: usize = 8;

/// One request: a message and its `NLM_F_*` flags; `NLM_F_REQUEST` is added.
#[derive(Debug, Clone)]
pub struct Request {
    pub message: Message,
    pub flags: u16,
}

impl Request {
    /// A message with its flags.
    pub fn new(message: impl Into<Message>, flags: u16) -> Self {
        let message = message.into();
        Self { message, flags }
    }

    /// What is sent for it.
    #[cfg(feature = "fuzzing")]
    pub fn encoded(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        super::encode(&self.message, self.flags, 1, &mut buffer);
        buffer
    }
}

impl From<RouteNetlinkMessage> for Message {
    fn from(message: RouteNetlinkMessage) -> Self {
        Self::Route(message)
    }
}

impl From<NexthopMessage> for Message {
    fn from(message: NexthopMessage) -> Self {
        Self::Nexthop(message)
    }
}

impl From<MdbMessage> for Message {
    fn from(message: MdbMessage) -> Self {
        Self::Mdb(message)
    }
}

impl From<ActionMessage> for Message {
    fn from(message: ActionMessage) -> Self {
        Self::Action(message)
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        match self {
            Self::Route(message) => message.message_type(),
            Self::Nexthop(message) => message.kind,
            Self::Mdb(message) => message.kind,
            Self::Action(_) => RTM_NEWACTION,
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            Self::Route(message) => NetlinkSerializable::buffer_len(message),
            Self::Nexthop(message) => HEADER + message.attributes.as_slice().buffer_len(),
            Self::Mdb(message) => HEADER + message.attributes.as_slice().buffer_len(),
            Self::Action(message) => ACTION_HEADER + message.attributes.as_slice().buffer_len(),
        }
    }

    fn serialize(&self, buffer: &mut [u8]) {
        match self {
            Self::Route(message) => message.serialize(buffer),
            Self::Nexthop(message) => {
                let (header, attributes) = buffer.split_at_mut(HEADER);
                header[..4].copy_from_slice(&[message.family, 0, message.protocol, 0]);
                header[4..].copy_from_slice(&message.flags.to_ne_bytes());
                message.attributes.as_slice().emit(attributes);
            }
            Self::Mdb(message) => {
                let (header, attributes) = buffer.split_at_mut(HEADER);
                header[..4].copy_from_slice(&[AF_BRIDGE, 0, 0, 0]);
                header[4..].copy_from_slice(&message.index.to_ne_bytes());
                message.attributes.as_slice().emit(attributes);
            }
            Self::Action(message) => {
                let (header, attributes) = buffer.split_at_mut(ACTION_HEADER);
                header.fill(0);
                message.attributes.as_slice().emit(attributes);
            }
        }
    }
}

/// `PF_BRIDGE` (linux/socket.h).
const AF_BRIDGE: u8 = 7;

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        match header.message_type {
            kind @ (RTM_NEWNEXTHOP | RTM_DELNEXTHOP) => {
                NexthopMessage::parse(kind, payload).map(Self::Nexthop)
            }
            kind @ (RTM_NEWMDB | RTM_DELMDB | RTM_GETMDB) => {
                MdbMessage::parse(kind, payload).map(Self::Mdb)
            }
            _ => RouteNetlinkMessage::deserialize(header, payload).map(Self::Route),
        }
    }
}

impl NexthopMessage {
    fn parse(kind: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        let Some((&[family, _scope, protocol, _, a, b, c, d], attributes)) =
            payload.split_first_chunk::<HEADER>()
        else {
            return Err(DecodeError::from("a nexthop message without its header"));
        };
        Ok(Self {
            kind,
            family,
            protocol,
            flags: u32::from_ne_bytes([a, b, c, d]),
            attributes: raw_attributes(attributes)?,
        })
    }
}

impl MdbMessage {
    fn parse(kind: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        let Some((&[_family, _, _, _, a, b, c, d], attributes)) =
            payload.split_first_chunk::<HEADER>()
        else {
            return Err(DecodeError::from("a multicast message without its header"));
        };
        Ok(Self {
            kind,
            index: u32::from_ne_bytes([a, b, c, d]),
            attributes: raw_attributes(attributes)?,
        })
    }
}

fn raw_attributes(bytes: &[u8]) -> Result<Vec<DefaultNla>, DecodeError> {
    let attributes = NlasIterator::new(bytes);
    attributes
        .map(|attribute| DefaultNla::parse(&attribute?))
        .collect()
}
