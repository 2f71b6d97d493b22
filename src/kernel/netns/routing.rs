//! Whether a program could change the routes of a namespace: it holds a routing socket there (`NETLINK_ROUTE`).

use std::fs;
use std::io;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use netlink_sys::{Socket, SocketAddr};

/// The netlink sockets of the calling thread's namespace (`netlink_native_seq_show` in `net/netlink/af_netlink.c`). The dump of
/// `NETLINK_SOCK_DIAG` has the same, and would load a module.
const FILE: &str = "/proc/thread-self/net/netlink";
/// `NETLINK_ROUTE`.
const ROUTE: &str = "0";
/// The ports of netfix, of each version and copy of it: the kernel chooses the id of the process, or a port above `i32::MAX`.
const PORTS: Range<u32> = 0x6e00_0000..0x6f00_0000;
/// How many of them are tried for a socket.
const TRIES: u32 = 256;

/// A netlink socket of the calling thread's namespace, with a port of netfix. `protocol` is one of `NETLINK_*`.
pub(in crate::kernel) fn socket(protocol: isize) -> io::Result<Socket> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut socket = Socket::new(protocol)?;
    for _ in 0..TRIES {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = process::id().wrapping_mul(TRIES).wrapping_add(next);
        let port = PORTS.start + offset % (PORTS.end - PORTS.start);
        match socket.bind(&SocketAddr::new(port, 0)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            other => return other.map(|()| socket),
        }
    }
    socket.bind_auto().map(|_| socket)
}

/// Whether a program other than netfix holds such a socket in the calling thread's namespace.
pub(crate) fn has_program() -> io::Result<bool> {
    Ok(is_with_program(&fs::read_to_string(FILE)?))
}

/// Columns: `sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode`; Eth is the protocol, Pid the port: 0 for a socket of the kernel.
fn is_with_program(table: &str) -> bool {
    table.lines().skip(1).any(|row| {
        let mut row = row.split_ascii_whitespace().skip(1);
        let is_routing = row.next() == Some(ROUTE);
        let port = row.next().and_then(|port| port.parse().ok());
        is_routing && port.is_some_and(|port| port != 0 && !PORTS.contains(&port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_programs_are_told_from_those_of_the_kernel_of_other_protocols_and_of_netfix() {
        let table = |protocol, port: u32| {
            format!(
                "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
                 0000000000000000 0   0          00000000 0        0        0     2        0        10\n\
                 0000000000000000 {protocol:<3} {port:<10} 000405d1 0        0        0     2        0        11\n"
            )
        };
        assert!(is_with_program(&table(0, 4711)));
        assert!(is_with_program(&table(0, 3_221_225_472)));
        assert!(!is_with_program(&table(15, 4711)));
        assert!(!is_with_program(&table(0, PORTS.start + 9)));
        assert!(!is_with_program(""));
    }
}
