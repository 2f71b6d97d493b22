//! The data of the kinds of links: between netlink attributes and the model.

use netlink_packet_core::{Emitable, Nla, NlaBuffer, Parseable};
use netlink_packet_route::link::{
    InfoBond, InfoData, InfoIpVlan, InfoKind, InfoMacVlan, InfoVlan, IpVlanFlags, IpVlanMode,
    MacVlanFlags, MacVlanMacAddressMode, MacVlanMode, VlanFlags, VlanProtocol as KernelProtocol,
    VlanQosMapping,
};

use crate::kernel::codec::text;
use crate::model::net::link::{
    Ipvlan, IpvlanMode, Macvlan, MacvlanMode, Vlan, VlanId, VlanProtocol,
};
use crate::model::{LinkKind, Mac};

/// The kind with this data, of those that the model knows; or what the model cannot hold. Bonds are a case of their own.
pub(super) fn parse(data: &InfoData) -> Option<Result<LinkKind, String>> {
    Some(match data {
        InfoData::Vlan(infos) => vlan(infos).map(LinkKind::Vlan),
        InfoData::MacVlan(infos) => macvlan(infos).map(LinkKind::Macvlan),
        InfoData::MacVtap(infos) => macvlan(&converted(infos)).map(LinkKind::Macvtap),
        InfoData::IpVlan(infos) => ipvlan(infos).map(LinkKind::Ipvlan),
        InfoData::IpVtap(infos) => ipvlan(&converted(infos)).map(LinkKind::Ipvtap),
        _ => return None,
    })
}

/// These attributes under another type: the taps have those of the links that they are based on.
fn converted<T: for<'a> Parseable<NlaBuffer<&'a [u8]>>>(infos: &[impl Nla]) -> Vec<T> {
    infos
        .iter()
        .filter_map(|info| {
            let raw = text::restored(&text::stored(info), 0);
            let mut bytes = vec![0; raw.buffer_len()];
            raw.emit(&mut bytes);
            let buffer = NlaBuffer::new_checked(&bytes[..]).ok()?;
            T::parse(&buffer).ok()
        })
        .collect()
}

/// The data of a new link, for the kinds that netfix makes.
pub(super) fn new_link(kind: &LinkKind) -> Option<(InfoKind, InfoData)> {
    Some(match kind {
        LinkKind::Vlan(vlan) => (InfoKind::Vlan, InfoData::Vlan(vlan_infos(vlan))),
        LinkKind::Bond(bond) => {
            let mode = InfoBond::Mode(bond.mode.into());
            (InfoKind::Bond, InfoData::Bond(vec![mode]))
        }
        kind => change(kind)?,
    })
}

/// The data that the kernel can change. Of a VLAN these are the flags: it cannot change the id, and only adds to the `QoS`
/// maps. The options of a bond are changed one by one.
pub(super) fn change(kind: &LinkKind) -> Option<(InfoKind, InfoData)> {
    let macvlan = |data| InfoData::MacVlan(macvlan_infos(data));
    let ipvlan = |data| InfoData::IpVlan(ipvlan_infos(data));
    Some(match kind {
        LinkKind::Vlan(vlan) => {
            let flags = VlanFlags::from_bits_retain(vlan.vlan_flags);
            let known = VlanFlags::from_bits_retain(0x1f);
            let infos = vec![InfoVlan::Flags((flags, known))];
            (InfoKind::Vlan, InfoData::Vlan(infos))
        }
        LinkKind::Macvlan(data) => (InfoKind::MacVlan, macvlan(data)),
        LinkKind::Macvtap(data) => (InfoKind::MacVtap, macvlan(data)),
        LinkKind::Ipvlan(data) => (InfoKind::IpVlan, ipvlan(data)),
        LinkKind::Ipvtap(data) => (InfoKind::IpVtap, ipvlan(data)),
        LinkKind::Bond(_) | LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => {
            return None;
        }
    })
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
    map.iter()
        .filter_map(|m| match m {
            VlanQosMapping::Mapping(from, to) => Some((*from, *to)),
            _ => None,
        })
        .collect()
}

fn macvlan(infos: &[InfoMacVlan]) -> Result<Macvlan, String> {
    let (mut mode, mut listed) = (None, None);
    let mut macvlan = Macvlan::plain(MacvlanMode::Vepa);
    for info in infos {
        match info {
            InfoMacVlan::Mode(kernel) => mode = Some(macvlan_mode(*kernel)?),
            InfoMacVlan::Flags(flags) => macvlan.macvlan_flags = flags.bits(),
            InfoMacVlan::BcQueueLen(length) => macvlan.bc_queue_len = Some(*length),
            InfoMacVlan::BcCutoff(cutoff) => macvlan.bc_cutoff = Some(*cutoff),
            InfoMacVlan::MacAddrData(list) => {
                macvlan.sources = list
                    .iter()
                    .filter_map(|i| match i {
                        InfoMacVlan::MacAddr(m) => Some(Mac(*m)),
                        _ => None,
                    })
                    .collect();
                macvlan.sources.sort_unstable();
            }
            InfoMacVlan::MacAddrCount(count) => listed = Some(*count as usize),
            _ => {}
        }
    }
    // The length of an attribute has 16 bits: the kernel's list of more than 5,400 overflows.
    if listed.is_some_and(|count| count != macvlan.sources.len()) {
        return Err("macvlan: the kernel cannot list all its source MACs".to_owned());
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

fn macvlan_infos(data: &Macvlan) -> Vec<InfoMacVlan> {
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

fn ipvlan(infos: &[InfoIpVlan]) -> Result<Ipvlan, String> {
    let (mut mode, mut ipvlan_flags) = (None, 0);
    for info in infos {
        match info {
            InfoIpVlan::Mode(kernel) => {
                mode = Some(match kernel {
                    IpVlanMode::L2 => IpvlanMode::L2,
                    IpVlanMode::L3 => IpvlanMode::L3,
                    IpVlanMode::L3S => IpvlanMode::L3s,
                    other => return Err(format!("unknown ipvlan mode {other}")),
                });
            }
            InfoIpVlan::Flags(flags) => ipvlan_flags = flags.bits(),
            _ => {}
        }
    }
    let mode = mode.ok_or("the kernel reports no ipvlan mode")?;
    Ok(Ipvlan { mode, ipvlan_flags })
}

fn ipvlan_infos(data: &Ipvlan) -> Vec<InfoIpVlan> {
    let mode = match data.mode {
        IpvlanMode::L2 => IpVlanMode::L2,
        IpvlanMode::L3 => IpVlanMode::L3,
        IpvlanMode::L3s => IpVlanMode::L3S,
    };
    let flags = IpVlanFlags::from_bits_retain(data.ipvlan_flags);
    vec![InfoIpVlan::Mode(mode), InfoIpVlan::Flags(flags)]
}
