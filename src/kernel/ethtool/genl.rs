//! The generic netlink family `ethtool` (Linux 5.6): requests that are sent together, and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::{NLMSG_ERROR, split};
use crate::kernel::error::{SetError, errno};
use crate::kernel::plain::{self, PlainSocket};
use crate::model::Bytes;

/// `NLA_F_NESTED`.
pub(super) const NESTED: u16 = 0x8000;
/// `struct genlmsghdr`.
const GENERIC_HEADER: usize = 4;
/// The controller of families: `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// The family's number, which is the same until the next boot: 0 until it was found.
static FAMILY: AtomicU16 = AtomicU16::new(0);

/// One request: its command and attributes.
pub(super) type GenlRequest = (u8, Nested);
/// The attributes of an answer; none of an acknowledgement.
pub(super) type Answer = Result<Nested, SetError>;

/// A socket of the calling thread's namespace.
pub(super) struct Genl {
    socket: PlainSocket,
    family: u16,
}

impl Genl {
    /// `None` on a kernel without the family.
    pub fn open_here() -> Option<Self> {
        let mut genl = Self {
            socket: PlainSocket::open(NETLINK_GENERIC).ok()?,
            family: FAMILY.load(Ordering::Relaxed),
        };
        if genl.family == 0 {
            genl.family = genl.find()?;
            FAMILY.store(genl.family, Ordering::Relaxed);
        }
        Some(genl)
    }

    fn find(&mut self) -> Option<u16> {
        let mut attributes = Nested::default();
        attributes.push(FAMILY_NAME, b"ethtool\0".to_vec());
        let sent = self.send(CONTROLLER, &[(GET_FAMILY, attributes)], 0);
        let answer = sent.ok()?.pop()?.ok()?;
        let id = answer.get(FAMILY_ID)?.try_into().ok()?;
        Some(u16::from_ne_bytes(id)).filter(|id| *id != 0)
    }

    /// The answers of requests, in their order.
    pub fn get(&mut self, requests: &[GenlRequest]) -> Result<Vec<Answer>, Errno> {
        self.send(self.family, requests, 0)
    }

    /// The result of one request that changes something.
    pub fn set(&mut self, request: GenlRequest) -> Result<(), SetError> {
        let answer = self.send(self.family, &[request], NLM_F_ACK)?.pop();
        answer.unwrap_or(Err(Errno::EIO.into())).map(drop)
    }

    fn send(&self, kind: u16, requests: &[GenlRequest], flags: u16) -> Result<Vec<Answer>, Errno> {
        let mut bytes = Vec::new();
        for (sequence, (command, attributes)) in (1..).zip(requests) {
            let mut body = vec![*command, 1, 0, 0];
            body.extend(attributes.bytes());
            plain::put(kind, NLM_F_REQUEST | flags, sequence, &body, &mut bytes);
        }
        self.socket.send(&bytes)?;
        let mut answers = HashMap::new();
        while answers.len() < requests.len() {
            let Ok(datagram) = self.socket.receive() else {
                break;
            };
            answers.extend(answers_in(&datagram));
        }
        let sequences = (1..).take(requests.len());
        let missing = || Err(Errno::ENOBUFS.into());
        Ok(sequences
            .map(|sequence: u32| answers.remove(&sequence).unwrap_or_else(missing))
            .collect())
    }
}

/// The answers in a datagram by the sequence numbers of their requests.
pub(super) fn answers_in(datagram: &[u8]) -> impl Iterator<Item = (u32, Answer)> {
    split(datagram).map_while(|part| {
        let (header, message) = part.ok()?;
        let body = message.get(plain::HEADER..).unwrap_or_default();
        let answer = match header.message_type {
            NLMSG_ERROR => refusal(body, header.flags),
            _ => body
                .get(GENERIC_HEADER..)
                .and_then(Nested::parse)
                .ok_or_else(|| Errno::EBADMSG.into()),
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
        plain::HEADER
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
