//! Everything that the kernel reports about random namespaces has a row in the tables of netfix.

use std::collections::BTreeSet;

use netfix::model::fidelity::{
    ADDRESS, AttributeTable, BRIDGE_PORT, HOP, INET6, LINK, LINK_INFO, MACVLAN, METRIC, NEIGHBOUR,
    NEXTHOP, RESILIENT, ROUTE, RULE, TRAFFIC,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::{lines, random};
use crate::common::Node;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const DONE: u16 = 3;
const MESSAGE_HEADER: usize = 16;

/// The request for all objects of a type, with the size of the header of that type.
const DUMPS: [(u16, usize, &AttributeTable); 7] = [
    (18, 16, &LINK),
    (22, 8, &ADDRESS),
    (26, 12, &ROUTE),
    (30, 12, &NEIGHBOUR),
    (34, 12, &RULE),
    (106, 8, &NEXTHOP),
    (38, 20, &TRAFFIC),
];

/// The attributes that no table has.
#[derive(Default)]
struct Undecided {
    all: BTreeSet<String>,
    /// How many were looked up.
    seen: usize,
}

impl Undecided {
    fn attributes(&mut self, table: &AttributeTable, bytes: &[u8]) {
        for (number, value) in attributes(bytes) {
            self.seen += 1;
            if table.fate(number).is_none() {
                self.all.insert(format!("{}: {number}", table.title));
            }
            match (table.title, number) {
                (title, 18) if title == LINK.title => self.link_info(value),
                (title, 26) if title == LINK.title => {
                    for (_, inet6) in attributes(value).filter(|(family, _)| *family == 10) {
                        self.attributes(&INET6, inet6);
                    }
                }
                (title, 8) if title == ROUTE.title => self.attributes(&METRIC, value),
                (title, 9) if title == ROUTE.title => self.hops(value),
                (title, 12) if title == NEXTHOP.title => self.attributes(&RESILIENT, value),
                _ => {}
            }
        }
    }

    fn link_info(&mut self, bytes: &[u8]) {
        self.attributes(&LINK_INFO, bytes);
        let (mut kind, mut port_of) = (&b""[..], &b""[..]);
        for (number, value) in attributes(bytes) {
            match (number, kind, port_of) {
                (1, ..) => kind = value,
                (2, b"macvlan\0", _) => self.attributes(&MACVLAN, value),
                (4, ..) => port_of = value,
                (5, _, b"bridge\0") => self.attributes(&BRIDGE_PORT, value),
                _ => {}
            }
        }
    }

    /// `struct rtnexthop` with attributes behind each.
    fn hops(&mut self, mut bytes: &[u8]) {
        while let [low, high, ..] = *bytes {
            let length = usize::from(u16::from_ne_bytes([low, high]));
            self.attributes(&HOP, &bytes[8..length]);
            bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        }
    }
}

/// Number and value of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [low, high, number_low, number_high, ..] = *bytes else {
            return None;
        };
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let number = u16::from_ne_bytes([number_low, number_high]) & 0x3fff;
        let value = &bytes[4..length];
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        Some((number, value))
    })
}

/// The messages of a dump in the calling thread's namespace, each without its header.
fn dump(kind: u16, header: usize) -> Vec<Vec<u8>> {
    let socket = Socket::new(NETLINK_ROUTE).expect("a socket");
    socket.connect(&SocketAddr::new(0, 0)).expect("the kernel");
    let length = u32::try_from(MESSAGE_HEADER + header).expect("a small number");
    let mut request = length.to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.resize(MESSAGE_HEADER + header, 0);
    socket.send(&request, 0).expect("a dump");
    let mut messages = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full().expect("an answer");
        let mut rest = &datagram[..];
        while let [a, b, c, d, low, high, ..] = *rest {
            let length = u32::from_ne_bytes([a, b, c, d]) as usize;
            match u16::from_ne_bytes([low, high]) {
                DONE => return messages,
                2 => panic!("the kernel refuses the dump {kind}: {rest:?}"),
                _ => messages.push(rest[MESSAGE_HEADER..length].to_vec()),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
}

#[test]
fn every_attribute_that_the_kernel_reports_is_decided() {
    let node = Node::new();
    let mut undecided = Undecided::default();
    let bridged = [
        "link add br0 type bridge",
        "link set br0 up",
        "link set eth0 master br0",
    ];
    for seed in 1..=12 {
        let pod = node.pod(&format!("web{seed}"));
        pod.macvlan("mode source", "");
        lines::run(&pod.ns, &random::case(seed).lines);
        if seed == 12 {
            for line in bridged {
                pod.ip(line);
            }
        }
        for (kind, header, table) in DUMPS {
            for message in pod.ns.enter(|| dump(kind, header)) {
                undecided.attributes(table, &message[header..]);
            }
        }
    }
    for (kind, header, table) in DUMPS {
        for message in node.ns.enter(|| dump(kind, header)) {
            undecided.attributes(table, &message[header..]);
        }
    }
    assert!(undecided.seen > 2_000, "only {} attributes", undecided.seen);
    assert!(
        undecided.all.is_empty(),
        "no table has {:#?}",
        undecided.all
    );
}
