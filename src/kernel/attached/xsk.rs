//! `AF_XDP` sockets on queues of a device (`linux/xdp_diag.h`).

use std::fs;

use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::plain::PlainSocket;
use crate::model::Link;

/// `SOCK_DIAG_BY_FAMILY`.
pub(super) const BY_FAMILY: u16 = 20;
const AF_XDP: u8 = 44;
/// `XDP_SHOW_INFO`, and `XDP_DIAG_INFO` with the index of the link and the number of the queue.
const SHOW_INFO: u32 = 1;
const INFO: u16 = 1;
/// `struct xdp_diag_req` and `struct xdp_diag_msg`.
const REQUEST: usize = 20;
const HEADER: usize = 16;

/// Those on links that are lost, in words.
pub(super) fn read(lost: &[&Link]) -> Vec<String> {
    // The query would load a module.
    let protocols = fs::read_to_string("/proc/thread-self/net/protocols").unwrap_or_default();
    if !may_have_sockets(&protocols, "XDP") {
        return Vec::new();
    }
    let mut request = vec![0; REQUEST];
    request[0] = AF_XDP;
    request[8..12].copy_from_slice(&SHOW_INFO.to_ne_bytes());
    let socket = PlainSocket::open(NETLINK_SOCK_DIAG).ok();
    let dump = socket.and_then(|socket| socket.dump(BY_FAMILY, &request).ok());
    // A kernel before 5.1, or without its part that lists them.
    let Some(dump) = dump else {
        return vec!["AF_XDP sockets, which the kernel does not list".to_owned()];
    };
    let mut found: Vec<_> = dump.iter().filter_map(|one| words(one, lost)).collect();
    found.sort();
    found.dedup();
    found
}

fn words(message: &[u8], lost: &[&Link]) -> Option<String> {
    let all = Nested::parse(message.get(HEADER..)?)?;
    let info = all.get(INFO)?;
    let (index, queue) = (word(info, 0)?, word(info, 4)?);
    let link = lost.iter().find(|link| link.index == index)?;
    Some(format!("AF_XDP socket on queue {queue} of {}", link.name))
}

/// Whether the namespace may have sockets of this protocol: the kernel has the protocol, and does not count 0. Columns: name, size, number of
/// sockets.
pub(super) fn may_have_sockets(protocols: &str, protocol: &str) -> bool {
    let mut rows = protocols.lines().map(str::split_whitespace);
    let count = rows.find_map(|mut row| (row.next() == Some(protocol)).then(|| row.nth(1)));
    count.is_some_and(|count| count != Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LinkKind;

    #[test]
    fn a_socket_is_named_with_its_device_and_queue() {
        let mut link = Link::plain("eth0".parse().unwrap(), LinkKind::Physical);
        link.index = 7;
        let message = |index: u32| {
            let mut info = Nested::default();
            let value = [index.to_ne_bytes(), 3_u32.to_ne_bytes()].concat();
            info.push(INFO, value);
            [vec![0; HEADER], info.bytes()].concat()
        };
        let named = words(&message(7), &[&link]);
        assert_eq!(named.as_deref(), Some("AF_XDP socket on queue 3 of eth0"));
        assert_eq!(words(&message(8), &[&link]), None);
        assert_eq!(words(&[0; 20], &[&link]), None);
    }

    #[test]
    fn no_query_is_sent_where_no_socket_is() {
        let with = |count: u32| {
            format!("protocol  size sockets  memory\nXDP       1088      {count}      -1   NI\n")
        };
        assert!(may_have_sockets(&with(2), "XDP"));
        assert!(!may_have_sockets(&with(0), "XDP"));
        assert!(!may_have_sockets("protocol  size sockets\n", "XDP"));
    }
}
