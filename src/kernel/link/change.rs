//! Changing links: attributes, data of the kind, names.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoBond, InfoData, InfoKind, InfoVlan, LinkAttribute, LinkFlags,
    LinkInfo, Prop, VlanFlags,
};

use super::add::{macvlan_infos, message};
use crate::kernel::{Error, Request, Socket, bond};
use crate::model::IfName;
use crate::model::bond::{Bond, BondOption};
use crate::model::link::{Flags, Macvlan, Vlan};

/// `ip link set`: changes one attribute of the link with that index.
pub fn set(index: u32, attribute: LinkAttribute) -> Request {
    let message = message(index, vec![attribute]);
    Request::new(RouteNetlinkMessage::SetLink(message), 0)
}

/// Takes the link up or down.
pub fn set_up(index: u32, up: bool) -> Request {
    flags(index, &[(LinkFlags::Up, true, up)])
}

/// Sets the flags that differ, but for `up` and the carrier.
pub fn set_flags(index: u32, from: Flags, to: Flags) -> Request {
    let Flags {
        up: _,
        carrier: _,
        noarp,
        promisc,
        allmulti,
        multicast,
    } = to;
    flags(
        index,
        &[
            (LinkFlags::Noarp, from.noarp != noarp, noarp),
            (LinkFlags::Promisc, from.promisc != promisc, promisc),
            (LinkFlags::Allmulti, from.allmulti != allmulti, allmulti),
            (LinkFlags::Multicast, from.multicast != multicast, multicast),
        ],
    )
}

/// Flags, each with whether it changes, and its new value.
fn flags(index: u32, all: &[(LinkFlags, bool, bool)]) -> Request {
    let mut message = message(index, Vec::new());
    for (flag, changes, value) in all {
        message.header.change_mask.set(*flag, *changes);
        message.header.flags.set(*flag, *changes && *value);
    }
    Request::new(RouteNetlinkMessage::SetLink(message), 0)
}

/// Moves the link into a namespace, with this name there and, since Linux 5.13, this index (0: the kernel chooses).
pub fn move_to(index: u32, fd: RawFd, name: &IfName, wanted: u32) -> Request {
    let mut attributes = vec![
        LinkAttribute::NetNsFd(fd),
        LinkAttribute::IfName(name.to_string()),
    ];
    let wanted = i32::try_from(wanted).ok().filter(|wanted| *wanted > 0);
    attributes.extend(wanted.map(LinkAttribute::NewIfIndex));
    Request::new(RouteNetlinkMessage::SetLink(message(index, attributes)), 0)
}

fn change_data(index: u32, kind: InfoKind, data: InfoData) -> Request {
    let info = LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind), LinkInfo::Data(data)]);
    // RTM_NEWLINK without CREATE changes the data of the kind (`ip link change`).
    Request::new(RouteNetlinkMessage::NewLink(message(index, vec![info])), 0)
}

/// `ip link change type macvlan …`.
pub fn change_macvlan(index: u32, data: &Macvlan) -> Request {
    let data = InfoData::MacVlan(macvlan_infos(data));
    change_data(index, InfoKind::MacVlan, data)
}

/// `ip link change type vlan …`: flags only; the kernel cannot change the id, and only adds to the `QoS` maps.
pub fn change_vlan(index: u32, data: &Vlan) -> Request {
    let flags = VlanFlags::from_bits_retain(data.vlan_flags);
    let known = VlanFlags::from_bits_retain(0x1f);
    let data = InfoData::Vlan(vec![InfoVlan::Flags((flags, known))]);
    change_data(index, InfoKind::Vlan, data)
}

/// `ip link change type bond …`: one option.
pub fn change_bond_option(index: u32, option: BondOption, value: u32) -> Request {
    change_bond(index, vec![bond::set_number(option, value)])
}

/// The other options of a bond: `arp_ip_target`, `ns_ip6_target`, `ad_actor_system`.
pub fn change_bond_lists(index: u32, wanted: &Bond) -> Request {
    let mut infos = vec![InfoBond::ArpIpTarget(wanted.arp_ip_target.clone())];
    if !wanted.ns_ip6_target.is_empty() {
        infos.push(InfoBond::NsIp6Target(wanted.ns_ip6_target.clone()));
    }
    infos.extend(
        wanted
            .ad_actor_system
            .map(|mac| InfoBond::AdActorSystem(mac.0)),
    );
    change_bond(index, infos)
}

/// `ip link change type bond primary …`.
pub fn change_bond_primary(index: u32, primary: u32) -> Request {
    change_bond(index, vec![InfoBond::Primary(primary)])
}

fn change_bond(index: u32, infos: Vec<InfoBond>) -> Request {
    change_data(index, InfoKind::Bond, InfoData::Bond(infos))
}

/// `ip link set addrgenmode`: unlike a write to the sysctl, it adds no address.
pub fn set_addr_gen_mode(index: u32, mode: u8) -> Request {
    let spec = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(mode.into())]);
    set(index, LinkAttribute::AfSpecUnspec(vec![spec]))
}

/// `ip link property add altname`.
pub fn add_altnames(index: u32, names: &[String]) -> Request {
    let props = names.iter().cloned().map(Prop::AltIfName).collect();
    let message = message(index, vec![LinkAttribute::PropList(props)]);
    Request::new(
        RouteNetlinkMessage::NewLinkProp(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// The index of the link of that name in the socket's namespace. Fails with `ENODEV` when there is none.
pub fn index_of(socket: &mut Socket, name: &IfName) -> Result<u32, Error> {
    let message = message(0, vec![LinkAttribute::IfName(name.to_string())]);
    match socket.get(&RouteNetlinkMessage::GetLink(message))? {
        RouteNetlinkMessage::NewLink(link) => Ok(link.header.index),
        other => Err(Error::Decode(format!(
            "the answer to RTM_GETLINK is no link: {other:?}"
        ))),
    }
}

/// `ip link del`: only for a link that this run has created.
pub fn del(index: u32) -> Request {
    Request::new(RouteNetlinkMessage::DelLink(message(index, Vec::new())), 0)
}
