//! Connections with a translated source (`linux/netfilter/nfnetlink_conntrack.h`). The kernel deletes the masqueraded ones with the link
//! that they leave through; no dump tells them from those of `snat`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_NETFILTER;
use nix::net::if_::if_nameindex;

use crate::kernel::codec::nested::Nested;
use crate::kernel::plain::{PlainSocket, put};

/// How many connections the calling thread's namespace tracks; absent without the module, which a query would load.
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
/// `NFNL_SUBSYS_CTNETLINK` in the high byte, `IPCTNL_MSG_CT_NEW` and `IPCTNL_MSG_CT_GET` in the low one.
const NEW: u16 = 0x0100;
const GET: u16 = 0x0101;
/// `struct nfgenmsg`.
const HEADER: usize = 4;
/// `enum ctattr_type`.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOCOL_STATE: u16 = 4;
const SOURCE: u16 = 6;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const DESTINATION: u16 = 13;
const ZONE: u16 = 18;
const LABELS: u16 = 22;
/// `IPS_SRC_NAT`, `IPS_DST_NAT`, and `IPS_SEEN_REPLY | IPS_ASSURED | IPS_CONFIRMED`.
const SOURCE_TRANSLATED: u32 = 1 << 4;
const DESTINATION_TRANSLATED: u32 = 1 << 5;
const KEPT: u32 = 0b1110;
/// `CTA_TUPLE_IP`, `CTA_TUPLE_PROTO`, `CTA_TUPLE_ZONE`.
const ADDRESSES: u16 = 1;
const PORTS: u16 = 2;
const ONE_WAY_ZONE: u16 = 3;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
/// So many connections of a namespace are kept, of some 250 bytes each.
const MOST: usize = 65_536;
/// So many are sent together: the answers wait in the socket's buffer.
const AT_ONCE: usize = 64;

/// The connections of a namespace with one of some addresses as their translated source.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub count: usize,
    /// What makes each again, with the index of the link that has its address.
    requests: Vec<(u32, Vec<u8>)>,
    /// The links of those beyond [`MOST`].
    beyond: BTreeMap<u32, usize>,
}

/// The connections that the calling thread's namespace tracks with one of these addresses as their translated source; each address has the
/// index of its link.
pub(crate) fn translated_to(lost: &BTreeMap<IpAddr, u32>) -> io::Result<Connections> {
    let mut found = Connections::default();
    match fs::read_to_string(COUNT) {
        Ok(count) if count.trim() != "0" => {}
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => return Ok(found),
    }
    let mut request = vec![0; HEADER];
    let mut filter = Nested::default();
    // Kernels before 5.15 send all.
    filter.push(STATUS, SOURCE_TRANSLATED.to_be_bytes().to_vec());
    request.extend(filter.bytes());
    let socket = PlainSocket::open(NETLINK_NETFILTER)?;
    socket.each_of_dump(GET, &request, |message| {
        let source = translated_source(message);
        let Some(link) = source.and_then(|source| lost.get(&source)) else {
            return;
        };
        found.count += 1;
        if found.requests.len() == MOST {
            *found.beyond.entry(*link).or_default() += 1;
        } else if let Some(request) = made_again(message) {
            found.requests.push((*link, request));
        }
    })?;
    Ok(found)
}

impl Connections {
    /// Makes those again whose link is gone, in the calling thread's namespace; returns how many were made, and how many were not. One
    /// that the kernel still has is neither: it was not masqueraded.
    pub(crate) fn make_again(&self) -> (usize, usize) {
        let links = self.requests.iter().map(|(link, _)| *link);
        let mut gone: BTreeSet<u32> = links.chain(self.beyond.keys().copied()).collect();
        let present = if_nameindex();
        gone.retain(|link| {
            let mut all = present.iter().flat_map(|all| all.iter());
            all.all(|one| one.index() != *link)
        });
        let beyond = self.beyond.iter().filter(|(link, _)| gone.contains(link));
        let (mut made, mut left) = (0, beyond.map(|(_, count)| count).sum());
        let requests = self.requests.iter();
        let requests: Vec<_> = requests.filter(|(link, _)| gone.contains(link)).collect();
        let socket = PlainSocket::open(NETLINK_NETFILTER);
        for part in requests.chunks(AT_ONCE) {
            let mut messages = Vec::new();
            for (_, request) in part {
                let flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL;
                put(NEW, flags, 1, request, &mut messages);
            }
            let socket = socket.as_ref().ok();
            let answer = socket.and_then(|socket| socket.send_all(&messages).ok());
            let (present, failed) = answer.unwrap_or((0, part.len()));
            made += part.len().saturating_sub(present + failed);
            left += failed;
        }
        (made, left)
    }
}

/// The source that others see: the destination of their answers.
fn translated_source(message: &[u8]) -> Option<IpAddr> {
    let all = Nested::parse(message.get(HEADER..)?)?;
    let reply = Nested::parse(all.get(REPLY)?)?;
    let addresses = Nested::parse(reply.get(ADDRESSES)?)?;
    let v4 = addresses.get(V4 + 1);
    let v4 = v4.and_then(|bytes| Some(<[u8; 4]>::try_from(bytes).ok()?.into()));
    let v6 = || Some(<[u8; 16]>::try_from(addresses.get(V6 + 1)?).ok()?.into());
    (status(&all)? & SOURCE_TRANSLATED != 0).then(|| v4.or_else(v6))?
}

fn status(all: &Nested) -> Option<u32> {
    Some(u32::from_be_bytes(all.get(STATUS)?.try_into().ok()?))
}

/// `CTA_IP_V4_SRC`, `CTA_IP_V6_SRC` and `CTA_PROTO_SRC_PORT`, each followed by the one of the destination.
const V4: u16 = 1;
const V6: u16 = 3;
const PORT: u16 = 2;

/// The request for the connection that the kernel reported, as a new one with the same translation; `None` if it has no ports.
fn made_again(message: &[u8]) -> Option<Vec<u8>> {
    let all = Nested::parse(message.get(HEADER..)?)?;
    let status = status(&all)?;
    let original = Nested::parse(all.get(ORIGINAL)?)?;
    let reply = Nested::parse(all.get(REPLY)?)?;
    let has_zone = |tuple: &Nested| tuple.get(ONE_WAY_ZONE).is_some();
    if has_zone(&original) || has_zone(&reply) {
        return None;
    }
    let mut new = Nested::default();
    new.push(ORIGINAL | NESTED, original.bytes());
    // The kernel notes a translation only where it changes the answers.
    new.push(REPLY | NESTED, answers(&original)?.bytes());
    new.push(SOURCE | NESTED, translation(&reply, 1)?.bytes());
    if status & DESTINATION_TRANSLATED != 0 {
        new.push(DESTINATION | NESTED, translation(&reply, 0)?.bytes());
    }
    new.push(STATUS, (status & KEPT).to_be_bytes().to_vec());
    // Absent where a flow table has the connection: the next packet sets it.
    let timeout = all.get(TIMEOUT).map(<[u8]>::to_vec);
    let timeout = timeout.unwrap_or_else(|| 300_u32.to_be_bytes().to_vec());
    new.push(TIMEOUT, timeout);
    for number in [MARK, ZONE, LABELS] {
        if let Some(value) = all.get(number) {
            new.push(number, value.to_vec());
        }
    }
    if let Some(state) = all.get(PROTOCOL_STATE) {
        new.push(PROTOCOL_STATE | NESTED, liberal(state)?.bytes());
    }
    Some([message.get(..HEADER)?, &new.bytes()].concat())
}

/// The tuple of the answers to this one, without a translation.
fn answers(tuple: &Nested) -> Option<Nested> {
    let (mut addresses, mut ports) = (Nested::default(), Nested::default());
    for (number, value) in Nested::parse(tuple.get(ADDRESSES)?)?.iter() {
        addresses.push((number.wrapping_sub(1) ^ 1) + 1, value.to_vec());
    }
    for (number, value) in Nested::parse(tuple.get(PORTS)?)?.iter() {
        let is_port = matches!(number, PORT | 3);
        ports.push(number ^ u16::from(is_port), value.to_vec());
    }
    let mut answers = Nested::default();
    answers.push(ADDRESSES | NESTED, addresses.bytes());
    answers.push(PORTS | NESTED, ports.bytes());
    Some(answers)
}

/// `enum ctattr_nat` of the source (0) or destination (1) of the answers: the address, and a range of one port.
fn translation(reply: &Nested, end: u16) -> Option<Nested> {
    let addresses = Nested::parse(reply.get(ADDRESSES)?)?;
    let ports = Nested::parse(reply.get(PORTS)?)?;
    let port = ports.get(PORT + end)?;
    let (mut all, mut range) = (Nested::default(), Nested::default());
    range.push(1, port.to_vec());
    range.push(2, port.to_vec());
    let v4 = addresses.get(V4 + end).map(|address| (1, address));
    let (number, address) = v4.or_else(|| Some((4, addresses.get(V6 + end)?)))?;
    all.push(number, address.to_vec());
    all.push(3 | NESTED, range.bytes());
    Some(all)
}

/// The state of a TCP connection (`enum ctattr_protoinfo_tcp`), whose windows are not checked: the kernel does not report them.
fn liberal(state: &[u8]) -> Option<Nested> {
    const TCP: u16 = 1;
    const LIBERAL: u8 = 8;
    let mut tcp = Nested::parse(Nested::parse(state)?.get(TCP)?)?;
    for number in [4, 5] {
        let flags = tcp.get_mut(number)?;
        let liberal = flags.first()? | LIBERAL;
        // `struct nf_ct_tcp_flags`: the flags, and which of them are set.
        *flags = vec![liberal; 2];
    }
    let mut all = Nested::default();
    all.push(TCP | NESTED, tcp.bytes());
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_with_a_translated_source_has_one() {
        let list = |all: &[(u16, &[u8])]| {
            let mut list = Nested::default();
            for (number, value) in all {
                list.push(*number, value.to_vec());
            }
            list.bytes()
        };
        let message = |status: u32, number, address: &[u8]| {
            let addresses = list(&[(number, address)]);
            let reply = list(&[(ADDRESSES, &addresses)]);
            let all = list(&[(REPLY, &reply), (STATUS, &status.to_be_bytes())]);
            [&[2, 0, 0, 0], all.as_slice()].concat()
        };
        let v4 = message(0x18, V4 + 1, &[10, 88, 0, 2]);
        assert_eq!(translated_source(&v4), "10.88.0.2".parse().ok());
        let v6 = message(0x18, V6 + 1, &[0xfd; 16]);
        assert!(translated_source(&v6).is_some_and(|source| source.is_ipv6()));
        let other = message(0x8, V4 + 1, &[10, 88, 0, 2]);
        assert_eq!(translated_source(&other), None);
        for end in 0..v4.len() {
            assert_eq!(translated_source(&v4[..end]), None, "{end}");
        }
    }
}
