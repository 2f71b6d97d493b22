//! Families of generic netlink: requests that are sent together, and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::{HEADER, PlainSocket, put};
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::{NLMSG_ERROR, split};
use crate::kernel::error::{SetError, errno};
use crate::model::Bytes;

/// `NLA_F_NESTED`.
pub(in crate::kernel) const NESTED: u16 = 0x8000;
/// `struct genlmsghdr`.
const GENERIC_HEADER: usize = 4;
/// The controller of families: `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// A family by its name. Its number is the same until the next boot: 0 until it was found.
pub(in crate::kernel) struct GenlFamily {
    name: &'static str,
    number: AtomicU16,
}

/// Linux 5.6.
pub(in crate::kernel) static ETHTOOL: GenlFamily = GenlFamily::new("ethtool");
/// Linux 4.6.
pub(in crate::kernel) static DEVLINK: GenlFamily = GenlFamily::new("devlink");
/// Linux 5.6.
pub(in crate::kernel) static MPTCP: GenlFamily = GenlFamily::new("mptcp_pm");

impl GenlFamily {
    const fn new(name: &'static str) -> Self {
        let number = AtomicU16::new(0);
        Self { name, number }
    }
}

/// One request: its command and attributes.
pub(in crate::kernel) type GenlRequest = (u8, Nested);
/// The attributes of an answer; none of an acknowledgement.
pub(in crate::kernel) type Answer = Result<Nested, SetError>;

/// A socket of the calling thread's namespace.
pub(in crate::kernel) struct Genl {
    socket: PlainSocket,
    family: u16,
}

impl Genl {
    /// `None` on a kernel without the family.
    pub fn open_here(family: &GenlFamily) -> Option<Self> {
        let mut genl = Self {
            socket: PlainSocket::open(NETLINK_GENERIC).ok()?,
            family: family.number.load(Ordering::Relaxed),
        };
        if genl.family == 0 {
            genl.family = genl.find(family.name)?;
            family.number.store(genl.family, Ordering::Relaxed);
        }
        Some(genl)
    }

    fn find(&mut self, name: &str) -> Option<u16> {
        let mut attributes = Nested::default();
        attributes.push(FAMILY_NAME, [name.as_bytes(), &[0]].concat());
        let sent = self.send(CONTROLLER, &[(GET_FAMILY, attributes)], 0);
        let answer = sent.ok()?.pop()?.ok()?;
        let id = answer.get(FAMILY_ID)?.try_into().ok()?;
        Some(u16::from_ne_bytes(id)).filter(|id| *id != 0)
    }

    /// The answers of requests, in their order.
    pub fn get(&mut self, requests: &[GenlRequest]) -> Result<Vec<Answer>, Errno> {
        self.send(self.family, requests, 0)
    }

    /// The objects of a dump, each as its attributes.
    pub fn dump(&self, command: u8) -> Result<Vec<Nested>, Errno> {
        let objects = self.socket.dump(self.family, &[command, 1, 0, 0])?;
        Ok(objects.iter().filter_map(|one| object(one)).collect())
    }

    /// The result of one request that changes something.
    pub fn set(&mut self, request: GenlRequest) -> Result<(), SetError> {
        let answer = self.send(self.family, &[request], NLM_F_ACK)?.pop();
        answer.unwrap_or(Err(Errno::EIO.into())).map(drop)
    }

    fn send(&self, kind: u16, requests: &[GenlRequest], flags: u16) -> Result<Vec<Answer>, Errno> {
        let body = |(command, attributes): &GenlRequest| {
            let header = [*command, 1, 0, 0];
            [&header[..], &attributes.bytes()].concat()
        };
        let bodies: Vec<_> = requests.iter().map(body).collect();
        ask(&self.socket, kind, flags, &bodies)
    }
}

/// The answers of requests in their order, each of which has a header as long as that of generic netlink.
pub(in crate::kernel) fn ask(
    socket: &PlainSocket,
    kind: u16,
    flags: u16,
    bodies: &[Vec<u8>],
) -> Result<Vec<Answer>, Errno> {
    let mut bytes = Vec::new();
    for (sequence, body) in (1..).zip(bodies) {
        put(kind, NLM_F_REQUEST | flags, sequence, body, &mut bytes);
    }
    socket.send(&bytes)?;
    let mut answers = HashMap::new();
    while answers.len() < bodies.len() {
        let Ok(datagram) = socket.receive() else {
            break;
        };
        answers.extend(answers_in(&datagram));
    }
    let sequences = (1..).take(bodies.len());
    let missing = || Err(Errno::ENOBUFS.into());
    Ok(sequences
        .map(|sequence: u32| answers.remove(&sequence).unwrap_or_else(missing))
        .collect())
}

/// The attributes of an object, after its `struct genlmsghdr`.
pub(in crate::kernel) fn object(body: &[u8]) -> Option<Nested> {
    body.get(GENERIC_HEADER..).and_then(Nested::parse)
}

/// The answers in a datagram by the sequence numbers of their requests.
pub(in crate::kernel) fn answers_in(datagram: &[u8]) -> impl Iterator<Item = (u32, Answer)> {
    split(datagram).map_while(|part| {
        let (header, message) = part.ok()?;
        let body = message.get(HEADER..).unwrap_or_default();
        let answer = match header.message_type {
            NLMSG_ERROR => refusal(body, header.flags),
            _ => object(body).ok_or_else(|| Errno::EBADMSG.into()),
        };
        Some((header.sequence_number, answer))
    })
}

/// `struct nlmsgerr`: an errno, the header of the request, the request itself unless it is left out, and attributes.
fn refusal(body: &[u8], flags: u16) -> Answer {
    /// `NLM_F_CAPPED`, `NLM_F_ACK_TLVS`, `NLMSGERR_ATTR_MSG`.
    const CAPPED: u16 = 0x100;
    const HAS_ATTRIBUTES: u16 = 0x200;
    const TEXT: u16 = 1;
    const MOST: usize = 300;
    let code = word(body, 0).map(u32::cast_signed);
    let code = code.ok_or(Errno::EBADMSG)?;
    if code == 0 {
        return Ok(Nested::default());
    }
    let skipped = if flags & CAPPED == 0 {
        word(body, 4).map_or(usize::MAX, |length| length as usize)
    } else {
        HEADER
    };
    let attributes = (flags & HAS_ATTRIBUTES != 0)
        .then(|| body.get(4_usize.saturating_add(skipped.next_multiple_of(4))..))
        .flatten();
    let attributes = attributes.and_then(Nested::parse);
    let words = attributes.and_then(|all| {
        let text = all.get(TEXT)?;
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        Some(Bytes::from(text.get(..MOST).unwrap_or(text).to_vec()).to_string())
    });
    Err(SetError {
        errno: errno(code),
        words: words.filter(|words| !words.is_empty()),
    })
}
