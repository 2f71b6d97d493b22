//! Telling the network where restored pods are: ARP announcements (RFC 5227, section 2.3).
//!
//! A new link sends nothing by itself, so switches would not know its port. IPv6 needs no help: duplicate address
//! detection multicasts from the new link.

use std::io;
use std::net::Ipv4Addr;

use crate::kernel::packet::Sender;
use crate::model::Mac;

/// One address to announce.
#[derive(Debug, Clone, Copy)]
pub struct Announcement {
    /// The ifindex of the host's link to send through.
    pub parent: u32,
    /// The pod's MAC.
    pub mac: Mac,
    /// The pod's address.
    pub address: Ipv4Addr,
}

/// Sends every announcement, all through one socket; returns how many could not be sent, with the last errno.
///
/// # Errors
/// The errno of opening the socket.
pub fn announce(announcements: &[Announcement]) -> io::Result<Option<(usize, io::Error)>> {
    if announcements.is_empty() {
        return Ok(None);
    }
    let sender = Sender::open()?;
    let failed = announcements.iter().filter_map(|a| sender.send(a.parent, &frame(a.mac, a.address)).err());
    Ok(failed.fold(None, |count, error| Some((count.map_or(1, |(n, _)| n + 1), error))))
}

/// A broadcast ARP request for one's own address.
fn frame(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    const BROADCAST: [u8; 6] = [0xff; 6];
    const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
    // Ethernet, IPv4, address lengths 6 and 4, request (RFC 826).
    const REQUEST: [u8; 8] = [0, 1, 0x08, 0, 6, 4, 0, 1];
    const NOBODY: [u8; 6] = [0; 6];
    let ip = address.octets();
    [&BROADCAST[..], &mac.0, &ETHERTYPE_ARP, &REQUEST, &mac.0, &ip, &NOBODY, &ip].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_names_the_pod_as_sender_and_target() {
        let frame = frame(Mac([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(frame.len(), 42);
        assert_eq!(frame[..12], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]);
        assert_eq!(frame[22..32], [2, 0, 0, 0, 0, 1, 10, 0, 0, 9]);
        assert_eq!(frame[38..], [10, 0, 0, 9]);
    }
}
