//! Ethernet frames that claim or probe an address: ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861, RFC 4862).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::kernel::wire::icmp::checksum;
use crate::model::Mac;

const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// Ethernet, IPv4, address lengths 6 and 4 (RFC 826).
const ARP_OVER_ETHERNET: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const ARP_REQUEST: [u8; 2] = [0, 1];
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Neighbour discovery ignores packets that a router has forwarded (RFC 4861, section 7.1).
const HOP_LIMIT: u8 = 255;
/// The Target Link-Layer Address option, and its length in units of 8 bytes.
const TARGET_MAC: [u8; 2] = [2, 1];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The broadcast ARP request for an address that the sender does not use yet: its sender address is 0.0.0.0 (RFC 5227,
/// section 1.1), so no neighbour learns anything from it.
#[must_use]
pub fn arp_probe(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, Ipv4Addr::UNSPECIFIED, address)
}

/// The broadcast ARP request for one's own address (RFC 5227, section 2.3).
#[must_use]
pub fn arp_announcement(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, address, address)
}

fn arp_request(mac: Mac, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    const BROADCAST: [u8; 6] = [0xff; 6];
    const UNKNOWN: [u8; 6] = [0; 6];
    [
        &BROADCAST[..],
        &mac.0,
        &ETHERTYPE_ARP,
        &ARP_OVER_ETHERNET,
        &ARP_REQUEST,
        &mac.0,
        &from.octets(),
        &UNKNOWN,
        &to.octets(),
    ]
    .concat()
}

/// The neighbour solicitation of duplicate address detection: its source is `::` (RFC 4862, section 5.4.2).
#[must_use]
pub fn solicitation(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    let body = [&[SOLICITATION, 0, 0, 0, 0, 0, 0, 0], &address.octets()[..]].concat();
    let [.., a, b, c] = address.octets();
    let [high, low] = [u16::from_be_bytes([0xff, a]), u16::from_be_bytes([b, c])];
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low);
    icmpv6(mac, (Ipv6Addr::UNSPECIFIED, group), body)
}

/// The unsolicited neighbour advertisement of one's own address: neighbours replace the MAC that they know (RFC 4861,
/// section 7.2.6).
#[must_use]
pub fn advertisement(mac: Mac, address: Ipv6Addr, is_router: bool) -> Vec<u8> {
    const OVERRIDE: u8 = 0x20;
    const ROUTER: u8 = 0x80;
    let flags = if is_router {
        OVERRIDE | ROUTER
    } else {
        OVERRIDE
    };
    let body = [
        &[ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0],
        &address.octets()[..],
        &TARGET_MAC,
        &mac.0,
    ];
    icmpv6(mac, (address, ALL_NODES), body.concat())
}

fn icmpv6(mac: Mac, (from, to): (Ipv6Addr, Ipv6Addr), mut body: Vec<u8>) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    // The checksum covers addresses, length and protocol too (RFC 8200, section 8.1).
    let covered = [
        &from.octets()[..],
        &to.octets(),
        &[0, 0],
        &length,
        &[0, 0, 0, ICMPV6],
        &body,
    ];
    let sum = checksum(&covered.concat()).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    [
        &group_mac(to).0[..],
        &mac.0,
        &ETHERTYPE_IPV6,
        &[0x60, 0, 0, 0],
        &length,
        &[ICMPV6, HOP_LIMIT],
        &from.octets(),
        &to.octets(),
        &body,
    ]
    .concat()
}

/// The MAC of an IPv6 multicast group (RFC 2464, section 7).
fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// The MACs of the groups to which the owner of an IPv6 address answers a probe, and to which another host sends its own
/// probe for that address.
#[must_use]
pub fn probe_groups(address: Ipv6Addr) -> [Mac; 2] {
    let [.., a, b, c] = address.octets();
    [group_mac(ALL_NODES), Mac([0x33, 0x33, 0xff, a, b, c])]
}

/// What a frame shows: a link with this MAC has this address, or is about to add it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// The address.
    pub address: IpAddr,
    /// The MAC that the sender of the frame claims for it.
    pub mac: Mac,
}

/// Reads a received frame; `None` for one that claims no address. Frames come from anywhere: each byte is checked.
#[must_use]
pub fn claimed(frame: &[u8]) -> Option<Claimed> {
    let source = Mac::from_slice(frame.get(6..12)?)?;
    let packet = frame.get(14..)?;
    let found = match frame.get(12..14)? {
        kind if kind == ETHERTYPE_ARP => of_arp(packet),
        kind if kind == ETHERTYPE_IPV6 => of_neighbour_discovery(packet, source),
        _ => None,
    };
    found.filter(|found| {
        let is_of_one = !found.mac.is_group() && found.mac != Mac([0; 6]);
        is_of_one && !found.address.is_unspecified()
    })
}

/// The sender of a request or reply, or the target of a probe (RFC 5227, section 2.1.1).
fn of_arp(packet: &[u8]) -> Option<Claimed> {
    let ip = |bytes: &[u8]| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?));
    if packet.get(..6)? != ARP_OVER_ETHERNET {
        return None;
    }
    let mac = Mac::from_slice(packet.get(8..14)?)?;
    let (sender, target) = (ip(packet.get(14..18)?)?, ip(packet.get(24..28)?)?);
    let is_probe = sender.is_unspecified() && packet.get(6..8)? == ARP_REQUEST;
    let address = if is_probe { target } else { sender };
    Some(Claimed {
        address: address.into(),
        mac,
    })
}

/// The target of an advertisement, or of a solicitation from `::` (RFC 4862, section 5.4).
fn of_neighbour_discovery(packet: &[u8], source: Mac) -> Option<Claimed> {
    const HEADER: usize = 40;
    let ip = |bytes: &[u8]| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?));
    if packet.first()? >> 4 != 6 || packet.get(6..8)? != [ICMPV6, HOP_LIMIT] {
        return None;
    }
    let from = ip(packet.get(8..24)?)?;
    let message = packet.get(HEADER..)?;
    let target = ip(message.get(8..24)?)?;
    let mac = match message.get(..2)? {
        [ADVERTISEMENT, 0] => target_mac(message.get(24..)?).unwrap_or(source),
        [SOLICITATION, 0] if from.is_unspecified() => source,
        _ => return None,
    };
    Some(Claimed {
        address: target.into(),
        mac,
    })
}

/// The MAC in the options of an advertisement.
fn target_mac(mut options: &[u8]) -> Option<Mac> {
    loop {
        let length = 8 * usize::from(*options.get(1)?);
        let option = options.get(..length).filter(|option| !option.is_empty())?;
        if option[..2] == TARGET_MAC {
            return Mac::from_slice(&option[2..]);
        }
        options = &options[length..];
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::wire::frame::*;

    const POD: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const V6: Ipv6Addr = Ipv6Addr::new(0xfd88, 0, 0, 0, 0, 0, 1, 0x9);

    fn found(frame: &[u8]) -> Option<(IpAddr, Mac)> {
        claimed(frame).map(|found| (found.address, found.mac))
    }

    #[test]
    fn an_announcement_names_the_pod_as_sender_and_target() {
        let frame = arp_announcement(POD, V4);
        assert_eq!(frame.len(), 42);
        assert_eq!(
            frame[..12],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]
        );
        assert_eq!(frame[22..32], [2, 0, 0, 0, 0, 1, 10, 0, 0, 9]);
        assert_eq!(frame[38..], [10, 0, 0, 9]);
    }

    #[test]
    fn a_probe_has_no_sender_address() {
        let frame = arp_probe(POD, V4);
        assert_eq!(frame[22..32], [2, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(frame[38..], [10, 0, 0, 9]);
        let frame = solicitation(POD, V6);
        assert_eq!(frame[..6], [0x33, 0x33, 0xff, 1, 0, 9]);
        assert_eq!(frame[22..38], [0; 16], "the source address");
    }

    #[test]
    fn an_advertisement_replaces_the_mac_that_neighbours_know() {
        let frame = advertisement(POD, V6, false);
        assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 1]);
        assert_eq!(frame[54], ADVERTISEMENT);
        assert_eq!(frame[58], 0x20, "override, not solicited, no router");
        assert_eq!(advertisement(POD, V6, true)[58], 0xa0);
        assert_eq!(frame[78..], [2, 1, 2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_checksum_covers_the_pseudo_header() {
        for frame in [solicitation(POD, V6), advertisement(POD, V6, true)] {
            let body = &frame[54..];
            let length = u8::try_from(body.len()).unwrap();
            let covered = [&frame[22..54], &[0, 0, 0, length, 0, 0, 0, ICMPV6], body];
            assert_eq!(checksum(&covered.concat()), 0);
        }
    }

    #[test]
    fn answers_announcements_and_probes_of_others_claim_an_address() {
        assert_eq!(
            found(&arp_announcement(OTHER, V4)),
            Some((V4.into(), OTHER))
        );
        assert_eq!(found(&arp_probe(OTHER, V4)), Some((V4.into(), OTHER)));
        let mut reply = arp_request(OTHER, V4, Ipv4Addr::UNSPECIFIED);
        reply[21] = 2;
        assert_eq!(found(&reply), Some((V4.into(), OTHER)));
        assert_eq!(found(&solicitation(OTHER, V6)), Some((V6.into(), OTHER)));
        assert_eq!(
            found(&advertisement(OTHER, V6, false)),
            Some((V6.into(), OTHER))
        );
    }

    #[test]
    fn a_question_about_an_address_claims_only_the_address_of_its_sender() {
        let sender = Ipv4Addr::new(10, 0, 0, 1);
        let question = arp_request(OTHER, sender, V4);
        assert_eq!(found(&question), Some((sender.into(), OTHER)));
        let mut question = solicitation(OTHER, V6);
        question[22] = 0xfd;
        assert_eq!(found(&question), None);
    }

    #[test]
    fn no_frame_that_is_cut_or_changed_is_a_panic_or_a_group() {
        let mut group = arp_announcement(OTHER, V4);
        group[22] |= 1;
        assert_eq!(found(&group), None);
        for whole in [arp_probe(OTHER, V4), advertisement(OTHER, V6, false)] {
            for end in 0..whole.len() {
                let _ = claimed(&whole[..end]);
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut changed = whole.clone();
                    changed[end] = byte;
                    let _ = claimed(&changed);
                }
            }
        }
        let mut forwarded = advertisement(OTHER, V6, false);
        forwarded[21] = 64;
        assert_eq!(found(&forwarded), None, "a router has forwarded it");
    }
}
