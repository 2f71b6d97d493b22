//! Static memberships of links in link-layer groups (`ip maddress add`): no netlink message reports or adds them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use nix::errno::Errno;

use crate::fault::point;
use crate::kernel::ifreq;
use crate::model::{IfName, Mac};

/// The memberships in the calling thread's namespace (`dev_mc_seq_show` in `net/core/dev_addr_lists.c`).
const FILE: &str = "/proc/thread-self/net/dev_mcast";

/// `struct sockaddr` with a hardware address, padded to the size of the union in `struct ifreq`.
#[repr(C)]
struct GroupAddress {
    family: u16,
    group: [u8; 14],
    rest: [u8; 8],
}

/// The groups that were joined by hand in the calling thread's namespace, by ifindex, each in ascending order.
pub(crate) fn joined() -> io::Result<BTreeMap<u32, Vec<Mac>>> {
    // One that grows would be read in small parts.
    let mut bytes = Vec::with_capacity(4096);
    File::open(FILE)?.read_to_end(&mut bytes)?;
    let mut groups: BTreeMap<u32, Vec<Mac>> = BTreeMap::new();
    for (index, group) in String::from_utf8_lossy(&bytes).lines().filter_map(by_hand) {
        groups.entry(index).or_default().push(group);
    }
    for groups in groups.values_mut() {
        groups.sort_unstable();
    }
    Ok(groups)
}

/// A line is ifindex, name, users, users by hand, group. A name may have any bytes but white space.
fn by_hand(line: &str) -> Option<(u32, Mac)> {
    let mut words = line.split_ascii_whitespace();
    let index = words.next()?.parse().ok()?;
    let mut last = words.rev();
    let group = u64::from_str_radix(last.next().filter(|text| text.len() == 12)?, 16).ok()?;
    let users: u32 = last.next()?.parse().ok()?;
    let [_, _, group @ ..] = group.to_be_bytes();
    (users > 0).then_some((index, Mac(group)))
}

/// `ip maddress add`, in the calling thread's namespace.
#[allow(unsafe_code)]
pub fn join(dev: &IfName, group: Mac) -> Result<(), Errno> {
    let socket = ifreq::open()?;
    let mut address = GroupAddress {
        family: 0,
        group: [0; 14],
        rest: [0; 8],
    };
    address.group[..6].copy_from_slice(&group.0);
    point("group join")
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    // SAFETY: `ifr_hwaddr`.
    unsafe { ifreq::ioctl(&socket, libc::SIOCADDMULTI, dev, address) }.map(drop)
}

#[cfg(test)]
mod tests {
    use crate::kernel::link::multicast::*;

    #[test]
    fn a_membership_by_hand_has_users_by_hand() {
        let group = Mac([0x33, 0x33, 0, 0, 0, 0x77]);
        let line = "7    eth0            1     1     333300000077";
        assert_eq!(by_hand(line), Some((7, group)));
        let line = "7    eth0            1     0     333300000077";
        assert_eq!(by_hand(line), None);
        assert_eq!(
            by_hand("7    ib0   1  1  00ffffffff12401bffff0000000000"),
            None
        );
        assert_eq!(by_hand(""), None);
    }
}
