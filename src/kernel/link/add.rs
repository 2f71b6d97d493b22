//! Creating links: one message with all attributes that creation accepts.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoBond, InfoKind, InfoMacVlan, InfoVlan, LinkAttribute, LinkFlags, LinkMessage, MacVlanFlags,
    MacVlanMacAddressMode, MacVlanMode, VlanFlags, VlanProtocol as KernelProtocol, VlanQosMapping,
};
use rtnetlink::{LinkBond, LinkMacVlan, LinkMessageBuilder, LinkVlan};

use crate::kernel::{Errno, Request, text};
use crate::model::link::{Macvlan, MacvlanMode, Queues, Vlan, VlanProtocol};
use crate::model::{IfName, Link, LinkKind};

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
    let mut message = match &link.kind {
        LinkKind::Vlan(vlan) => finish(vlan_data(builder(InfoKind::Vlan), vlan), link, place),
        LinkKind::Macvlan(data) => {
            finish(macvlan_data(builder(InfoKind::MacVlan), data), link, place)
        }
        LinkKind::Bond(bond) => {
            let mode = InfoBond::Mode(bond.mode.into());
            finish(
                builder::<LinkBond>(InfoKind::Bond).append_info_data(mode),
                link,
                place,
            )
        }
        LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => {
            return Err(Errno::EOPNOTSUPP);
        }
    };
    message.header.flags = LinkFlags::empty();
    message.header.change_mask = LinkFlags::empty();
    Ok(Request::new(
        RouteNetlinkMessage::NewLink(message),
        NLM_F_CREATE | NLM_F_EXCL,
    ))
}

fn builder<T: Default>(kind: InfoKind) -> LinkMessageBuilder<T> {
    LinkMessageBuilder::new_with_info_kind(kind)
}

fn finish<T>(mut builder: LinkMessageBuilder<T>, link: &Link, place: Placement<'_>) -> LinkMessage {
    if let Some(name) = place.name {
        builder = builder.append_extra_attribute(text::name(name));
    }
    builder = builder.mtu(link.mtu).txqueuelen(link.txqueuelen);
    if let Some(mac) = link.mac {
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
    builder.build()
}

fn vlan_data(builder: LinkMessageBuilder<LinkVlan>, vlan: &Vlan) -> LinkMessageBuilder<LinkVlan> {
    let protocol = match vlan.protocol {
        VlanProtocol::Dot1Q => KernelProtocol::Ieee8021Q,
        VlanProtocol::Dot1Ad => KernelProtocol::Ieee8021Ad,
    };
    let map = |pairs: &[(u32, u32)]| {
        pairs
            .iter()
            .map(|(from, to)| VlanQosMapping::Mapping(*from, *to))
            .collect()
    };
    let mut builder = builder.protocol(protocol).id(vlan.id.into());
    if let Some(flags) = vlan_flags(vlan) {
        builder = builder.append_info_data(flags);
    }
    if !vlan.ingress_qos.is_empty() {
        builder = builder.append_info_data(InfoVlan::IngressQos(map(&vlan.ingress_qos)));
    }
    if !vlan.egress_qos.is_empty() {
        builder = builder.append_info_data(InfoVlan::EgressQos(map(&vlan.egress_qos)));
    }
    builder
}

/// The flags, with a mask of those that differ from a new VLAN's: old kernels refuse unknown bits.
fn vlan_flags(vlan: &Vlan) -> Option<InfoVlan> {
    let differs = vlan.vlan_flags ^ Vlan::REORDER_HDR;
    let flags = VlanFlags::from_bits_retain(vlan.vlan_flags & differs);
    (differs != 0).then_some(InfoVlan::Flags((
        flags,
        VlanFlags::from_bits_retain(differs),
    )))
}

fn macvlan_data(
    mut builder: LinkMessageBuilder<LinkMacVlan>,
    data: &Macvlan,
) -> LinkMessageBuilder<LinkMacVlan> {
    for info in macvlan_infos(data) {
        builder = builder.append_info_data(info);
    }
    builder
}

pub(super) fn macvlan_infos(data: &Macvlan) -> Vec<InfoMacVlan> {
    let Macvlan {
        mode,
        macvlan_flags,
        bc_queue_len,
        bc_cutoff,
        sources,
    } = data;
    let mut infos = vec![InfoMacVlan::Mode(match mode {
        MacvlanMode::Private => MacVlanMode::Private,
        MacvlanMode::Vepa => MacVlanMode::Vepa,
        MacvlanMode::Bridge => MacVlanMode::Bridge,
        MacvlanMode::Passthru => MacVlanMode::Passthrough,
        MacvlanMode::Source => MacVlanMode::Source,
    })];
    if *macvlan_flags != 0 {
        infos.push(InfoMacVlan::Flags(MacVlanFlags::from_bits_retain(
            *macvlan_flags,
        )));
    }
    infos.extend(bc_queue_len.map(InfoMacVlan::BcQueueLen));
    infos.extend(bc_cutoff.map(InfoMacVlan::BcCutoff));
    if !sources.is_empty() {
        infos.push(InfoMacVlan::MacAddrMode(MacVlanMacAddressMode::Set));
        infos.push(InfoMacVlan::MacAddrData(
            sources
                .iter()
                .map(|mac| InfoMacVlan::MacAddr(mac.0))
                .collect(),
        ));
    }
    infos
}
