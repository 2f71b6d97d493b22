//! Netlink sockets of other families than rtnetlink, with messages as bytes.

pub(super) mod genl;

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr};

use super::Errno;
use super::codec::nested::word;
use super::codec::{NLMSG_DONE, NLMSG_ERROR, split};
use super::error::errno;
use super::netns::routing;
use crate::fault::retry_interrupted;

/// `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

/// A socket of the calling thread's namespace.
pub(super) struct PlainSocket(Socket);

impl PlainSocket {
    /// Of one of `NETLINK_*`.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let socket = routing::socket(protocol)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Words beside an errno, and without a copy of the request. Kernels before 4.12 lack them.
        let _ = (socket.set_ext_ack(true), socket.set_cap_ack(true));
        Ok(Self(socket))
    }

    pub fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        let sent = retry_interrupted(|| self.0.send(bytes, 0));
        sent.map(drop)
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// The next datagram. The kernel answers before a send returns, so that nothing is waited for.
    pub fn receive(&self) -> io::Result<Vec<u8>> {
        const LENGTH: libc::c_int = libc::MSG_PEEK | libc::MSG_TRUNC;
        let receive = |buffer: &mut Vec<u8>, flags| {
            retry_interrupted(|| self.0.recv(buffer, flags | libc::MSG_DONTWAIT))
        };
        let length = receive(&mut Vec::new(), LENGTH)?;
        // The kernel makes the next part of a dump as long as the longest buffer was, up to this, and finds its place in all rules of
        // nftables anew for each part.
        let mut datagram = Vec::with_capacity(length.max(32 << 10));
        receive(&mut datagram, 0)?;
        Ok(datagram)
    }

    /// Sends requests that are not acknowledged; returns how many objects were present, and how many other requests failed.
    pub fn send_all(&self, requests: &[u8]) -> io::Result<(usize, usize)> {
        let (mut present, mut failed) = (0, 0);
        self.send(requests)?;
        loop {
            let answer = match self.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok((present, failed));
                }
                answer => answer?,
            };
            for part in split(&answer) {
                let (_, message) = part.map_err(|_| Errno::EBADMSG)?;
                let code = word(message, HEADER).unwrap_or_default().cast_signed();
                match errno(code) {
                    Errno::EEXIST => present += 1,
                    _ => failed += 1,
                }
            }
        }
    }

    /// The objects of a dump, without their message headers.
    pub fn dump(&self, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let mut objects = Vec::new();
        self.each_of_dump(kind, body, |object| objects.push(object.to_vec()))?;
        Ok(objects)
    }

    /// Each object of a dump, which may be too large to be kept.
    pub fn each_of_dump(
        &self,
        kind: u16,
        body: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let mut request = Vec::new();
        put(kind, NLM_F_REQUEST | NLM_F_DUMP, 1, body, &mut request);
        self.send(&request)?;
        loop {
            let datagram = self.receive();
            let datagram = datagram
                .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
            for part in split(&datagram) {
                let (header, message) = part.map_err(|_| Errno::EBADMSG)?;
                let body = message.get(HEADER..).unwrap_or_default();
                let code = || word(body, 0).unwrap_or_default().cast_signed();
                match header.message_type {
                    NLMSG_DONE | NLMSG_ERROR if code() == 0 => return Ok(()),
                    NLMSG_DONE | NLMSG_ERROR => return Err(errno(code())),
                    _ => take(body),
                }
            }
        }
    }
}

/// Appends a message.
pub(super) fn put(kind: u16, flags: u16, sequence: u32, body: &[u8], to: &mut Vec<u8>) {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(flags.to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend([0; 4]);
    to.extend(body);
    to.resize(to.len().next_multiple_of(4), 0);
}
