//! Changing links: attributes, data of the kind, names.

use std::net::Ipv6Addr;
use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoBond, InfoBondPort, InfoBridgePort, InfoData, InfoKind,
    InfoPortData, InfoPortKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkMode,
};
use rtnetlink::{LinkBond, LinkMessageBuilder, LinkUnspec};

use super::{data, kind, read};
use crate::kernel::codec::text;
use crate::kernel::link::bond;
use crate::kernel::{Errno, Error, Request, Socket};
use crate::model::net::link::bond::{Bond, BondOption};
use crate::model::net::link::port::BACKUP_PORT;
use crate::model::net::link::{Flags, OffloadLimit};
use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, IfName, Link, LinkKind, Mac};

/// `ip link set`: changes the link with that index.
pub fn set(
    index: u32,
    change: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec>,
) -> Request {
    let message = change(LinkUnspec::new_with_index(index)).build();
    Request::new(RouteNetlinkMessage::SetLink(message), 0)
}

fn set_attribute(index: u32, attribute: LinkAttribute) -> Request {
    set(index, |link| link.append_extra_attribute(attribute))
}

/// A message about the link with that index.
fn message(index: u32, attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = attributes;
    message
}

/// Takes the link up or down.
pub fn set_up(index: u32, up: bool) -> Request {
    set(index, |link| if up { link.up() } else { link.down() })
}

/// Sets the flags that differ, but for `up` and the carrier.
pub fn set_flags(index: u32, from: Flags, to: Flags) -> Request {
    let bits = |flags: Flags| {
        let Flags {
            up: _,
            carrier: _,
            noarp,
            promisc,
            allmulti,
            multicast,
            dynamic,
            notrailers,
        } = flags;
        let all = [
            (LinkFlags::Noarp, noarp),
            (LinkFlags::Promisc, promisc),
            (LinkFlags::Allmulti, allmulti),
            (LinkFlags::Multicast, multicast),
            (LinkFlags::Dynamic, dynamic),
            (LinkFlags::Notrailers, notrailers),
        ];
        let set = all.into_iter().filter(|(_, is_set)| *is_set);
        set.fold(LinkFlags::empty(), |bits, (bit, _)| bits | bit)
    };
    let mut message = message(index, Vec::new());
    message.header.flags = bits(to);
    message.header.change_mask = bits(from) ^ bits(to);
    Request::new(RouteNetlinkMessage::SetLink(message), 0)
}

/// Renames the link, which must be down.
pub fn rename(index: u32, name: &IfName) -> Request {
    set_attribute(index, text::name(name))
}

/// Moves the link into a namespace, where it has, since Linux 5.13, this index (0: the kernel chooses). It keeps its name:
/// a rename in the same message would come after the move, and leave the link there where it fails.
pub fn move_to(index: u32, fd: RawFd, wanted: u32) -> Request {
    set(index, |link| {
        let link = link.setns_by_fd(fd);
        match i32::try_from(wanted) {
            Ok(wanted) if wanted > 0 => {
                link.append_extra_attribute(LinkAttribute::NewIfIndex(wanted))
            }
            _ => link,
        }
    })
}

fn change_data<T>(builder: LinkMessageBuilder<T>) -> Request {
    // RTM_NEWLINK without CREATE changes the data of the kind (`ip link change`).
    Request::new(RouteNetlinkMessage::NewLink(builder.build()), 0)
}

/// `ip link change type …`: the data of the kind that the kernel can change. Fails with `EOPNOTSUPP` where there is none.
pub fn change_kind(index: u32, kind: &LinkKind) -> Result<Request, Errno> {
    let (kind, data) = kind::change(kind).ok_or(Errno::EOPNOTSUPP)?;
    let builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).index(index);
    Ok(change_data(builder.set_info_data(data)))
}

/// `ip link change type … dev …`: the lower device of a link that has lost it. Without its present MTU, the kernel would derive one
/// from the new device; without the rest of its data, it would lose that.
pub fn change_lower(index: u32, link: &Link, lower: u32) -> Result<Request, Errno> {
    let (kind, data) = data::on(&link.kind, Some(lower)).ok_or(Errno::EOPNOTSUPP)?;
    let builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).index(index);
    Ok(change_data(builder.set_info_data(data).mtu(link.mtu)))
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
    let builder = LinkMessageBuilder::<LinkBond>::new_with_info_kind(InfoKind::Bond).index(index);
    change_data(builder.set_info_data(InfoData::Bond(infos)))
}

/// `ip token set`.
pub fn set_token(index: u32, token: Ipv6Addr) -> Request {
    set_ipv6(index, AfSpecInet6::Token(token))
}

/// `ip link set gso_max_size … gro_ipv4_max_size …`, one after the other.
pub fn set_offload(index: u32, limits: &[(OffloadLimit, u32)]) -> Request {
    set(index, |mut link| {
        for (limit, value) in limits {
            link = link.append_extra_attribute(match limit {
                OffloadLimit::GsoMaxSize => LinkAttribute::GsoMaxSize(*value),
                OffloadLimit::GsoMaxSegs => LinkAttribute::GsoMaxSegs(*value),
                OffloadLimit::GroMaxSize => LinkAttribute::GroMaxSize(*value),
                OffloadLimit::GsoIpv4MaxSize => LinkAttribute::GsoIpv4MaxSize(*value),
                OffloadLimit::GroIpv4MaxSize => LinkAttribute::GroIpv4MaxSize(*value),
            });
        }
        link
    })
}

/// `ip link set broadcast`.
pub fn set_broadcast(index: u32, mac: Mac) -> Request {
    set_attribute(index, LinkAttribute::Broadcast(mac.0.to_vec()))
}

/// `ip link set protodown on`.
pub fn set_protodown(index: u32) -> Request {
    set_attribute(index, LinkAttribute::ProtoDown(1))
}

/// `ip link set mode dormant`.
pub fn set_dormant(index: u32) -> Request {
    set_attribute(index, LinkAttribute::Mode(LinkMode::Dormant))
}

/// `ip link set addrgenmode`: unlike a write to the sysctl, it adds no address.
pub fn set_addr_gen_mode(index: u32, mode: u8) -> Request {
    set_ipv6(index, AfSpecInet6::AddrGenMode(mode.into()))
}

fn set_ipv6(index: u32, part: AfSpecInet6) -> Request {
    let spec = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![part])]);
    let message = message(index, vec![spec]);
    Request::new(RouteNetlinkMessage::SetLink(message), 0)
}

/// `bridge link set`: settings of a port of a bridge.
pub fn set_bridge_port(index: u32, settings: &[RawAttribute]) -> Request {
    let settings = settings.iter().map(|raw| text::restored(raw, 0));
    let data = InfoPortData::BridgePort(settings.map(InfoBridgePort::Other).collect());
    set_port(index, InfoPortKind::Bridge, data)
}

/// `bridge link set backup_port`.
pub fn set_backup_port(index: u32, port: u32) -> Request {
    let (number, value) = (BACKUP_PORT, port.to_ne_bytes().to_vec());
    set_bridge_port(index, &[RawAttribute { number, value }])
}

/// `ip link set type bond_slave`: settings of a port of a bond.
pub fn set_bond_port(index: u32, settings: &[RawAttribute]) -> Request {
    let settings = settings.iter().map(|raw| text::restored(raw, 0));
    let data = InfoPortData::BondPort(settings.map(InfoBondPort::Other).collect());
    set_port(index, InfoPortKind::Bond, data)
}

fn set_port(index: u32, kind: InfoPortKind, data: InfoPortData) -> Request {
    let infos = vec![LinkInfo::PortKind(kind), LinkInfo::PortData(data)];
    let message = message(index, vec![LinkAttribute::LinkInfo(infos)]);
    // RTM_NEWLINK without CREATE: RTM_SETLINK ignores the data of a port.
    Request::new(RouteNetlinkMessage::NewLink(message), 0)
}

/// `ip link set alias`.
pub fn set_alias(index: u32, alias: &Bytes) -> Request {
    set_attribute(index, text::alias(alias))
}

/// `ip link property add altname`.
pub fn add_altnames(index: u32, names: &[Bytes]) -> Request {
    let message = RouteNetlinkMessage::NewLinkProp(message(index, vec![text::altnames(names)]));
    Request::new(message, NLM_F_CREATE | NLM_F_EXCL)
}

/// The index of the link of that name in the socket's namespace. Fails with `ENODEV` when there is none.
pub fn index_of(socket: &mut Socket, name: &IfName) -> Result<u32, Error> {
    let message = message(0, vec![text::name(name)]);
    Ok(read::get(socket, message)?.header.index)
}

/// `ip link del`: only for a link that this run has created.
pub fn del(index: u32) -> Request {
    Request::new(RouteNetlinkMessage::DelLink(message(index, Vec::new())), 0)
}
