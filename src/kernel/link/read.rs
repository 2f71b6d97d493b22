//! Reading links: from the kernel's messages to the model.

use netlink_packet_core::{NlasIterator, Parseable, ParseableParametrized};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage, MacVlanMode, VlanProtocol as KernelProtocol, VlanQosMapping,
};

use crate::kernel::text::{self, LinkText};
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
    /// What the model cannot hold. A link of a known kind is of an [`Other`](LinkKind::Other) one then.
    pub flaws: Vec<String>,
}

/// The name of a link.
pub(in crate::kernel) fn name(message: &LinkMessage) -> Option<IfName> {
    let mut texts = message.attributes.iter().filter_map(LinkText::of);
    texts.find_map(|text| match text {
        LinkText::Name(name) => IfName::try_from(name).ok(),
        _ => None,
    })
}

/// Reads one link of a dump; `None` when it has no name.
pub(in crate::kernel) fn parse(message: LinkMessage) -> Option<RawLink> {
    let name = name(&message)?;
    let LinkMessage {
        header, attributes, ..
    } = message;
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
        flaws: Vec::new(),
    };
    for attribute in attributes {
        raw.take(attribute);
    }
    raw.has_hardware = is_ether && raw.link.kind == LinkKind::Physical;
    Some(raw)
}

/// Reads a link of which netlink-packet-route refuses some attributes: they are flaws, and all others count.
pub(in crate::kernel) fn parse_in_part(message: &[u8]) -> Option<RawLink> {
    let (header, attributes) = message
        .get(text::MESSAGE_HEADER..)?
        .split_at_checked(text::LINK_HEADER)?;
    let mut message = LinkMessage::parse(header).ok()?;
    let mut flaws = Vec::new();
    for attribute in NlasIterator::new(attributes).map_while(Result::ok) {
        let family = message.header.interface_family;
        match LinkAttribute::parse_with_param(&attribute, family) {
            Ok(attribute) => message.attributes.push(attribute),
            Err(why) => {
                flaws.push(format!("attribute {}: {why}", attribute.kind()));
                if attribute.kind() == IFLA_LINKINFO {
                    let kind = LinkInfo::Kind(kind_alone(attribute.value()));
                    message.attributes.push(LinkAttribute::LinkInfo(vec![kind]));
                }
            }
        }
    }
    let mut raw = parse(message)?;
    raw.flaws.extend(flaws);
    Some(raw)
}

const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;

/// The kind of a link whose data cannot be decoded.
fn kind_alone(infos: &[u8]) -> InfoKind {
    let mut infos = NlasIterator::new(infos).map_while(Result::ok);
    let kind = infos.find(|info| info.kind() == IFLA_INFO_KIND);
    let kind = kind.and_then(|kind| InfoKind::parse(&kind).ok());
    kind.unwrap_or_else(|| InfoKind::Other("unknown".to_owned()))
}

impl RawLink {
    fn take(&mut self, attribute: LinkAttribute) {
        let link = &mut self.link;
        match LinkText::of(&attribute) {
            Some(LinkText::Alias(alias)) => link.alias = Some(alias),
            Some(LinkText::Altnames(names)) => link.altnames = names,
            Some(LinkText::Name(_)) | None => {}
        }
        match attribute {
            LinkAttribute::Address(bytes) => link.mac = Mac::from_slice(&bytes),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::TxQueueLen(length) => link.txqueuelen = length,
            LinkAttribute::Group(group) => link.group = group,
            // noop: the link is down and has no qdisc yet.
            LinkAttribute::Qdisc(kind) => link.qdisc = Some(kind).filter(|kind| kind != "noop"),
            LinkAttribute::NumTxQueues(tx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).tx = tx;
            }
            LinkAttribute::NumRxQueues(rx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).rx = rx;
            }
            LinkAttribute::Link(index) => self.parent = Some(index).filter(|index| *index != 0),
            LinkAttribute::LinkNetNsId(id) => self.parent_netns = Some(id),
            LinkAttribute::Controller(index) => self.master = Some(index),
            LinkAttribute::LinkInfo(infos) => self.take_infos(infos),
            LinkAttribute::AfSpecUnspec(specs) if link.kind != LinkKind::Loopback => {
                link.sysctls = devconf::parse(&specs);
            }
            _ => {}
        }
    }

    fn take_infos(&mut self, infos: Vec<LinkInfo>) {
        for info in infos {
            let kind = match info {
                LinkInfo::Kind(kind) => Ok(LinkKind::Other {
                    driver: kind.to_string(),
                }),
                LinkInfo::Data(InfoData::Vlan(infos)) => vlan(&infos).map(LinkKind::Vlan),
                LinkInfo::Data(InfoData::MacVlan(infos)) => macvlan(&infos).map(LinkKind::Macvlan),
                LinkInfo::Data(InfoData::Bond(infos)) => {
                    let (parsed, primary) = bond::parse(&infos);
                    self.primary = primary;
                    Ok(LinkKind::Bond(parsed))
                }
                _ => continue,
            };
            match kind {
                Ok(kind) => self.link.kind = kind,
                Err(flaw) => self.flaws.push(flaw),
            }
        }
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
