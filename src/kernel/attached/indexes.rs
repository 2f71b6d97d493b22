//! Tables of the kernel with the ifindexes of links in their entries.

use std::path::Path;

use netlink_sys::protocols::{NETLINK_ROUTE, NETLINK_XFRM};

use super::bound::{self, BoundSocket};
use super::{chains, rules};
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::plain::PlainSocket;
use crate::kernel::plain::genl::{Genl, MPTCP};
use crate::model::Link;
use crate::model::net::link::index::{IndexUser, IndexUses};

/// What names links of the calling thread's namespace by their ifindex, and its sockets, also those that do not. Maps of BPF programs are
/// not read, nor the options of a socket for multicast.
pub(crate) fn read(links: &[Link]) -> (IndexUses, Vec<BoundSocket>) {
    let mut uses = IndexUses::default();
    rules::read(&mut uses);
    for table in TABLES.iter().filter(|table| (table.is_there)(links)) {
        if let Err(errno) = table.read(&mut uses) {
            uses.unread.push(format!("{}: {errno}", table.name));
        }
    }
    mptcp(&mut uses);
    let (sockets, unread) = bound::read();
    uses.unread.extend(unread);
    (uses, sockets)
}

/// A table by its dump.
struct IndexTable {
    name: &'static str,
    user: IndexUser,
    /// Whether it can have entries: a query would load the module.
    is_there: fn(&[Link]) -> bool,
    protocol: isize,
    /// The request, its header, and where an entry has the ifindex.
    request: u16,
    header: &'static [u8],
    place: IndexPlace,
}

/// Where an entry has the ifindex.
enum IndexPlace {
    /// In its header.
    Header(usize),
    /// In an attribute behind a header of this length; none with the other attribute, which has the namespace of the link.
    Attribute(usize, u16, u16),
}

const TABLES: [IndexTable; 4] = [
    // `XFRM_MSG_GETPOLICY`: `struct xfrm_userpolicy_info` begins with `struct xfrm_selector`.
    IndexTable {
        name: "xfrm policies",
        user: IndexUser::XfrmSelector,
        is_there: |_| chains::is_loaded("xfrm_user"),
        protocol: NETLINK_XFRM,
        request: 0x15,
        header: &[],
        place: IndexPlace::Header(48),
    },
    // `XFRM_MSG_GETSA`: so does `struct xfrm_usersa_info`.
    IndexTable {
        name: "xfrm states",
        user: IndexUser::XfrmSelector,
        is_there: |_| chains::is_loaded("xfrm_user"),
        protocol: NETLINK_XFRM,
        request: 0x12,
        header: &[],
        place: IndexPlace::Header(48),
    },
    // `RTM_GETADDRLABEL`: `struct ifaddrlblmsg`.
    IndexTable {
        name: "address labels",
        user: IndexUser::AddressLabel,
        is_there: |_| Path::new("/proc/sys/net/ipv6").exists(),
        protocol: NETLINK_ROUTE,
        request: 74,
        header: &[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        place: IndexPlace::Header(4),
    },
    // `RTM_GETNEIGH` of `AF_BRIDGE`: `NDA_IFINDEX` and `NDA_LINK_NETNSID` behind `struct ndmsg`.
    IndexTable {
        name: "forwarding entries",
        user: IndexUser::FdbDestination,
        is_there: |links| links.iter().any(|link| link.kind.name() == "vxlan"),
        protocol: NETLINK_ROUTE,
        request: 30,
        header: &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        place: IndexPlace::Attribute(12, 8, 10),
    },
];

impl IndexTable {
    fn read(&self, uses: &mut IndexUses) -> Result<(), Errno> {
        let socket = PlainSocket::open(self.protocol).map_err(|_| Errno::EPROTONOSUPPORT)?;
        socket.each_of_dump(self.request, self.header, |entry| {
            let index = self.place.index(entry);
            uses.add(index.unwrap_or_default(), self.user.clone());
        })
    }
}

impl IndexPlace {
    fn index(&self, entry: &[u8]) -> Option<u32> {
        match *self {
            Self::Header(at) => word(entry, at),
            Self::Attribute(header, number, elsewhere) => {
                let all = Nested::parse(entry.get(header..)?)?;
                let is_here = all.get(elsewhere).is_none();
                all.u32(number).filter(|_| is_here)
            }
        }
    }
}

/// `MPTCP_PM_CMD_GET_ADDR`: `MPTCP_PM_ADDR_ATTR_IF_IDX` in `MPTCP_PM_ATTR_ADDR` (`linux/mptcp.h`).
fn mptcp(uses: &mut IndexUses) {
    const GET: u8 = 3;
    if !Path::new("/proc/sys/net/mptcp").exists() {
        return;
    }
    let endpoints = Genl::open_here(&MPTCP).map_or(Ok(Vec::new()), |genl| genl.dump(GET));
    match endpoints {
        Ok(endpoints) => {
            let index = |one: &Nested| Nested::parse(one.get(1)?)?.u32(7);
            for index in endpoints.iter().filter_map(index) {
                uses.add(index, IndexUser::MptcpEndpoint);
            }
        }
        Err(errno) => uses.unread.push(format!("MPTCP endpoints: {errno}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::attached::chains::tests::run;
    use crate::kernel::{Socket, netns, state};

    #[test]
    fn entries_keep_the_ifindex_of_a_link_that_is_gone() {
        netns::in_new(|| {
            run("ip", "link add v0 index 70 type veth peer v1 index 71", "");
            run(
                "ip",
                "xfrm policy add src 10.0.0.0/24 dst 10.1.0.0/24 dev v0 dir out action block",
                "",
            );
            run("ip", "addrlabel add prefix fd00::/64 dev v0 label 77", "");
            run("ip", "mptcp endpoint add 10.0.0.1 dev v0 signal", "");
            run("ip", "link add vx0 type vxlan id 5 dstport 4789", "");
            run(
                "bridge",
                "fdb add 02:00:00:00:00:05 dev vx0 dst 10.0.0.9 via v0",
                "",
            );
            run("ip", "link del v0", "");
            let state = state::links(&mut Socket::open_here()?, None)?;
            let (uses, _) = read(&state.links);
            assert_eq!(uses.unread, [""; 0]);
            let expected = vec![
                IndexUser::XfrmSelector,
                IndexUser::AddressLabel,
                IndexUser::FdbDestination,
                IndexUser::MptcpEndpoint,
            ];
            assert_eq!(uses.users.into_iter().collect::<Vec<_>>(), [(70, expected)]);
            Ok::<_, crate::kernel::Error>(())
        })
        .unwrap()
        .unwrap();
    }

    #[test]
    fn an_entry_of_another_namespace_names_no_link_of_this_one() {
        let place = IndexPlace::Attribute(2, 8, 10);
        let entry = |numbers: &[u16]| {
            let mut all = Nested::default();
            for number in numbers {
                all.push(*number, 7_u32.to_ne_bytes().to_vec());
            }
            [&[0; 2], all.bytes().as_slice()].concat()
        };
        assert_eq!(place.index(&entry(&[1, 8])), Some(7));
        assert_eq!(place.index(&entry(&[1, 8, 10])), None);
        assert_eq!(place.index(&entry(&[1])), None);
        assert_eq!(place.index(&[0]), None);
    }
}
