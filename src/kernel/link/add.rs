//! Creating links: one message with all attributes that creation accepts.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::{data, kind};
use crate::kernel::codec::text;
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
    let mut builder =
        LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).set_info_data(data);
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
    if let Some(parent) = parent {
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
    Ok(Request::new(message, NLM_F_CREATE | NLM_F_EXCL))
}
