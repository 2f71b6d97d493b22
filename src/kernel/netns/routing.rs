//! Whether a program could change the routes of a namespace: it holds a routing socket there (`NETLINK_ROUTE`).

use std::collections::HashSet;
use std::fs;
use std::io;

use crate::kernel::foreign::socket_inode;

/// The netlink sockets of the calling thread's namespace (`netlink_native_seq_show` in `net/netlink/af_netlink.c`). The dump of
/// `NETLINK_SOCK_DIAG` has the same, and would load a module.
const FILE: &str = "/proc/thread-self/net/netlink";
/// `NETLINK_ROUTE`.
const ROUTE: &str = "0";

/// Whether a program other than netfix holds such a socket in the calling thread's namespace.
pub(crate) fn has_program() -> io::Result<bool> {
    let held = held(&fs::read_to_string(FILE)?);
    let own = own_sockets()?;
    Ok(held.iter().any(|inode| !own.contains(inode)))
}

/// The inodes of the routing sockets in it. Columns: `sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode`; Eth is the protocol, and
/// a socket of the kernel has Pid 0.
fn held(table: &str) -> Vec<u64> {
    let rows = table.lines().skip(1).map(str::split_ascii_whitespace);
    let inodes = rows.filter_map(|row| {
        let row: Vec<&str> = row.collect();
        let is_of_program = *row.get(1)? == ROUTE && *row.get(2)? != "0";
        is_of_program.then(|| row.last()?.parse().ok()).flatten()
    });
    inodes.collect()
}

/// The sockets of this process.
fn own_sockets() -> io::Result<HashSet<u64>> {
    let mut own = HashSet::new();
    for file in fs::read_dir("/proc/self/fd")? {
        // One that was closed meanwhile is none of these.
        let Ok(target) = fs::read_link(file?.path()) else {
            continue;
        };
        own.extend(socket_inode(target.as_os_str()));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_programs_are_told_from_those_of_the_kernel_and_of_other_protocols() {
        let table = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
                     0000000000000000 0   0          00000000 0        0        0     2        0        10\n\
                     0000000000000000 0   4711       000405d1 0        0        0     2        0        11\n\
                     0000000000000000 15  4711       00000001 0        0        0     2        0        12\n\
                     0000000000000000 0   3221225472 00000000 0        0        0     2        0        13\n";
        assert_eq!(held(table), [11, 13]);
        assert!(held("").is_empty());
    }
}
