//! Announces restored pods to the network: ARP announcements (RFC 5227, section 2.3).
//!
//! A new link sends nothing, so switches do not know its port. IPv6 needs no help: duplicate address detection
//! multicasts from the new link.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::job::Job;
use crate::inventory::observe::Host;
use crate::kernel::packet::Sender;
use crate::model::problem::RestoreCause;
use crate::model::{Address, Link, LinkKind, Mac, Parent, Problem};

/// One address to announce.
struct Announcement {
    /// The ifindex of the host's link to send through.
    parent: u32,
    mac: Mac,
    address: Ipv4Addr,
}

/// Announces the IPv4 addresses of all created links. A failure never fails a restore.
pub(super) fn announce(jobs: &[&mut Job], host: &Host) -> Option<Problem> {
    let all: Vec<Announcement> = jobs
        .iter()
        .flat_map(|job| job.created_links())
        .flat_map(|(link, addresses)| of_link(link, &addresses, host))
        .collect();
    let (failed, error) = match send(&all) {
        Ok(None) => return None,
        Ok(Some(failed)) => failed,
        Err(error) => (all.len(), error),
    };
    let cause = RestoreCause::NotAnnounced {
        failed,
        all: all.len(),
        error: error.to_string(),
    };
    Some(cause.info("announce"))
}

fn of_link(link: &Link, addresses: &[&Address], host: &Host) -> Vec<Announcement> {
    // A frame that leaves through a VLAN's parent has no tag, and reaches other neighbours than the pod's.
    let (LinkKind::Macvlan(_), Some(Parent::Host(parent)), Some(mac)) =
        (&link.kind, &link.parent, link.mac)
    else {
        return Vec::new();
    };
    let Some(parent) = host.state.link(parent).map(|parent| parent.index) else {
        return Vec::new();
    };
    let announcement = |address| match address {
        IpAddr::V4(address) => Some(Announcement {
            parent,
            mac,
            address,
        }),
        IpAddr::V6(_) => None,
    };
    let addresses = addresses.iter();
    addresses
        .filter_map(|address| announcement(address.local))
        .collect()
}

/// Sends all announcements through one socket; returns how many could not be sent, with the last errno.
fn send(all: &[Announcement]) -> io::Result<Option<(usize, io::Error)>> {
    if all.is_empty() {
        return Ok(None);
    }
    let sender = Sender::open()?;
    let failed = all
        .iter()
        .filter_map(|a| sender.send(a.parent, &frame(a.mac, a.address)).err());
    Ok(failed.fold(None, |count, error| {
        Some((count.map_or(1, |(n, _)| n + 1), error))
    }))
}

/// A broadcast ARP request for one's own address.
fn frame(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    const BROADCAST: [u8; 6] = [0xff; 6];
    const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
    // Ethernet, IPv4, address lengths 6 and 4, request (RFC 826).
    const REQUEST: [u8; 8] = [0, 1, 0x08, 0, 6, 4, 0, 1];
    const UNKNOWN: [u8; 6] = [0; 6];
    let ip = address.octets();
    [
        &BROADCAST[..],
        &mac.0,
        &ETHERTYPE_ARP,
        &REQUEST,
        &mac.0,
        &ip,
        &UNKNOWN,
        &ip,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_names_the_pod_as_sender_and_target() {
        let frame = frame(Mac([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(frame.len(), 42);
        assert_eq!(
            frame[..12],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]
        );
        assert_eq!(frame[22..32], [2, 0, 0, 0, 0, 1, 10, 0, 0, 9]);
        assert_eq!(frame[38..], [10, 0, 0, 9]);
    }
}
