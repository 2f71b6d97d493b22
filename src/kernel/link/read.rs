//! Reading links: from the kernel's messages to the model.

use netlink_packet_route::link::{
    InfoData, InfoMacVlan, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage, MacVlanMode, Prop, VlanProtocol as KernelProtocol, VlanQosMapping,
};

use crate::kernel::{bond, devconf};
use crate::model::link::{Flags, Macvlan, MacvlanMode, Queues, Vlan, VlanId, VlanProtocol};
use crate::model::{IfName, Link, LinkKind, Mac};

/// A link of one namespace's dump, which refers to other links by ifindex.
#[derive(Debug)]
pub(in crate::kernel) struct RawLink {
    pub link: Link,
    pub parent: Option<u32>,
    pub parent_netns: Option<i32>,
    pub master: Option<u32>,
    pub primary: Option<u32>,
    pub has_hardware: bool,
}

/// Reads one link of a dump; the error is the reason why the model cannot hold it.
pub(in crate::kernel) fn parse(message: LinkMessage) -> Result<RawLink, String> {
    let LinkMessage {
        header, attributes, ..
    } = message;
    let name = attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(n) => Some(n.clone()),
        _ => None,
    });
    let name = IfName::try_from(name.unwrap_or_default()).map_err(|error| error.to_string())?;
    let is_ether = header.link_layer_type == LinkLayerType::Ether;
    let kind = if header.flags.contains(LinkFlags::Loopback) {
        LinkKind::Loopback
    } else {
        LinkKind::Physical
    };
    let mut link = Link::plain(name, kind);
    link.index = header.index;
    link.flags = flags(header.flags);
    let mut raw = RawLink {
        link,
        parent: None,
        parent_netns: None,
        master: None,
        primary: None,
        has_hardware: false,
    };
    for attribute in attributes {
        raw.take(attribute)?;
    }
    raw.has_hardware = is_ether && raw.link.kind == LinkKind::Physical;
    Ok(raw)
}

impl RawLink {
    fn take(&mut self, attribute: LinkAttribute) -> Result<(), String> {
        let link = &mut self.link;
        match attribute {
            LinkAttribute::Address(bytes) => link.mac = Mac::from_slice(&bytes),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::TxQueueLen(length) => link.txqueuelen = length,
            LinkAttribute::Group(group) => link.group = group,
            // noop: the link is down and has no qdisc yet.
            LinkAttribute::Qdisc(kind) => link.qdisc = Some(kind).filter(|kind| kind != "noop"),
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias),
            LinkAttribute::NumTxQueues(tx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).tx = tx;
            }
            LinkAttribute::NumRxQueues(rx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).rx = rx;
            }
            LinkAttribute::PropList(props) => link.altnames = altnames(props),
            LinkAttribute::Link(index) => self.parent = Some(index).filter(|index| *index != 0),
            LinkAttribute::LinkNetNsId(id) => self.parent_netns = Some(id),
            LinkAttribute::Controller(index) => self.master = Some(index),
            LinkAttribute::LinkInfo(infos) => self.take_info(infos)?,
            LinkAttribute::AfSpecUnspec(specs) if link.kind != LinkKind::Loopback => {
                link.sysctls = devconf::parse(&specs);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_info(&mut self, infos: Vec<LinkInfo>) -> Result<(), String> {
        for info in infos {
            match info {
                LinkInfo::Kind(kind) => {
                    self.link.kind = LinkKind::Other {
                        driver: kind.to_string(),
                    }
                }
                LinkInfo::Data(InfoData::Vlan(infos)) => {
                    self.link.kind = LinkKind::Vlan(vlan(&infos)?);
                }
                LinkInfo::Data(InfoData::MacVlan(infos)) => {
                    self.link.kind = LinkKind::Macvlan(macvlan(&infos)?);
                }
                LinkInfo::Data(InfoData::Bond(infos)) => {
                    let (parsed, primary) = bond::parse(&infos);
                    self.link.kind = LinkKind::Bond(parsed);
                    self.primary = primary;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn flags(flags: LinkFlags) -> Flags {
    Flags {
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp | LinkFlags::Running),
        noarp: flags.contains(LinkFlags::Noarp),
        promisc: flags.contains(LinkFlags::Promisc),
        allmulti: flags.contains(LinkFlags::Allmulti),
        multicast: flags.contains(LinkFlags::Multicast),
    }
}

fn altnames(props: Vec<Prop>) -> Vec<String> {
    props
        .into_iter()
        .filter_map(|p| match p {
            Prop::AltIfName(name) => Some(name),
            _ => None,
        })
        .collect()
}

fn vlan(infos: &[InfoVlan]) -> Result<Vlan, String> {
    let id = infos.iter().find_map(|info| match info {
        InfoVlan::Id(id) => Some(*id),
        _ => None,
    });
    let id = id.ok_or("the kernel reports no VLAN id")?;
    let mut vlan = Vlan::plain(VlanId::try_from(id).map_err(|error| error.to_string())?);
    vlan.vlan_flags = 0;
    for info in infos {
        match info {
            InfoVlan::Flags((flags, _)) => vlan.vlan_flags = flags.bits(),
            InfoVlan::Protocol(KernelProtocol::Ieee8021Ad) => vlan.protocol = VlanProtocol::Dot1Ad,
            InfoVlan::IngressQos(map) => vlan.ingress_qos = qos(map),
            InfoVlan::EgressQos(map) => vlan.egress_qos = qos(map),
            _ => {}
        }
    }
    Ok(vlan)
}

fn qos(map: &[VlanQosMapping]) -> Vec<(u32, u32)> {
    let pair = |m: &VlanQosMapping| match m {
        VlanQosMapping::Mapping(from, to) => Some((*from, *to)),
        _ => None,
    };
    map.iter().filter_map(pair).collect()
}

fn macvlan(infos: &[InfoMacVlan]) -> Result<Macvlan, String> {
    let mut mode = None;
    let mut macvlan = Macvlan::plain(MacvlanMode::Vepa);
    for info in infos {
        match info {
            InfoMacVlan::Mode(kernel) => mode = Some(macvlan_mode(*kernel)?),
            InfoMacVlan::Flags(flags) => macvlan.macvlan_flags = flags.bits(),
            InfoMacVlan::BcQueueLen(length) => macvlan.bc_queue_len = Some(*length),
            InfoMacVlan::BcCutoff(cutoff) => macvlan.bc_cutoff = Some(*cutoff),
            InfoMacVlan::MacAddrData(list) => {
                let mac = |i: &InfoMacVlan| match i {
                    InfoMacVlan::MacAddr(m) => Some(Mac(*m)),
                    _ => None,
                };
                macvlan.sources = list.iter().filter_map(mac).collect();
                macvlan.sources.sort_unstable();
            }
            _ => {}
        }
    }
    macvlan.mode = mode.ok_or("the kernel reports no macvlan mode")?;
    Ok(macvlan)
}

fn macvlan_mode(mode: MacVlanMode) -> Result<MacvlanMode, String> {
    Ok(match mode {
        MacVlanMode::Private => MacvlanMode::Private,
        MacVlanMode::Vepa => MacvlanMode::Vepa,
        MacVlanMode::Bridge => MacvlanMode::Bridge,
        MacVlanMode::Passthrough => MacvlanMode::Passthru,
        MacVlanMode::Source => MacvlanMode::Source,
        other => return Err(format!("unknown macvlan mode {other}")),
    })
}
