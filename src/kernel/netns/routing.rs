//! Whether a program could change the routes of a namespace: it holds a routing socket there (`NETLINK_ROUTE`).

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::kernel::foreign::socket_inode;

/// The netlink sockets of the calling thread's namespace (`netlink_native_seq_show` in `net/netlink/af_netlink.c`). The dump of
/// `NETLINK_SOCK_DIAG` has the same, and would load a module.
const FILE: &str = "/proc/thread-self/net/netlink";
/// `NETLINK_ROUTE`.
const ROUTE: &str = "0";
/// This process.
const OWN: &str = "/proc/self";

/// Whether a program other than netfix holds such a socket in the calling thread's namespace.
pub(crate) fn has_program() -> io::Result<bool> {
    let first = of_programs()?;
    // A thread of netfix, or a tool that ended, may have closed its socket while they were read.
    Ok(!first.is_empty() && !first.is_disjoint(&of_programs()?))
}

/// The inodes of the sockets that no netfix has.
fn of_programs() -> io::Result<HashSet<u64>> {
    let held = held(&fs::read_to_string(FILE)?);
    let own = sockets(Path::new(OWN))?;
    let executable =
        |process: &Path| fs::metadata(process.join("exe")).map(|file| (file.dev(), file.ino()));
    let this = executable(Path::new(OWN))?;
    let is_of_other = |pid: u32, inode: u64| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        executable(&process).is_ok_and(|other| other == this)
            && sockets(&process).is_ok_and(|of_other| of_other.contains(&inode))
    };
    let of_programs = held
        .into_iter()
        .filter(|&(pid, inode)| !own.contains(&inode) && !is_of_other(pid, inode));
    Ok(of_programs.map(|(_, inode)| inode).collect())
}

/// The port and the inode of each routing socket in it. Columns: `sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode`; Eth is the
/// protocol, Pid the port: the id of the process for its first socket, and 0 for a socket of the kernel.
fn held(table: &str) -> Vec<(u32, u64)> {
    let rows = table.lines().skip(1).map(str::split_ascii_whitespace);
    let sockets = rows.filter_map(|row| {
        let row: Vec<&str> = row.collect();
        let port = row.get(2)?.parse().ok()?;
        let is_of_program = *row.get(1)? == ROUTE && port != 0;
        is_of_program
            .then(|| Some((port, row.last()?.parse().ok()?)))
            .flatten()
    });
    sockets.collect()
}

/// The inodes of the sockets of a process.
fn sockets(process: &Path) -> io::Result<HashSet<u64>> {
    let mut own = HashSet::new();
    for file in fs::read_dir(process.join("fd"))? {
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
        assert_eq!(held(table), [(4711, 11), (3_221_225_472, 13)]);
        assert!(held("").is_empty());
    }
}
