//! Sockets that are bound to a link, by `SO_BINDTODEVICE` or a link-local address (`linux/inet_diag.h`): the kernel keeps the ifindex.

use std::fs;

use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::xsk::{BY_FAMILY, may_have_sockets};
use crate::kernel::Errno;
use crate::kernel::codec::nested::word;
use crate::kernel::plain::PlainSocket;

/// A socket that receives on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundSocket {
    /// Its protocol.
    pub protocol: &'static str,
    /// Its port; of a raw socket the protocol.
    pub port: u16,
    /// The ifindex to which it is bound; 0: to none.
    pub index: u32,
    /// Its inode.
    pub inode: u64,
}

/// A protocol as it is asked for, with the names in `/proc/net/protocols` of both families.
struct DiagProtocol {
    number: u8,
    name: &'static str,
    listed: [&'static str; 2],
    /// The states of its sockets that receive.
    states: u32,
}

/// A connection of TCP ends with its link.
const LISTEN: u32 = 1 << 10;

const PROTOCOLS: [DiagProtocol; 5] = [
    DiagProtocol {
        number: 6,
        name: "tcp",
        listed: ["TCP", "TCPv6"],
        states: LISTEN,
    },
    DiagProtocol {
        number: 17,
        name: "udp",
        listed: ["UDP", "UDPv6"],
        states: u32::MAX,
    },
    DiagProtocol {
        number: 136,
        name: "udplite",
        listed: ["UDP-Lite", "UDPLITEv6"],
        states: u32::MAX,
    },
    DiagProtocol {
        number: 132,
        name: "sctp",
        listed: ["SCTP", "SCTPv6"],
        states: LISTEN,
    },
    DiagProtocol {
        number: 255,
        name: "raw",
        listed: ["RAW", "RAWv6"],
        states: u32::MAX,
    },
];

/// `AF_INET`, `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];
/// `struct inet_diag_req_v2`.
const REQUEST: usize = 56;

/// The sockets of the calling thread's namespace; and what the kernel did not list.
pub(super) fn read() -> (Vec<BoundSocket>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let protocols = match fs::read_to_string("/proc/thread-self/net/protocols") {
        Ok(protocols) => protocols,
        Err(error) => return (found, vec![format!("sockets: {error}")]),
    };
    for protocol in &PROTOCOLS {
        for (family, listed) in FAMILIES.into_iter().zip(protocol.listed) {
            // The query would load a module.
            if !may_have_sockets(&protocols, listed) {
                continue;
            }
            match protocol.sockets(family) {
                Ok(sockets) => found.extend(sockets),
                Err(errno) => unread.push(format!("{} sockets: {errno}", protocol.name)),
            }
        }
    }
    (found, unread)
}

impl DiagProtocol {
    fn sockets(&self, family: u8) -> Result<Vec<BoundSocket>, Errno> {
        let mut request = vec![0; REQUEST];
        (request[0], request[1]) = (family, self.number);
        request[4..8].copy_from_slice(&self.states.to_ne_bytes());
        let socket = PlainSocket::open(NETLINK_SOCK_DIAG).map_err(|_| Errno::EPROTONOSUPPORT)?;
        let mut found = Vec::new();
        socket.each_of_dump(BY_FAMILY, &request, |message| {
            found.extend(self.socket(message));
        })?;
        Ok(found)
    }

    /// `struct inet_diag_msg`: family, state, timer, retransmissions, then `struct inet_diag_sockid` with the source port in the order of
    /// the network, and five numbers, of which the inode is the last.
    fn socket(&self, message: &[u8]) -> Option<BoundSocket> {
        let port = message.get(4..6)?.try_into().ok()?;
        Some(BoundSocket {
            protocol: self.name,
            port: u16::from_be_bytes(port),
            index: word(message, 40)?,
            inode: word(message, 68)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_report_of_the_kernel_has_the_port_the_ifindex_and_the_inode() {
        // Of `ss`: udp 0.0.0.0%v0:7000, with ifindex 70.
        let mut message = vec![2, 7, 0, 0, 0x1b, 0x58];
        message.resize(40, 0);
        message.extend([0x46, 0, 0, 0, 0xea, 0xfe]);
        message.resize(68, 0);
        message.extend([0x49, 0xb1, 0x8f, 0x01]);
        let udp = &PROTOCOLS[1];
        let expected = BoundSocket {
            protocol: "udp",
            port: 7000,
            index: 70,
            inode: 26_194_249,
        };
        assert_eq!(udp.socket(&message), Some(expected));
        for end in 0..message.len() {
            assert_eq!(udp.socket(&message[..end]), None, "{end}");
        }
    }
}
