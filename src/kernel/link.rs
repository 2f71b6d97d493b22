//! Links: between rtnetlink messages and the model (`ip link`).

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoBond, InfoData, InfoKind, InfoMacVlan, InfoVlan, LinkAttribute, LinkFlags,
    LinkInfo, LinkLayerType, LinkMessage, MacVlanFlags, MacVlanMacAddressMode, MacVlanMode, Prop, VlanFlags,
    VlanProtocol as KernelProtocol, VlanQosMapping,
};
use rtnetlink::{LinkBond, LinkMacVlan, LinkMessageBuilder, LinkUnspec, LinkVlan};

use super::{Error, Request, Socket, bond, devconf};
use crate::model::bond::{Bond, BondOption};
use crate::model::link::{Flags, Macvlan, MacvlanMode, Queues, Vlan, VlanId, VlanProtocol};
use crate::model::{IfName, Link, LinkKind, Mac};

/// A link as one namespace's dump tells it: its references to other links are still numbers.
#[derive(Debug)]
pub(super) struct RawLink {
    pub link: Link,
    pub parent: Option<u32>,
    pub parent_netns: Option<i32>,
    pub master: Option<u32>,
    pub primary: Option<u32>,
    pub has_hardware: bool,
}

/// Reads one link of a dump; the error is why it cannot be described.
pub(super) fn parse(message: LinkMessage) -> Result<RawLink, String> {
    let LinkMessage { header, attributes, .. } = message;
    let name =
        attributes.iter().find_map(|a| if let LinkAttribute::IfName(n) = a { Some(n.clone()) } else { None });
    let name = IfName::try_from(name.unwrap_or_default()).map_err(|error| error.to_string())?;
    let is_ether = header.link_layer_type == LinkLayerType::Ether;
    let kind =
        if header.flags.contains(LinkFlags::Loopback) { LinkKind::Loopback } else { LinkKind::Physical };
    let link = Link {
        name,
        index: header.index,
        mac: None,
        mtu: 0,
        txqueuelen: 0,
        flags: flags(header.flags),
        alias: None,
        altnames: Vec::new(),
        group: 0,
        queues: None,
        master: None,
        parent: None,
        kind,
        hardware: None,
        sysctls: crate::model::sysctl::Sysctls::default(),
    };
    let mut raw =
        RawLink { link, parent: None, parent_netns: None, master: None, primary: None, has_hardware: false };
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
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias),
            LinkAttribute::NumTxQueues(tx) => link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).tx = tx,
            LinkAttribute::NumRxQueues(rx) => link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).rx = rx,
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
                LinkInfo::Kind(kind) => self.link.kind = LinkKind::Other { driver: kind.to_string() },
                LinkInfo::Data(InfoData::Vlan(infos)) => self.link.kind = LinkKind::Vlan(vlan(&infos)?),
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
        carrier: flags.contains(LinkFlags::LowerUp),
        noarp: flags.contains(LinkFlags::Noarp),
        promisc: flags.contains(LinkFlags::Promisc),
        allmulti: flags.contains(LinkFlags::Allmulti),
        multicast: flags.contains(LinkFlags::Multicast),
    }
}

fn altnames(props: Vec<Prop>) -> Vec<String> {
    props.into_iter().filter_map(|p| if let Prop::AltIfName(name) = p { Some(name) } else { None }).collect()
}

fn vlan(infos: &[InfoVlan]) -> Result<Vlan, String> {
    let mut id = None;
    let mut vlan = Vlan {
        id: VlanId::try_from(0).map_err(|error| error.to_string())?,
        protocol: VlanProtocol::default(),
        vlan_flags: 0,
        ingress_qos: Vec::new(),
        egress_qos: Vec::new(),
    };
    for info in infos {
        match info {
            InfoVlan::Id(number) => id = Some(VlanId::try_from(*number).map_err(|error| error.to_string())?),
            InfoVlan::Flags((flags, _)) => vlan.vlan_flags = flags.bits(),
            InfoVlan::Protocol(KernelProtocol::Ieee8021Ad) => vlan.protocol = VlanProtocol::Dot1Ad,
            InfoVlan::IngressQos(map) => vlan.ingress_qos = qos(map),
            InfoVlan::EgressQos(map) => vlan.egress_qos = qos(map),
            _ => {}
        }
    }
    vlan.id = id.ok_or("the kernel told no VLAN id")?;
    Ok(vlan)
}

fn qos(map: &[VlanQosMapping]) -> Vec<(u32, u32)> {
    let pair = |m: &VlanQosMapping| {
        if let VlanQosMapping::Mapping(from, to) = m { Some((*from, *to)) } else { None }
    };
    map.iter().filter_map(pair).collect()
}

fn macvlan(infos: &[InfoMacVlan]) -> Result<Macvlan, String> {
    let mut mode = None;
    let mut macvlan = Macvlan {
        mode: MacvlanMode::Vepa,
        macvlan_flags: 0,
        bc_queue_len: None,
        bc_cutoff: None,
        sources: vec![],
    };
    for info in infos {
        match info {
            InfoMacVlan::Mode(kernel) => mode = Some(macvlan_mode(*kernel)?),
            InfoMacVlan::Flags(flags) => macvlan.macvlan_flags = flags.bits(),
            InfoMacVlan::BcQueueLen(length) => macvlan.bc_queue_len = Some(*length),
            InfoMacVlan::BcCutoff(cutoff) => macvlan.bc_cutoff = Some(*cutoff),
            InfoMacVlan::MacAddrData(list) => {
                let mac =
                    |i: &InfoMacVlan| if let InfoMacVlan::MacAddr(m) = i { Some(Mac(*m)) } else { None };
                macvlan.sources = list.iter().filter_map(mac).collect();
                macvlan.sources.sort_unstable();
            }
            _ => {}
        }
    }
    macvlan.mode = mode.ok_or("the kernel told no macvlan mode")?;
    Ok(macvlan)
}

fn macvlan_mode(mode: MacVlanMode) -> Result<MacvlanMode, String> {
    Ok(match mode {
        MacVlanMode::Private => MacvlanMode::Private,
        MacVlanMode::Vepa => MacvlanMode::Vepa,
        MacVlanMode::Bridge => MacvlanMode::Bridge,
        MacVlanMode::Passthrough => MacvlanMode::Passthru,
        MacVlanMode::Source => MacvlanMode::Source,
        other => return Err(format!("macvlan mode {other} is not known")),
    })
}

/// Where a new link is to live, and under which number and name.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The name it is created with.
    pub name: &'a IfName,
    /// The ifindex to ask for; `None` leaves it to the kernel.
    pub index: Option<u32>,
    /// The namespace that it appears in; `None` is the socket's own.
    pub netns: Option<RawFd>,
    /// The ifindex, in the socket's namespace, of the link that it stands on.
    pub parent: Option<u32>,
}

/// `ip link add`: one message with name, index, MAC, MTU, queues and everything that the kind wants.
///
/// The link is created down. `NLM_F_EXCL` is always set: without it the kernel may take the message as a
/// change of the sender's own link of that name, and move that into the other namespace.
///
/// `None` for kinds that cannot be made.
#[must_use]
pub fn add(link: &Link, place: Placement<'_>) -> Option<Request> {
    let name = place.name.as_str();
    let mut message = match &link.kind {
        LinkKind::Vlan(vlan) => {
            finish(vlan_data(LinkMessageBuilder::<LinkVlan>::new(name), vlan), link, place)
        }
        LinkKind::Macvlan(data) => {
            finish(macvlan_data(LinkMessageBuilder::<LinkMacVlan>::new(name), data), link, place)
        }
        LinkKind::Bond(bond) => {
            let mode = InfoBond::Mode(bond.mode.into());
            finish(LinkMessageBuilder::<LinkBond>::new(name).append_info_data(mode), link, place)
        }
        LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => return None,
    };
    message.header.flags = LinkFlags::empty();
    message.header.change_mask = LinkFlags::empty();
    Some(Request { message: RouteNetlinkMessage::NewLink(message), flags: NLM_F_CREATE | NLM_F_EXCL })
}

fn finish<T>(mut builder: LinkMessageBuilder<T>, link: &Link, place: Placement<'_>) -> LinkMessage {
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
    let map =
        |pairs: &[(u32, u32)]| pairs.iter().map(|(from, to)| VlanQosMapping::Mapping(*from, *to)).collect();
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

/// The flags, with a mask of only those that a new VLAN has otherwise: old kernels refuse bits they do not know.
fn vlan_flags(vlan: &Vlan) -> Option<InfoVlan> {
    let differs = vlan.vlan_flags ^ Vlan::REORDER_HDR;
    let flags = VlanFlags::from_bits_retain(vlan.vlan_flags & differs);
    (differs != 0).then_some(InfoVlan::Flags((flags, VlanFlags::from_bits_retain(differs))))
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

fn macvlan_infos(data: &Macvlan) -> Vec<InfoMacVlan> {
    let Macvlan { mode, macvlan_flags, bc_queue_len, bc_cutoff, sources } = data;
    let mut infos = vec![InfoMacVlan::Mode(match mode {
        MacvlanMode::Private => MacVlanMode::Private,
        MacvlanMode::Vepa => MacVlanMode::Vepa,
        MacvlanMode::Bridge => MacVlanMode::Bridge,
        MacvlanMode::Passthru => MacVlanMode::Passthrough,
        MacvlanMode::Source => MacVlanMode::Source,
    })];
    if *macvlan_flags != 0 {
        infos.push(InfoMacVlan::Flags(MacVlanFlags::from_bits_retain(*macvlan_flags)));
    }
    infos.extend(bc_queue_len.map(InfoMacVlan::BcQueueLen));
    infos.extend(bc_cutoff.map(InfoMacVlan::BcCutoff));
    if !sources.is_empty() {
        infos.push(InfoMacVlan::MacAddrMode(MacVlanMacAddressMode::Set));
        infos.push(InfoMacVlan::MacAddrData(sources.iter().map(|mac| InfoMacVlan::MacAddr(mac.0)).collect()));
    }
    infos
}

/// `ip link set`: starts a change of the link with that index.
#[must_use]
pub fn set(index: u32) -> Change {
    Change(LinkUnspec::new_with_index(index))
}

/// A change of one link; finished with [`Change::request`].
#[derive(Debug)]
pub struct Change(LinkMessageBuilder<LinkUnspec>);

impl Change {
    /// Takes the link up or down.
    #[must_use]
    pub fn up(self, up: bool) -> Self {
        Self(if up { self.0.up() } else { self.0.down() })
    }

    /// Sets the flags that differ; `up` and carrier are not among them.
    #[must_use]
    pub fn flags(mut self, from: Flags, to: Flags) -> Self {
        let Flags { up: _, carrier: _, noarp, promisc, allmulti, multicast } = to;
        if from.noarp != noarp {
            self.0 = self.0.arp(!noarp);
        }
        if from.promisc != promisc {
            self.0 = self.0.promiscuous(promisc);
        }
        if from.allmulti != allmulti {
            self.0 = self.0.allmulticast(allmulti);
        }
        if from.multicast != multicast {
            self.0 = self.0.multicast(multicast);
        }
        self
    }

    /// Sets the hardware address.
    #[must_use]
    pub fn mac(self, mac: Mac) -> Self {
        Self(self.0.address(mac.0.to_vec()))
    }

    /// Sets the MTU in bytes.
    #[must_use]
    pub fn mtu(self, mtu: u32) -> Self {
        Self(self.0.mtu(mtu))
    }

    /// Sets the transmit queue length in packets.
    #[must_use]
    pub fn txqueuelen(self, length: u32) -> Self {
        Self(self.0.txqueuelen(length))
    }

    /// Sets the interface group.
    #[must_use]
    pub fn group(self, group: u32) -> Self {
        Self(self.0.link_group(group))
    }

    /// Sets the alias.
    #[must_use]
    pub fn alias(self, alias: &str) -> Self {
        Self(self.0.alias(alias))
    }

    /// Makes the link a port of the link with that index.
    #[must_use]
    pub fn master(self, index: u32) -> Self {
        Self(self.0.controller(index))
    }

    /// Moves the link into a namespace, there under this name and, from Linux 5.13 on, this index
    /// (0 leaves it to the kernel).
    #[must_use]
    pub fn netns(self, fd: RawFd, name: &IfName, index: u32) -> Self {
        let builder = self.0.setns_by_fd(fd).name(name.as_str());
        match i32::try_from(index) {
            Ok(index) if index > 0 => Self(builder.append_extra_attribute(LinkAttribute::NewIfIndex(index))),
            _ => Self(builder),
        }
    }

    /// The request that makes the change.
    #[must_use]
    pub fn request(self) -> Request {
        Request { message: RouteNetlinkMessage::SetLink(self.0.build()), flags: 0 }
    }
}

fn change_data<T>(builder: LinkMessageBuilder<T>) -> Request {
    // RTM_NEWLINK without CREATE changes the kind's own data of an existing link (`ip link change`).
    Request { message: RouteNetlinkMessage::NewLink(builder.build()), flags: 0 }
}

/// `ip link change type macvlan …`.
#[must_use]
pub fn change_macvlan(index: u32, data: &Macvlan) -> Request {
    let builder = LinkMessageBuilder::<LinkMacVlan>::new_with_info_kind(InfoKind::MacVlan).index(index);
    change_data(builder.set_info_data(InfoData::MacVlan(macvlan_infos(data))))
}

/// `ip link change type vlan …`: flags only; the other data of a VLAN is fixed or additive.
#[must_use]
pub fn change_vlan(index: u32, data: &Vlan) -> Request {
    let flags = VlanFlags::from_bits_retain(data.vlan_flags);
    let known = VlanFlags::from_bits_retain(0x1f);
    let builder = LinkMessageBuilder::<LinkVlan>::new_with_info_kind(InfoKind::Vlan).index(index);
    change_data(builder.set_info_data(InfoData::Vlan(vec![InfoVlan::Flags((flags, known))])))
}

/// `ip link change type bond …`: one option.
#[must_use]
pub fn change_bond_option(index: u32, option: BondOption, value: u32) -> Request {
    change_bond(index, vec![bond::set_number(option, value)])
}

/// The options of a bond that are no numbers: `arp_ip_target`, `ns_ip6_target`, `ad_actor_system`.
#[must_use]
pub fn change_bond_lists(index: u32, wanted: &Bond) -> Request {
    let mut infos = vec![InfoBond::ArpIpTarget(wanted.arp_ip_target.clone())];
    if !wanted.ns_ip6_target.is_empty() {
        infos.push(InfoBond::NsIp6Target(wanted.ns_ip6_target.clone()));
    }
    infos.extend(wanted.ad_actor_system.map(|mac| InfoBond::AdActorSystem(mac.0)));
    change_bond(index, infos)
}

/// `ip link change type bond primary …`.
#[must_use]
pub fn change_bond_primary(index: u32, primary: u32) -> Request {
    change_bond(index, vec![InfoBond::Primary(primary)])
}

fn change_bond(index: u32, infos: Vec<InfoBond>) -> Request {
    let builder = LinkMessageBuilder::<LinkBond>::new_with_info_kind(InfoKind::Bond).index(index);
    change_data(builder.set_info_data(InfoData::Bond(infos)))
}

/// `ip link set addrgenmode`: unlike a write of the sysctl, it makes no address.
#[must_use]
pub fn set_addr_gen_mode(index: u32, mode: u8) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    let spec = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(mode.into())]);
    message.attributes.push(LinkAttribute::AfSpecUnspec(vec![spec]));
    Request { message: RouteNetlinkMessage::SetLink(message), flags: 0 }
}

/// `ip link property add altname`.
#[must_use]
pub fn add_altnames(index: u32, names: &[String]) -> Request {
    let props = names.iter().cloned().map(Prop::AltIfName).collect();
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::PropList(props));
    Request { message: RouteNetlinkMessage::NewLinkProp(message), flags: NLM_F_CREATE | NLM_F_EXCL }
}

/// The index of the socket's namespace's link of that name.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn index_of(socket: &mut Socket, name: &IfName) -> Result<u32, Error> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.as_str().to_owned()));
    match socket.get(&RouteNetlinkMessage::GetLink(message))? {
        RouteNetlinkMessage::NewLink(link) => Ok(link.header.index),
        other => Err(Error::Decode(format!("a link was asked for, {other:?} came"))),
    }
}

/// `ip link del`: only ever for a link that this very run has created.
#[must_use]
pub fn del(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request { message: RouteNetlinkMessage::DelLink(message), flags: 0 }
}
