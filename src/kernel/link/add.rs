//! Creating links: one message with all attributes that creation accepts.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoBond, InfoData, InfoKind, InfoMacVlan, InfoVlan, LinkAttribute, LinkInfo, LinkMessage,
    MacVlanFlags, MacVlanMacAddressMode, MacVlanMode, VlanFlags, VlanProtocol as KernelProtocol,
    VlanQosMapping,
};

use crate::kernel::{Errno, Request};
use crate::model::link::{Macvlan, MacvlanMode, Queues, Vlan, VlanProtocol};
use crate::model::{IfName, Link, LinkKind};

/// Namespace, name and ifindex of a new link.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The name it is created with.
    pub name: &'a IfName,
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
    let (kind, data) = match &link.kind {
        LinkKind::Vlan(vlan) => (InfoKind::Vlan, InfoData::Vlan(vlan_infos(vlan))),
        LinkKind::Macvlan(data) => (InfoKind::MacVlan, InfoData::MacVlan(macvlan_infos(data))),
        LinkKind::Bond(bond) => {
            let mode = InfoBond::Mode(bond.mode.into());
            (InfoKind::Bond, InfoData::Bond(vec![mode]))
        }
        LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => {
            return Err(Errno::EOPNOTSUPP);
        }
    };
    let mut attributes = vec![
        LinkAttribute::IfName(place.name.to_string()),
        LinkAttribute::Mtu(link.mtu),
        LinkAttribute::TxQueueLen(link.txqueuelen),
    ];
    attributes.extend(link.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
    attributes.extend(place.netns.map(LinkAttribute::NetNsFd));
    attributes.extend(place.parent.map(LinkAttribute::Link));
    if let Some(Queues { tx, rx }) = link.queues {
        attributes.push(LinkAttribute::NumTxQueues(tx));
        attributes.push(LinkAttribute::NumRxQueues(rx));
    }
    let info = vec![LinkInfo::Kind(kind), LinkInfo::Data(data)];
    attributes.push(LinkAttribute::LinkInfo(info));
    Ok(Request::new(
        RouteNetlinkMessage::NewLink(message(place.index.unwrap_or_default(), attributes)),
        NLM_F_CREATE | NLM_F_EXCL,
    ))
}

/// A message about the link with that index; 0: a new one.
pub(super) fn message(index: u32, attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = attributes;
    message
}

fn vlan_infos(vlan: &Vlan) -> Vec<InfoVlan> {
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
    let mut infos = vec![InfoVlan::Protocol(protocol), InfoVlan::Id(vlan.id.into())];
    infos.extend(vlan_flags(vlan));
    if !vlan.ingress_qos.is_empty() {
        infos.push(InfoVlan::IngressQos(map(&vlan.ingress_qos)));
    }
    if !vlan.egress_qos.is_empty() {
        infos.push(InfoVlan::EgressQos(map(&vlan.egress_qos)));
    }
    infos
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
