//! Creating links: one message with all attributes that creation accepts.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoKind, LinkAttribute, LinkFlags};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::{data, kind};
use crate::kernel::codec::nested::Nested;
use crate::kernel::codec::text::{self, LINK_HEADER};
use crate::kernel::{Errno, Request};
use crate::model::net::link::Queues;
use crate::model::{IfName, Link};

/// Namespace, name and ifindex of a new link.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The name it is created with; `None`: the kind and the first free number, such as `macvlan0`.
    pub name: Option<&'a IfName>,
    /// The ifindex to request; `None`: the kernel chooses.
    pub index: Option<u32>,
    /// The namespace of the new link; `None`: the socket's.
    pub netns: Option<RawFd>,
    /// The parent's ifindex in the socket's namespace.
    pub parent: Option<u32>,
}

/// `ip link add`: one message with name, index, MAC, MTU, queues and the data of the kind.
///
/// The link is created down. `NLM_F_EXCL` is always set: without it the kernel may apply the message to the link of that
/// name in the sender's namespace, and move that link into the other namespace.
///
/// Fails with `EOPNOTSUPP` for kinds that netfix does not create.
pub fn add(link: &Link, place: Placement<'_>) -> Result<Request, Errno> {
    // Some kinds have the parent in their data.
    let of_data = data::on(&link.kind, place.parent).filter(|_| link.kind.can_be_made());
    let parent = place.parent.filter(|_| of_data.is_none());
    let (kind, data) = of_data
        .or_else(|| kind::new_link(&link.kind))
        .ok_or(Errno::EOPNOTSUPP)?;
    let builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).set_info_data(data);
    let place = Placement { parent, ..place };
    Ok(named(builder, link, place))
}

/// The request for a new link of a kind.
fn named(
    mut builder: LinkMessageBuilder<LinkUnspec>,
    link: &Link,
    place: Placement<'_>,
) -> Request {
    if let Some(name) = place.name {
        builder = builder.append_extra_attribute(text::name(name));
    }
    builder = builder.mtu(link.mtu).txqueuelen(link.txqueuelen);
    if let Some(mac) = link.mac.filter(|_| !link.kind.is_ipvlan()) {
        builder = builder.address(mac.0.to_vec());
    }
    if let Some(index) = place.index {
        builder = builder.index(index);
    }
    if let Some(fd) = place.netns {
        builder = builder.setns_by_fd(fd);
    }
    if let Some(parent) = place.parent {
        builder = builder.link(parent);
    }
    if let Some(Queues { tx, rx }) = link.queues {
        builder = builder
            .append_extra_attribute(LinkAttribute::NumTxQueues(tx))
            .append_extra_attribute(LinkAttribute::NumRxQueues(rx));
    }
    let mut message = builder.build();
    message.header.flags = LinkFlags::empty();
    message.header.change_mask = LinkFlags::empty();
    let message = RouteNetlinkMessage::NewLink(message);
    Request::new(message, NLM_F_CREATE | NLM_F_EXCL)
}

/// A link that stands in for another one, with its name, index, MAC, MTU and queues: the end of a pair, with its `other_end`.
pub(crate) fn add_stand_in(link: &Link, place: Placement<'_>, other_end: Placement<'_>) -> Request {
    /// `VETH_INFO_PEER` (`linux/veth.h`), which has a `struct ifinfomsg`, and `IFLA_NET_NS_FD`.
    const PEER: u16 = 1;
    const NET_NS_FD: u16 = 28;
    let mut header = [0; LINK_HEADER];
    let index = other_end.index.unwrap_or_default();
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut attributes = Nested::default();
    if let Some(netns) = other_end.netns {
        attributes.push(NET_NS_FD, netns.to_ne_bytes().to_vec());
    }
    let mut peer = Nested::default();
    peer.push(PEER, [&header[..], &attributes.bytes()].concat());
    of_kind("veth", &peer, link, place)
}

/// A bridge or a VRF without ports that stands in for another one, with that of its `IFLA_INFO_DATA` on which its ports depend.
pub(crate) fn add_empty(link: &Link, place: Placement<'_>, data: &[u8]) -> Request {
    /// `IFLA_BR_VLAN_FILTERING`, `IFLA_BR_VLAN_PROTOCOL`, `IFLA_BR_VLAN_DEFAULT_PVID`; `IFLA_VRF_TABLE`.
    const OF_PORTS: [(&str, &[u16]); 2] = [("bridge", &[7, 8, 39]), ("vrf", &[1])];
    let kind = link.kind.name();
    let of_ports = OF_PORTS.iter().find(|(name, _)| *name == kind);
    // A kernel without VLAN filtering refuses all of it.
    let is_plain = link.is_bridge() && !link.vlan_filtering;
    let wanted = of_ports.filter(|_| !is_plain);
    let wanted = wanted.map_or(&[][..], |(_, numbers)| numbers);
    let mut kept = Nested::default();
    for raw in Nested::parse(data)
        .into_iter()
        .flat_map(Nested::into_stored)
    {
        if wanted.contains(&raw.number) {
            kept.push(raw.number, raw.value);
        }
    }
    of_kind(kind, &kept, link, place)
}

fn of_kind(kind: &str, data: &Nested, link: &Link, place: Placement<'_>) -> Request {
    let (kind, data) = (InfoKind::from(kind), InfoData::Other(data.bytes()));
    let builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).set_info_data(data);
    named(builder, link, place)
}
