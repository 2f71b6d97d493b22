//! Connections with a translated source (`linux/netfilter/nfnetlink_conntrack.h`). The kernel deletes the masqueraded ones with the link
//! that they leave through; no dump tells them from those of `snat`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;

use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::kernel::codec::nested::Nested;
use crate::kernel::plain::PlainSocket;

/// How many connections the calling thread's namespace tracks; absent without the module, which a query would load.
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
/// `NFNL_SUBSYS_CTNETLINK` in the high byte, `IPCTNL_MSG_CT_GET` in the low one.
const GET: u16 = 0x0101;
/// `struct nfgenmsg`.
const HEADER: usize = 4;
/// `CTA_STATUS`, `IPS_SRC_NAT`.
const STATUS: u16 = 3;
const SOURCE_TRANSLATED: u32 = 1 << 4;
/// `CTA_TUPLE_REPLY`, `CTA_TUPLE_IP`, `CTA_IP_V4_DST`, `CTA_IP_V6_DST`.
const REPLY: u16 = 2;
const ADDRESSES: u16 = 1;
const DESTINATION_V4: u16 = 2;
const DESTINATION_V6: u16 = 4;

/// How many connections that the calling thread's namespace tracks have one of these addresses as their translated source.
pub(crate) fn translated_to(lost: &BTreeSet<IpAddr>) -> io::Result<usize> {
    match fs::read_to_string(COUNT) {
        Ok(count) if count.trim() != "0" => {}
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => return Ok(0),
    }
    let mut request = vec![0; HEADER];
    let mut filter = Nested::default();
    // Kernels before 5.15 send all.
    filter.push(STATUS, SOURCE_TRANSLATED.to_be_bytes().to_vec());
    request.extend(filter.bytes());
    let mut found = 0;
    let socket = PlainSocket::open(NETLINK_NETFILTER)?;
    socket.each_of_dump(GET, &request, |message| {
        let source = translated_source(message);
        found += usize::from(source.is_some_and(|source| lost.contains(&source)));
    })?;
    Ok(found)
}

/// The source that others see: the destination of their answers.
fn translated_source(message: &[u8]) -> Option<IpAddr> {
    let all = Nested::parse(message.get(HEADER..)?)?;
    let status = u32::from_be_bytes(all.get(STATUS)?.try_into().ok()?);
    let reply = Nested::parse(all.get(REPLY)?)?;
    let addresses = Nested::parse(reply.get(ADDRESSES)?)?;
    let v4 = addresses.get(DESTINATION_V4);
    let v4 = v4.and_then(|bytes| Some(<[u8; 4]>::try_from(bytes).ok()?.into()));
    let v6 = || {
        Some(
            <[u8; 16]>::try_from(addresses.get(DESTINATION_V6)?)
                .ok()?
                .into(),
        )
    };
    (status & SOURCE_TRANSLATED != 0).then(|| v4.or_else(v6))?
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
        let v4 = message(0x18, DESTINATION_V4, &[10, 88, 0, 2]);
        assert_eq!(translated_source(&v4), "10.88.0.2".parse().ok());
        let v6 = message(0x18, DESTINATION_V6, &[0xfd; 16]);
        assert!(translated_source(&v6).is_some_and(|source| source.is_ipv6()));
        let other = message(0x8, DESTINATION_V4, &[10, 88, 0, 2]);
        assert_eq!(translated_source(&other), None);
        for end in 0..v4.len() {
            assert_eq!(translated_source(&v4[..end]), None, "{end}");
        }
    }
}
