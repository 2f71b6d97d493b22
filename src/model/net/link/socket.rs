//! What programs have on a link and lose with it: the kernel ties it to the device, and a link that is created in its place, with
//! the same name and ifindex, does not have it. Only the program can get it back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::model::{Bytes, IfName, IpFamily, LinkGraph, LinkKind, NetState};

/// So many of a kind are recorded of a namespace: its tenant may make any number.
const MOST: usize = 128;

/// What a program has on a link of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkSocket {
    /// The link; none for a packet socket that has lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<IfName>,
    /// What it is.
    #[serde(flatten)]
    pub kind: SocketKind,
}

/// What ends with a link, and by what it is known after that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SocketKind {
    /// A membership in a multicast group (`IP_ADD_MEMBERSHIP`, `IPV6_JOIN_GROUP`). The socket keeps it with this ifindex.
    Group {
        /// The link's ifindex at the time.
        index: u32,
        /// The group.
        group: IpAddr,
    },
    /// A membership in an anycast group (`IPV6_JOIN_ANYCAST`).
    Anycast {
        /// The link's ifindex at the time.
        index: u32,
        /// The group.
        group: Ipv6Addr,
    },
    /// A packet socket that is bound to the link.
    Packet {
        /// The socket's inode.
        inode: u64,
    },
    /// The link in the multicast routing of a daemon.
    Routing {
        /// Whose packets it routes.
        family: IpFamily,
    },
    /// The character device of a macvtap or ipvtap.
    Tap {
        /// The link's ifindex at the time, which is in the device's name.
        index: u32,
        /// Whether the device is gone that the program has open.
        is_gone: bool,
    },
}

/// A program that runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// Its name by the kernel, which it chooses itself.
    pub name: Bytes,
    /// The unit of systemd that runs it.
    #[serde(default)]
    pub unit: Option<String>,
}

impl NetState {
    /// What programs of a pod have on links that are lost with the host's, or with a device in the pod.
    pub(crate) fn sockets_at_risk(&self) -> Vec<LinkSocket> {
        self.sockets_on(&LinkGraph::new(&self.links).lost_with_host())
    }

    /// What programs of the host have on devices and on the links on them; `devices` are those under the pods.
    pub(crate) fn host_sockets_at_risk(&self, devices: &BTreeSet<IfName>) -> Vec<LinkSocket> {
        self.sockets_on(&self.host_links_at_risk(devices))
    }

    /// The links of the host that a reload may take: its devices, those under the pods, and the links on them.
    pub(crate) fn host_links_at_risk(&self, devices: &BTreeSet<IfName>) -> BTreeSet<IfName> {
        let physical = self
            .links
            .iter()
            .filter(|link| link.kind == LinkKind::Physical);
        let devices = physical.map(|link| &link.name).chain(devices);
        LinkGraph::new(&self.links).lost_with(devices)
    }

    fn sockets_on(&self, lost: &BTreeSet<IfName>) -> Vec<LinkSocket> {
        let taps = self.taps(false);
        let all = self.sockets.iter().cloned().chain(taps);
        all.filter(|socket| socket.dev.as_ref().is_some_and(|dev| lost.contains(dev)))
            .collect()
    }

    /// The addresses that these links have, each with the index of its link.
    pub(crate) fn addresses_on(&self, lost: &BTreeSet<IfName>) -> BTreeMap<IpAddr, u32> {
        let links = self.links.iter();
        let links = links.filter(|link| lost.contains(&link.name));
        let indices: BTreeMap<_, _> = links.map(|link| (&link.name, link.index)).collect();
        let addresses = self.addresses.iter();
        addresses
            .filter_map(|one| Some((one.local, *indices.get(&one.dev)?)))
            .collect()
    }

    /// Whether programs have something on its links, or may have.
    pub(crate) fn has_sockets(&self) -> bool {
        !self.sockets.is_empty() || self.links.iter().any(|link| link.kind.is_tap())
    }

    /// The character devices of its links.
    fn taps(&self, is_gone: bool) -> impl Iterator<Item = LinkSocket> {
        let taps = self.links.iter().filter(|link| link.kind.is_tap());
        taps.map(move |link| LinkSocket {
            dev: Some(link.name.clone()),
            kind: SocketKind::Tap {
                index: link.index,
                is_gone,
            },
        })
    }

    /// What programs had by this record and do not have in the state `now`, of links that are there again. Whether a program still
    /// counts on it is not known by that: it may have ended, or given it up.
    pub(crate) fn sockets_gone(&self, now: &Self) -> Vec<LinkSocket> {
        // A device may be back under another name.
        let is_device = |dev: &IfName| {
            let then = self.link(dev).and_then(|link| link.hardware.as_ref());
            let mut devices = now.links.iter().filter_map(|link| link.hardware.as_ref());
            then.is_some_and(|then| devices.any(|now| now.is_same(then)))
        };
        let is_back = |socket: &LinkSocket| {
            let dev = socket.dev.as_ref();
            dev.is_some_and(|dev| now.link(dev).is_some() || is_device(dev))
        };
        let recorded = self.sockets.iter().filter(|then| match &then.kind {
            // One that lost its link is told from one that ended or was bound to another link.
            SocketKind::Packet { .. } => now
                .sockets
                .iter()
                .any(|now| now.dev.is_none() && now.kind == then.kind),
            SocketKind::Group { .. } | SocketKind::Anycast { .. } => {
                now.sockets.iter().all(|now| now.kind != then.kind)
            }
            SocketKind::Routing { .. } | SocketKind::Tap { .. } => !now.sockets.contains(then),
        });
        let taps = self.taps(true);
        recorded.cloned().chain(taps).filter(is_back).collect()
    }

    /// The same of a pod, and the packet sockets that have lost a link and are not in this record. On the host, where links come and
    /// go with the pods, they are no loss.
    pub(crate) fn sockets_lost(&self, now: &Self) -> Vec<LinkSocket> {
        let is_known = |one: &LinkSocket| self.sockets.iter().any(|then| then.kind == one.kind);
        let is_bare = now.links_but_loopback().next().is_none();
        let unrecorded = now.sockets.iter();
        let unrecorded = unrecorded.filter(|one| one.dev.is_none() && !is_bare && !is_known(one));
        let gone = self.sockets_gone(now).into_iter();
        gone.chain(unrecorded.cloned()).collect()
    }

    /// Records as many sockets as a file should have, with those that are lost and still count for a program.
    pub(crate) fn keep_sockets(&mut self, lost: Vec<LinkSocket>) {
        self.sockets.retain(|one| one.dev.is_some());
        self.sockets.extend(lost);
        self.sockets.sort();
        self.sockets.dedup();
        let mut counts = [0; 5];
        self.sockets.retain(|one| {
            let count = &mut counts[one.kind.place()];
            *count += 1;
            *count <= MOST
        });
    }
}

impl SocketKind {
    /// The group.
    pub(crate) fn group(&self) -> Option<IpAddr> {
        match self {
            Self::Group { group, .. } => Some(*group),
            Self::Anycast { group, .. } => Some(IpAddr::V6(*group)),
            Self::Packet { .. } | Self::Routing { .. } | Self::Tap { .. } => None,
        }
    }

    /// A number for each kind.
    pub(crate) fn place(&self) -> usize {
        match self {
            Self::Group { .. } => 0,
            Self::Anycast { .. } => 1,
            Self::Packet { .. } => 2,
            Self::Routing { .. } => 3,
            Self::Tap { .. } => 4,
        }
    }
}
