//! What is compared: the objects that the other readers have too, and the attributes of which the tables say so (`rows`).

mod rows;

use std::fs;
use std::path::Path;

use netlink_packet_core::{DefaultNla, Emitable};

use super::{Macs, link, objects};
use crate::kernel::codec::message::RTM_NEWNEXTHOP;
use crate::kernel::codec::{decode_dump, split, text};
use crate::kernel::dump::{self, Names};
use crate::model::raw_object::{RawKind, RawObject};
use crate::model::{Link, LinkKind, Mac};

/// `AF_*`, and `RTNL_FAMILY_IPMR`: the routes of multicast routers.
const INET: u8 = 2;
const INET_6: u8 = 10;
const BRIDGE: u8 = 7;
const DECNET: u8 = 12;
const MPLS: u8 = 28;
const IPMR: u8 = 128;
/// The index of `eth0`, and one that no link has.
const ETH0: u8 = 7;
const GONE: u8 = 9;
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
const V4: &[u8] = &[10, 0, 0, 1];
const V4_FAR: &[u8] = &[10, 0, 0, 2];
const V4_GROUP: &[u8] = &[224, 0, 0, 1];
const V4_NONE: &[u8] = &[0; 4];
const V6: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const V6_FAR: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

type Attributes<'a> = &'a [(u16, &'a [u8])];

fn attributes(all: Attributes<'_>) -> Vec<u8> {
    let all: Vec<_> = all
        .iter()
        .map(|(number, value)| DefaultNla::new(*number, value.to_vec()))
        .collect();
    let mut bytes = vec![0; all.as_slice().buffer_len()];
    all.as_slice().emit(&mut bytes);
    bytes
}

/// A message as the kernel sends it.
fn message(kind: u16, header: &[u8], body: Attributes<'_>) -> Vec<u8> {
    let body = [header, &attributes(body)].concat();
    let length = u32::try_from(text::MESSAGE_HEADER + body.len()).unwrap();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.resize(text::MESSAGE_HEADER, 0);
    message.extend(body);
    message
}

fn link_message(index: u8, body: Attributes<'_>) -> Vec<u8> {
    let header = [0, 0, 1, 0, index, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    message(libc::RTM_NEWLINK, &header, body)
}

fn address_message(family: u8, index: u8, body: Attributes<'_>) -> Vec<u8> {
    message(libc::RTM_NEWADDR, &[family, 24, 0, 0, index, 0, 0, 0], body)
}

fn route_message(family: u8, [table, protocol, kind]: [u8; 3], flags: u32) -> Vec<u8> {
    let mut header = vec![family, 0, 0, 0, table, protocol, 0, kind];
    header.extend(flags.to_ne_bytes());
    let body: Attributes<'_> = &[(4, &[ETH0, 0, 0, 0])];
    message(libc::RTM_NEWROUTE, &header, body)
}

fn nexthop_message(family: u8, body: Attributes<'_>) -> Vec<u8> {
    let header = [family, 0, 4, 0, 0, 0, 0, 0];
    message(RTM_NEWNEXTHOP, &header, body)
}

fn neighbour_message(family: u8, index: u8, state: u8, flags: u8, body: Attributes<'_>) -> Vec<u8> {
    let header = [family, 0, 0, 0, index, 0, 0, 0, state, 0, flags, 0];
    message(libc::RTM_NEWNEIGH, &header, body)
}

/// The links that messages are about.
struct Known {
    links: Vec<Link>,
    names: Names,
    macs: Macs,
}

impl Known {
    fn eth0() -> Self {
        let mut eth0 = Link::plain("eth0".parse().unwrap(), LinkKind::Physical);
        (eth0.index, eth0.mac) = (ETH0.into(), Some(Mac(OWN)));
        Self::of(vec![eth0])
    }

    fn of(links: Vec<Link>) -> Self {
        let names = links.iter().map(|link| (link.index, link.name.clone()));
        let macs = links
            .iter()
            .filter_map(|link| Some((link.index, link.mac?)));
        Self {
            names: names.collect(),
            macs: macs.collect(),
            links,
        }
    }

    fn reported(&self, message: &[u8]) -> Option<RawObject> {
        let (header, bytes) = split(message).next().unwrap().unwrap();
        let body = bytes[text::MESSAGE_HEADER..].to_vec();
        let messages = [(header.message_type, body)];
        // It has the names of the links from the same messages.
        let names: Names = match header.message_type {
            libc::RTM_NEWLINK => messages.iter().filter_map(link::name).collect(),
            _ => self.names.clone(),
        };
        objects::each(&messages, &names, &self.macs).pop()
    }

    /// What the other readers have of a message; an error for what they report as `unsupported`.
    fn read(&self, message: &[u8]) -> Result<Option<RawKind>, String> {
        let dump = || decode_dump(message).unwrap();
        let (links, mut unsupported) = (dump::by_index(&self.links), Vec::new());
        let all = &mut unsupported;
        let counts = [
            (RawKind::Link, dump::links_in(dump(), all).len()),
            (
                RawKind::Address,
                dump::addresses_in(dump(), &links, all).len(),
            ),
            (RawKind::Route, dump::routes_in(dump(), &links, all).len()),
            (
                RawKind::Nexthop,
                dump::nexthops_in(&dump(), &links, all).len(),
            ),
            (
                RawKind::Neighbour,
                dump::neighbours_in(dump(), &links, all).len(),
            ),
        ];
        let read = counts.into_iter().find(|(_, count)| *count > 0);
        match unsupported.pop() {
            Some(why) => Err(why),
            None => Ok(read.map(|(kind, _)| kind)),
        }
    }

    /// Reads each message both ways. Returns how many are objects, how many are none, and what differs.
    fn compare(&self, messages: &[Vec<u8>]) -> (usize, usize, Vec<String>) {
        let (mut taken, mut left, mut wrong) = (0, 0, Vec::new());
        for message in messages {
            let Ok(read) = self.read(message) else {
                continue;
            };
            match (read, self.reported(message).map(|one| one.what)) {
                (None, None) => left += 1,
                (read, reported) if read == reported => taken += 1,
                (read, reported) => wrong.push(format!("{read:?}, {reported:?}: {message:?}")),
            }
        }
        (taken, left, wrong)
    }
}

fn links() -> Vec<Vec<u8>> {
    let names: [&[u8]; 6] = [
        b"eth0\0",
        b"b\xfcro\0",
        b"\0",
        b"a/b\0",
        b".\0",
        b"sixteen-of-these\0",
    ];
    let mut all = names.map(|name| link_message(ETH0, &[(3, name)])).to_vec();
    all.push(link_message(ETH0, &[(4, &1400_u32.to_ne_bytes())]));
    all
}

fn addresses() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let values = [V4, V4_FAR, V4_NONE, V6, V6_FAR, &[1, 2]].map(Some);
    let values: Vec<_> = values.into_iter().chain([None]).collect();
    for family in [INET, INET_6, DECNET, MPLS] {
        for index in [ETH0, GONE] {
            for local in &values {
                for far in &values {
                    let pairs = [(2, *local), (1, *far)];
                    let body = pairs
                        .iter()
                        .filter_map(|(number, ip)| Some((*number, (*ip)?)));
                    all.push(address_message(family, index, &body.collect::<Vec<_>>()));
                }
            }
        }
    }
    all
}

fn routes() -> Vec<Vec<u8>> {
    /// `RTM_F_CLONED`, `RTNH_F_LINKDOWN`.
    const FLAGS: [u32; 3] = [0, 0x200, 0x10];
    let mut all = Vec::new();
    for family in [INET, INET_6, IPMR, MPLS] {
        for flags in FLAGS {
            for kind in 1..=11 {
                for protocol in [0, 1, 2, 3, 4, 9, 11, 16, 186] {
                    for table in [0, 7, 253, 254, 255] {
                        all.push(route_message(family, [table, protocol, kind], flags));
                    }
                }
            }
        }
    }
    all
}

fn nexthops() -> Vec<Vec<u8>> {
    let id: (u16, &[u8]) = (1, &[1, 0, 0, 0]);
    let bodies: [Attributes<'_>; 5] = [
        &[id, (5, &[ETH0, 0, 0, 0]), (6, V4)],
        &[id, (5, &[GONE, 0, 0, 0])],
        &[id, (2, &[2, 0, 0, 0, 0, 0, 0, 0]), (3, &[0, 0])],
        &[id, (4, &[])],
        &[id, (11, &[])],
    ];
    let families = [0, INET, INET_6, BRIDGE];
    let of_family = |family| bodies.map(|body| nexthop_message(family, body));
    families.into_iter().flat_map(of_family).collect()
}

fn neighbours() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let destinations = [V4, V4_GROUP, V6, &[1, 2]].map(Some);
    let macs: [Option<&[u8]>; 5] = [None, Some(&OWN), Some(&OTHER), Some(&GROUP), Some(&[1; 4])];
    // Managed, locked.
    let extended: [Option<&[u8]>; 3] = [None, Some(&[1, 0, 0, 0]), Some(&[2, 0, 0, 0])];
    for (family, index) in [
        (INET, ETH0),
        (INET, GONE),
        (INET_6, ETH0),
        (BRIDGE, ETH0),
        (DECNET, ETH0),
    ] {
        for state in [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80] {
            // Proxy, learned, router.
            for flags in [0, 0x08, 0x10, 0x80] {
                for dst in destinations.into_iter().chain([None]) {
                    // The address of an IP family has its length.
                    let length = dst.map_or(0, <[u8]>::len);
                    if matches!((family, length), (INET, 2 | 16) | (INET_6, 2 | 4)) {
                        continue;
                    }
                    for mac in macs {
                        for flags_ext in extended {
                            let parts = [(1, dst), (2, mac), (15, flags_ext)];
                            let body = parts
                                .into_iter()
                                .filter_map(|(number, value)| Some((number, value?)));
                            let body: Vec<_> = body.collect();
                            all.push(neighbour_message(family, index, state, flags, &body));
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn both_readers_have_the_same_objects() {
    let mut all_wrong = Vec::new();
    for (what, messages) in [
        ("links", links()),
        ("addresses", addresses()),
        ("routes", routes()),
        ("neighbours", neighbours()),
        ("nexthop objects", nexthops()),
    ] {
        let (taken, left, wrong) = Known::eth0().compare(&messages);
        // Every nexthop object is read.
        assert!(taken > 0, "{what}");
        assert_eq!(left > 0, what != "nexthop objects", "{what}");
        all_wrong.extend(wrong.first().map(|one| {
            let more = wrong.len() - 1;
            format!("{what}: {one}, and {more} more")
        }));
    }
    assert!(all_wrong.is_empty(), "{all_wrong:#?}");
}

/// The dumps of namespaces, as the kernel sent them.
#[test]
fn both_readers_have_the_same_objects_of_recorded_dumps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/netlink");
    let read = |file: &str| fs::read(folder.join(file)).unwrap();
    let dump = decode_dump(&read("links")).unwrap();
    let raws = dump::links_in(dump, &mut Vec::new());
    let known = Known::of(raws.into_iter().map(|raw| raw.link).collect());
    for file in ["links", "addresses", "routes", "neighbours", "proxies"] {
        let bytes = read(file);
        let messages = split(&bytes).map(|part| part.unwrap().1.to_vec());
        let (taken, _, wrong) = known.compare(&messages.collect::<Vec<_>>());
        assert!(taken > 0 && wrong.is_empty(), "{file}: {taken}, {wrong:?}");
    }
}
