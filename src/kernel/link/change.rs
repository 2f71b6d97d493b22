//! Changing links: attributes, data of the kind, names.

use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoBond, InfoData, InfoKind, InfoVlan, LinkAttribute, LinkMessage,
    Prop, VlanFlags,
};
use rtnetlink::{LinkBond, LinkMacVlan, LinkMessageBuilder, LinkUnspec, LinkVlan};

use super::add::macvlan_infos;
use crate::kernel::{Error, Request, Socket, bond};
use crate::model::bond::{Bond, BondOption};
use crate::model::link::{Flags, Macvlan, Vlan};
use crate::model::{IfName, Mac};

/// `ip link set`: starts a change of the link with that index.
pub fn set(index: u32) -> Change {
    Change(LinkUnspec::new_with_index(index))
}

/// A change of one link; finished with [`Change::request`].
#[derive(Debug)]
pub struct Change(LinkMessageBuilder<LinkUnspec>);

impl Change {
    /// Takes the link up or down.
    pub fn up(self, up: bool) -> Self {
        Self(if up { self.0.up() } else { self.0.down() })
    }

    /// Sets the flags that differ, but for `up` and the carrier.
    pub fn flags(mut self, from: Flags, to: Flags) -> Self {
        let Flags {
            up: _,
            carrier: _,
            noarp,
            promisc,
            allmulti,
            multicast,
        } = to;
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
    pub fn mac(self, mac: Mac) -> Self {
        Self(self.0.address(mac.0.to_vec()))
    }

    /// Sets the MTU in bytes.
    pub fn mtu(self, mtu: u32) -> Self {
        Self(self.0.mtu(mtu))
    }

    /// Sets the transmit queue length in packets.
    pub fn txqueuelen(self, length: u32) -> Self {
        Self(self.0.txqueuelen(length))
    }

    /// Sets the interface group.
    pub fn group(self, group: u32) -> Self {
        Self(self.0.link_group(group))
    }

    /// Sets the alias.
    pub fn alias(self, alias: &str) -> Self {
        Self(self.0.alias(alias))
    }

    /// Makes the link a port of the bond or bridge with that index.
    pub fn master(self, index: u32) -> Self {
        Self(self.0.controller(index))
    }

    /// Moves the link into a namespace, with this name there and, since Linux 5.13, this index (0: the kernel chooses).
    pub fn netns(self, fd: RawFd, name: &IfName, index: u32) -> Self {
        let builder = self.0.setns_by_fd(fd).name(name.as_str());
        match i32::try_from(index) {
            Ok(index) if index > 0 => {
                Self(builder.append_extra_attribute(LinkAttribute::NewIfIndex(index)))
            }
            _ => Self(builder),
        }
    }

    /// The request that makes the change.
    pub fn request(self) -> Request {
        Request {
            message: RouteNetlinkMessage::SetLink(self.0.build()),
            flags: 0,
        }
    }
}

fn change_data<T>(builder: LinkMessageBuilder<T>) -> Request {
    // RTM_NEWLINK without CREATE changes the data of the kind (`ip link change`).
    Request {
        message: RouteNetlinkMessage::NewLink(builder.build()),
        flags: 0,
    }
}

/// `ip link change type macvlan …`.
pub fn change_macvlan(index: u32, data: &Macvlan) -> Request {
    let builder =
        LinkMessageBuilder::<LinkMacVlan>::new_with_info_kind(InfoKind::MacVlan).index(index);
    change_data(builder.set_info_data(InfoData::MacVlan(macvlan_infos(data))))
}

/// `ip link change type vlan …`: flags only; the kernel cannot change the id, and only adds to the `QoS` maps.
pub fn change_vlan(index: u32, data: &Vlan) -> Request {
    let flags = VlanFlags::from_bits_retain(data.vlan_flags);
    let known = VlanFlags::from_bits_retain(0x1f);
    let builder = LinkMessageBuilder::<LinkVlan>::new_with_info_kind(InfoKind::Vlan).index(index);
    change_data(builder.set_info_data(InfoData::Vlan(vec![InfoVlan::Flags((flags, known))])))
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

/// `ip link set addrgenmode`: unlike a write to the sysctl, it adds no address.
pub fn set_addr_gen_mode(index: u32, mode: u8) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    let spec = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(mode.into())]);
    message
        .attributes
        .push(LinkAttribute::AfSpecUnspec(vec![spec]));
    Request {
        message: RouteNetlinkMessage::SetLink(message),
        flags: 0,
    }
}

/// `ip link property add altname`.
pub fn add_altnames(index: u32, names: &[String]) -> Request {
    let props = names.iter().cloned().map(Prop::AltIfName).collect();
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::PropList(props));
    Request {
        message: RouteNetlinkMessage::NewLinkProp(message),
        flags: NLM_F_CREATE | NLM_F_EXCL,
    }
}

/// The index of the link of that name in the socket's namespace. Fails with `ENODEV` when there is none.
pub fn index_of(socket: &mut Socket, name: &IfName) -> Result<u32, Error> {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.as_str().to_owned()));
    match socket.get(&RouteNetlinkMessage::GetLink(message))? {
        RouteNetlinkMessage::NewLink(link) => Ok(link.header.index),
        other => Err(Error::Decode(format!(
            "the answer to RTM_GETLINK is no link: {other:?}"
        ))),
    }
}

/// `ip link del`: only for a link that this run has created.
pub fn del(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request {
        message: RouteNetlinkMessage::DelLink(message),
        flags: 0,
    }
}
