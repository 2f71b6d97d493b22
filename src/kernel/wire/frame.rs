//! Ethernet frames that claim or probe an address: ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861, RFC 4862).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::icmpv6::{Icmpv6PayloadSlice, NeighborAdvertisementHeader};
use etherparse::{
    ArpEthIpv4Packet, ArpOperation, ArpPacketSlice, EtherType, Ethernet2Header, Ethernet2Slice,
    Icmpv6Slice, Icmpv6Type, IpNumber, Ipv6HeaderSlice, PacketBuilder,
};

use crate::model::Mac;

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
    let ethernet = Ethernet2Header {
        source: mac.0,
        destination: [0xff; 6],
        ether_type: EtherType::ARP,
    };
    let packet = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: mac.0,
        sender_ipv4: from.octets(),
        target_mac: [0; 6],
        target_ipv4: to.octets(),
    };
    [&ethernet.to_bytes()[..], &packet.to_bytes()].concat()
}

/// The neighbour solicitation of duplicate address detection: its source is `::` (RFC 4862, section 5.4.2).
#[must_use]
pub fn solicitation(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    let [.., a, b, c] = address.octets();
    let [high, low] = [u16::from_be_bytes([0xff, a]), u16::from_be_bytes([b, c])];
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low);
    let path = (Ipv6Addr::UNSPECIFIED, group);
    icmpv6(
        mac,
        path,
        Icmpv6Type::NeighborSolicitation,
        &address.octets(),
    )
}

/// The unsolicited neighbour advertisement of one's own address: neighbours replace the MAC that they know (RFC 4861,
/// section 7.2.6).
#[must_use]
pub fn advertisement(mac: Mac, address: Ipv6Addr, is_router: bool) -> Vec<u8> {
    let flags = NeighborAdvertisementHeader {
        router: is_router,
        solicited: false,
        r#override: true,
    };
    let body = [&address.octets()[..], &TARGET_MAC, &mac.0].concat();
    let kind = Icmpv6Type::NeighborAdvertisement(flags);
    icmpv6(mac, (address, ALL_NODES), kind, &body)
}

fn icmpv6(mac: Mac, (from, to): (Ipv6Addr, Ipv6Addr), kind: Icmpv6Type, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    // Refused is only a body that is too large for a packet.
    let _ = PacketBuilder::ethernet2(mac.0, group_mac(to).0)
        .ipv6(from.octets(), to.octets(), HOP_LIMIT)
        .icmpv6(kind)
        .write_to_vec(&mut frame, body);
    frame
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

/// What a frame shows of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The address.
    pub address: IpAddr,
    /// The MAC of the link that has it, or that probes for it.
    pub mac: Mac,
    /// Whether that link only probes for it. A probe claims nothing: a switch that tracks its hosts probes for the addresses
    /// that they have, and a machine that wants the address has yet to hear whether it is free.
    pub is_probe: bool,
}

/// Reads a received frame; `None` for one that is about no address. Frames come from anywhere: each byte is checked.
#[must_use]
pub fn heard(frame: &[u8]) -> Option<Heard> {
    let frame = Ethernet2Slice::from_slice_without_fcs(frame).ok()?;
    let found = match frame.ether_type() {
        EtherType::ARP => of_arp(frame.payload_slice()),
        EtherType::IPV6 => of_neighbour_discovery(frame.payload_slice(), Mac(frame.source())),
        _ => None,
    };
    found.filter(|found| {
        let is_of_one = !found.mac.is_group() && found.mac != Mac([0; 6]);
        is_of_one && !found.address.is_unspecified()
    })
}

/// The sender of a request or reply, or the target of a probe (RFC 5227, section 2.1.1).
fn of_arp(packet: &[u8]) -> Option<Heard> {
    let packet = ArpPacketSlice::from_slice(packet).ok()?.to_packet();
    let packet = packet.try_eth_ipv4().ok()?;
    let (sender, target) = (packet.sender_ipv4_addr(), packet.target_ipv4_addr());
    let is_probe = sender.is_unspecified() && packet.operation == ArpOperation::REQUEST;
    let address = if is_probe { target } else { sender };
    Some(Heard {
        address: address.into(),
        mac: Mac(packet.sender_mac),
        is_probe,
    })
}

/// The target of an advertisement, or of a solicitation from `::` (RFC 4862, section 5.4).
fn of_neighbour_discovery(packet: &[u8], source: Mac) -> Option<Heard> {
    let header = Ipv6HeaderSlice::from_slice(packet).ok()?;
    if header.next_header() != IpNumber::IPV6_ICMP || header.hop_limit() != HOP_LIMIT {
        return None;
    }
    let message = packet.get(header.slice().len()..)?;
    let message = Icmpv6Slice::from_slice(message).ok()?;
    let (target, mac, is_probe) = match message.payload_slice().ok()? {
        Icmpv6PayloadSlice::NeighborAdvertisement(body) => {
            let mac = target_mac(body.options());
            (body.target_address(), mac.unwrap_or(source), false)
        }
        Icmpv6PayloadSlice::NeighborSolicitation(body) if header.source_addr().is_unspecified() => {
            (body.target_address(), source, true)
        }
        _ => return None,
    };
    Some(Heard {
        address: target.into(),
        mac,
        is_probe,
    })
}

/// The MAC in the options of an advertisement. Those of other types may have any content.
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

    /// The address and the MAC that has it.
    fn claimed(frame: &[u8]) -> Option<(IpAddr, Mac)> {
        let heard = heard(frame).filter(|heard| !heard.is_probe)?;
        Some((heard.address, heard.mac))
    }

    /// The address and the MAC that probes for it.
    fn probed(frame: &[u8]) -> Option<(IpAddr, Mac)> {
        let heard = heard(frame).filter(|heard| heard.is_probe)?;
        Some((heard.address, heard.mac))
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
        assert_eq!(frame[54], 136);
        assert_eq!(frame[58], 0x20, "override, not solicited, no router");
        assert_eq!(advertisement(POD, V6, true)[58], 0xa0);
        assert_eq!(frame[78..], [2, 1, 2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_checksum_covers_the_pseudo_header() {
        for frame in [solicitation(POD, V6), advertisement(POD, V6, true)] {
            let [from, to] = [&frame[22..38], &frame[38..54]].map(|ip| ip.try_into().unwrap());
            let message = Icmpv6Slice::from_slice(&frame[54..]).unwrap();
            assert!(message.is_checksum_valid(from, to));
        }
    }

    #[test]
    fn answers_and_announcements_claim_an_address() {
        assert_eq!(
            claimed(&arp_announcement(OTHER, V4)),
            Some((V4.into(), OTHER))
        );
        let mut reply = arp_request(OTHER, V4, Ipv4Addr::UNSPECIFIED);
        reply[21] = 2;
        assert_eq!(claimed(&reply), Some((V4.into(), OTHER)));
        assert_eq!(
            claimed(&advertisement(OTHER, V6, false)),
            Some((V6.into(), OTHER))
        );
    }

    #[test]
    fn a_probe_of_another_claims_no_address() {
        for (probe, address) in [
            (arp_probe(OTHER, V4), V4.into()),
            (solicitation(OTHER, V6), V6.into()),
        ] {
            assert_eq!(claimed(&probe), None);
            assert_eq!(probed(&probe), Some((address, OTHER)));
        }
    }

    #[test]
    fn a_question_about_an_address_claims_only_the_address_of_its_sender() {
        let sender = Ipv4Addr::new(10, 0, 0, 1);
        let question = arp_request(OTHER, sender, V4);
        assert_eq!(claimed(&question), Some((sender.into(), OTHER)));
        let mut question = solicitation(OTHER, V6);
        question[22] = 0xfd;
        assert_eq!(heard(&question), None);
    }

    #[test]
    fn no_frame_that_is_cut_or_changed_is_a_panic_or_a_group() {
        let mut group = arp_announcement(OTHER, V4);
        group[22] |= 1;
        assert_eq!(heard(&group), None);
        for whole in [arp_probe(OTHER, V4), advertisement(OTHER, V6, false)] {
            for end in 0..whole.len() {
                let _ = heard(&whole[..end]);
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut changed = whole.clone();
                    changed[end] = byte;
                    let _ = heard(&changed);
                }
            }
        }
        let mut forwarded = advertisement(OTHER, V6, false);
        forwarded[21] = 64;
        assert_eq!(heard(&forwarded), None, "a router has forwarded it");
    }
}
