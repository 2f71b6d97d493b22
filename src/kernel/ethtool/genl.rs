//! The generic netlink family `ethtool` (Linux 5.6): requests that are sent together, and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

use super::SetError;
use crate::fault::retry_interrupted;
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::{NLMSG_ERROR, split};
use crate::kernel::error::errno;
use crate::model::Bytes;

/// `NLA_F_NESTED`.
pub(super) const NESTED: u16 = 0x8000;
/// `struct nlmsghdr` and `struct genlmsghdr`.
const MESSAGE_HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// The controller of families: `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// The family's number, which is the same until the next boot: 0 until it was found.
static FAMILY: AtomicU16 = AtomicU16::new(0);

/// One request: its command and attributes.
pub(super) type Request = (u8, Nested);
/// The attributes of an answer; none of an acknowledgement.
pub(super) type Answer = Result<Nested, SetError>;

/// A socket of the calling thread's namespace.
pub(super) struct Genl {
    raw: Socket,
    family: u16,
}

impl Genl {
    /// `None` on a kernel without the family.
    pub fn open_here() -> Option<Self> {
        let mut raw = Socket::new(NETLINK_GENERIC).ok()?;
        raw.bind_auto().ok()?;
        raw.connect(&SocketAddr::new(0, 0)).ok()?;
        // Words beside an errno, and without a copy of the request.
        let _ = (raw.set_ext_ack(true), raw.set_cap_ack(true));
        let mut genl = Self {
            raw,
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
    pub fn get(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Errno> {
        self.send(self.family, requests, 0)
    }

    /// The result of one request that changes something.
    pub fn set(&mut self, request: Request) -> Result<(), SetError> {
        let answer = self.send(self.family, &[request], NLM_F_ACK)?.pop();
        answer.unwrap_or(Err(Errno::EIO.into())).map(drop)
    }

    /// The kernel answers before the send returns.
    fn send(&self, kind: u16, requests: &[Request], flags: u16) -> Result<Vec<Answer>, Errno> {
        let mut bytes = Vec::new();
        for (sequence, request) in (1..).zip(requests) {
            encode(kind, NLM_F_REQUEST | flags, sequence, request, &mut bytes);
        }
        retry_interrupted(|| self.raw.send(&bytes, 0)).map_err(|error| errno_of(&error))?;
        let mut answers = HashMap::new();
        while answers.len() < requests.len() {
            let Ok(datagram) = self.receive() else {
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

    fn receive(&self) -> std::io::Result<Vec<u8>> {
        const LENGTH_ONLY: libc::c_int = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        let receive = |buffer: &mut Vec<u8>, flags| {
            retry_interrupted(|| self.raw.recv(buffer, flags | libc::MSG_DONTWAIT))
        };
        let length =
            retry_interrupted(|| self.raw.recv(&mut [0_u8; 0].as_mut_slice(), LENGTH_ONLY))?;
        let mut datagram = Vec::with_capacity(length);
        receive(&mut datagram, 0)?;
        Ok(datagram)
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

fn encode(kind: u16, flags: u16, sequence: u32, (command, attributes): &Request, to: &mut Vec<u8>) {
    let attributes = attributes.bytes();
    let length = MESSAGE_HEADER + GENERIC_HEADER + attributes.len();
    to.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(flags.to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend([0; 4]);
    to.extend([*command, 1, 0, 0]);
    to.extend(attributes);
}

/// The answers in a datagram by the sequence numbers of their requests.
pub(super) fn answers_in(datagram: &[u8]) -> impl Iterator<Item = (u32, Answer)> {
    split(datagram).map_while(|part| {
        let (header, message) = part.ok()?;
        let body = message.get(MESSAGE_HEADER..).unwrap_or_default();
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
        MESSAGE_HEADER
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
