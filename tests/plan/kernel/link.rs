//! Links: creation, changes, up and down, and what is deleted with a link.

use netfix::model::net::link::port::PortVlans;
use netfix::model::net::link::sysfs::SysfsSettings;
use netfix::model::net::link::{Flags, Hardware, MacvlanMode, Vlan};
use netfix::model::net::raw::RawAttribute;
use netfix::model::{Bytes, IfName, Link, LinkKind, Mac, NetState, Parent, Traffic};
use netfix::plan::Change;

use super::mtu::IPV6_MTU;
use super::sysctl::{ADDR_GEN_MODE, DISABLE_IPV6, MODE_NONE, setting};
use super::{Errno, Kernel, bond};

/// `VLAN_FLAG_LOOSE_BINDING`.
const LOOSE_BINDING: u32 = 4;

/// Whether a link stays without its lower device, with its ifindex (`IFLA_GRE_LINK` and its like).
pub(super) fn stays(link: &Link) -> bool {
    matches!(
        link.kind.name(),
        "gre" | "ipip" | "sit" | "ip6tnl" | "vti" | "xfrm"
    )
}

impl Kernel {
    pub(super) fn add_link(&mut self, wanted: &Link) -> Result<(), Errno> {
        if self.has_name(wanted.name.as_bytes()) {
            return Err(Errno::EEXIST);
        }
        if self
            .state
            .links
            .iter()
            .any(|link| link.index == wanted.index)
        {
            return Err(Errno::EBUSY);
        }
        let below = self.mtu_below(wanted)?;
        if below.is_some_and(|mtu| wanted.mtu > mtu) {
            return Err(Errno::EINVAL);
        }
        let mac = self.first_mac(wanted)?;
        let kind = match &wanted.kind {
            kind if kind.is_macvlan() || kind.is_ipvlan() => wanted.kind.clone(),
            LinkKind::Vlan(vlan) => {
                self.check_vlan(vlan, wanted)?;
                wanted.kind.clone()
            }
            LinkKind::Bond(bond) => LinkKind::Bond(bond::fresh(bond)),
            kind if wanted.can_be_made() => kind.clone(),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let mut sysctls = self.new_link.clone();
        if let Some(mtu) = sysctls.ipv6.get_mut(&IPV6_MTU) {
            *mtu = wanted.mtu.into();
        }
        let index = match wanted.index {
            0 => self.next_index,
            index => index,
        };
        self.next_index += 1;
        let flags = Flags {
            multicast: true,
            ..Flags::default()
        };
        if wanted.mac.is_none() {
            self.given_no_mac.insert(wanted.name.clone());
        }
        self.state.links.push(Link {
            index,
            mac: Some(mac),
            flags,
            alias: None,
            altnames: Vec::new(),
            group: 0,
            qdisc: None,
            traffic: Traffic::default(),
            master: None,
            broadcast: None,
            groups: Vec::new(),
            sysfs: SysfsSettings::new(),
            protodown: false,
            dormant: false,
            token: None,
            kind,
            sysctls,
            ..wanted.clone()
        });
        Ok(())
    }

    /// A driver's device appears: down, and without addresses.
    pub fn add_device(&mut self, name: &IfName, hardware: Option<Hardware>, mac: Option<Mac>) {
        let index = self.next_index;
        self.next_index += 1;
        let flags = Flags {
            multicast: true,
            ..Flags::default()
        };
        self.state.links.push(Link {
            index,
            mac,
            hardware,
            flags,
            sysctls: self.new_link.clone(),
            ..Link::plain(name.clone(), LinkKind::Physical)
        });
    }

    /// Deletes a link and everything on it.
    pub fn delete_link(&mut self, name: &IfName) {
        let on_it = Some(Parent::Own(name.clone()));
        let index = self.state.link(name).map_or(0, |link| link.index);
        let mut links = self.state.links.iter_mut();
        for tunnel in links
            .by_ref()
            .filter(|link| link.parent == on_it && stays(link))
        {
            tunnel.parent = None;
            if let LinkKind::Other { data, .. } = &mut tunnel.kind {
                let value = index.to_ne_bytes().to_vec();
                data.push(RawAttribute { number: 1, value });
            }
        }
        let stands_on = |link: &&Link| link.parent == on_it;
        let upper: Vec<IfName> = self
            .state
            .links
            .iter()
            .filter(stands_on)
            .map(|link| link.name.clone())
            .collect();
        for name in upper {
            self.delete_link(&name);
        }
        for port in self
            .state
            .links
            .iter_mut()
            .filter(|port| port.master.as_ref() == Some(name))
        {
            port.master = None;
        }
        for port in &mut self.state.links {
            port.backup_port.take_if(|backup| backup == name);
        }
        let NetState {
            links,
            addresses,
            routes,
            advertised: _,
            nexthops,
            rules: _, // They find their interface by its name.
            neighbours,
            sockets,
            ways: _,
            learned: _,
            unsupported: _,
        } = &mut self.state;
        links.retain(|link| link.name != *name);
        addresses.retain(|address| address.dev != *name);
        routes.retain(|route| !route.devs().contains(&name));
        nexthops.retain(|nexthop| nexthop.dev.as_ref() != Some(name));
        neighbours.retain(|neighbour| neighbour.dev != *name);
        sockets.retain(|socket| socket.dev.as_ref() != Some(name));
        self.given_no_mac.remove(name);
        self.wanted_primary.remove(name);
        self.forget_missing_ports();
    }

    fn has_name(&self, name: &[u8]) -> bool {
        let mut links = self.state.links.iter();
        links.any(|link| {
            let mut others = link.altnames.iter().map(Bytes::as_slice);
            link.name.as_bytes() == name || others.any(|other| other == name)
        })
    }

    /// The MTU of the link's parent.
    pub(super) fn mtu_below(&self, link: &Link) -> Result<Option<u32>, Errno> {
        match (&link.kind, &link.parent) {
            (LinkKind::Bond(_), None) => Ok(None),
            (_, Some(Parent::Own(name))) => {
                let parent = self.link(name)?;
                // A bond's port has a receive handler already, and a macvlan needs one.
                if matches!(link.kind, LinkKind::Macvlan(_)) && parent.master.is_some() {
                    return Err(Errno::EBUSY);
                }
                Ok(Some(parent.mtu))
            }
            (_, Some(Parent::Host(name))) => {
                Ok(Some(self.host.get(name).ok_or(Errno::ENODEV)?.mtu))
            }
            (_, Some(Parent::Elsewhere) | None) => Err(Errno::EINVAL),
        }
    }

    fn first_mac(&self, wanted: &Link) -> Result<Mac, Errno> {
        let random = Mac([0xda, 0, 0, 0, 0, self.next_index.to_be_bytes()[3]]);
        match (&wanted.kind, &wanted.parent, wanted.mac) {
            (_, _, Some(mac)) => Ok(mac),
            (LinkKind::Vlan(_), Some(Parent::Own(parent)), None) => {
                self.link(parent)?.mac.ok_or(Errno::EADDRNOTAVAIL)
            }
            _ => Ok(random),
        }
    }

    fn check_vlan(&self, vlan: &Vlan, wanted: &Link) -> Result<(), Errno> {
        let is_same = |link: &Link| {
            link.parent == wanted.parent
                && matches!(&link.kind, LinkKind::Vlan(other)
                    if (other.id, other.protocol) == (vlan.id, vlan.protocol))
        };
        if self.state.links.iter().any(is_same) {
            return Err(Errno::EEXIST);
        }
        Ok(())
    }

    pub(super) fn set_link(&mut self, dev: &IfName, change: &Change) -> Result<(), Errno> {
        match change {
            Change::Up => return self.up(dev),
            Change::Down => return self.down(dev),
            Change::Mac(mac) => return self.set_mac(dev, *mac),
            Change::Mtu(mtu) => return self.set_mtu(dev, *mtu),
            Change::Master(bond) => return self.enslave(dev, bond),
            Change::BondOption(option, value) => {
                return self.set_bond_option(dev, *option, *value);
            }
            Change::BackupPort(port) => {
                let master = self.link(port)?.master.clone();
                let link = self.link_mut(dev)?;
                if master.is_none() || link.master != master {
                    return Err(Errno::EINVAL);
                }
                link.backup_port = Some(port.clone());
            }
            Change::BondPrimary(port) => {
                self.link(port)?;
                self.bond_mut(dev)?;
                self.wanted_primary.insert(dev.clone(), port.clone());
                self.forget_missing_ports();
            }
            Change::BondLists(lists) => {
                let bond = self.bond_mut(dev)?;
                bond.arp_ip_target.clone_from(&lists.arp_ip_target);
                bond.ns_ip6_target.clone_from(&lists.ns_ip6_target);
                bond.ad_actor_system = lists.ad_actor_system;
            }
            Change::Function(index, setting) => {
                return self.set_function(dev, *index, *setting);
            }
            Change::Name(name) => return self.rename(dev, name),
            Change::Altnames(names) => {
                if names.iter().any(|name| self.has_name(name.as_slice())) {
                    return Err(Errno::EEXIST);
                }
                let known = &mut self.link_mut(dev)?.altnames;
                known.extend(names.iter().cloned());
            }
            Change::TxQueueLen(length) => self.link_mut(dev)?.txqueuelen = *length,
            Change::Offload(limits) => {
                let known = &mut self.link_mut(dev)?.offload;
                known.extend(limits.iter().copied());
            }
            Change::ProtoDown => self.link_mut(dev)?.protodown = true,
            Change::Dormant => self.link_mut(dev)?.dormant = true,
            Change::Token(token) => self.link_mut(dev)?.token = Some(*token),
            Change::AddVlans(vlans) => {
                let known = &mut self.link_mut(dev)?.vlans;
                let now = known.as_deref().ok_or(Errno::EOPNOTSUPP)?;
                *known = Some(PortVlans::with(now, vlans));
            }
            Change::DeleteVlans(vlans) => {
                let known = &mut self.link_mut(dev)?.vlans;
                let now = known.as_deref().ok_or(Errno::EOPNOTSUPP)?;
                *known = Some(PortVlans::without(now, vlans));
            }
            Change::Port(settings) | Change::BondPort(settings) => {
                let port = &mut self.link_mut(dev)?.port;
                port.retain(|now| settings.iter().all(|new| new.number != now.number));
                port.extend(settings.iter().cloned());
                port.sort_by_key(|setting| setting.number);
            }
            Change::Broadcast(mac) => {
                let is_usual = mac.0 == [0xff; 6];
                self.link_mut(dev)?.broadcast = Some(*mac).filter(|_| !is_usual);
            }
            Change::Group(group) => self.link_mut(dev)?.group = *group,
            Change::Alias(alias) => self.link_mut(dev)?.alias = Some(alias.clone()),
            Change::Flags(_, to) => {
                let flags = &mut self.link_mut(dev)?.flags;
                let (up, carrier) = (flags.up, flags.carrier);
                *flags = Flags { up, carrier, ..*to };
            }
            Change::Kind(wanted) => match (&mut self.link_mut(dev)?.kind, wanted) {
                (LinkKind::Macvlan(now), LinkKind::Macvlan(wanted)) => {
                    let is_passthru = |mode| mode == MacvlanMode::Passthru;
                    if is_passthru(now.mode) != is_passthru(wanted.mode) {
                        return Err(Errno::EINVAL);
                    }
                    *now = wanted.clone();
                }
                (LinkKind::Vlan(now), LinkKind::Vlan(wanted)) => {
                    now.vlan_flags = wanted.vlan_flags;
                }
                _ => return Err(Errno::EOPNOTSUPP),
            },
            Change::Lower { link, parent } => {
                self.link(parent)?;
                let tunnel = self.link_mut(dev)?;
                tunnel.parent = Some(Parent::Own(parent.clone()));
                tunnel.kind = link.kind.clone();
                if let LinkKind::Other { data, .. } = &mut tunnel.kind {
                    // `IFLA_GRE_LINK`, `IFLA_IPTUN_LINK`, `IFLA_VTI_LINK`.
                    data.retain(|raw| raw.number != 1);
                }
            }
            Change::AddrGenMode(mode) => self.set_addr_gen_mode(dev, *mode)?,
        }
        Ok(())
    }

    fn up(&mut self, dev: &IfName) -> Result<(), Errno> {
        let link = self.link(dev)?;
        if link.flags.up {
            return Ok(());
        }
        let below = match &link.parent {
            Some(Parent::Own(parent)) => Some(self.link(parent)?),
            _ => None,
        };
        match &link.kind {
            LinkKind::Vlan(vlan)
                if below.is_some_and(|below| !below.flags.up)
                    && vlan.vlan_flags & LOOSE_BINDING == 0 =>
            {
                return Err(Errno::ENETDOWN);
            }
            LinkKind::Macvlan(_) if self.is_mac_taken(link, below) => {
                return Err(Errno::EADDRINUSE);
            }
            _ => {}
        }
        self.link_mut(dev)?.flags.up = true;
        // VLANs follow.
        for vlan in self.bound_vlans(dev) {
            self.up(&vlan)?;
        }
        Ok(())
    }

    /// Whether another macvlan that is up on the same parent, or the parent itself, has this MAC.
    fn is_mac_taken(&self, link: &Link, below: Option<&Link>) -> bool {
        let is_rival = |other: &&Link| {
            other.name != link.name
                && other.flags.up
                && other.parent == link.parent
                && matches!(other.kind, LinkKind::Macvlan(_))
        };
        let rivals = self.state.links.iter().filter(is_rival);
        rivals.chain(below).any(|other| other.mac == link.mac)
    }

    fn bound_vlans(&self, parent: &IfName) -> Vec<IfName> {
        let is_bound = |link: &&Link| {
            link.parent == Some(Parent::Own(parent.clone()))
                && matches!(&link.kind, LinkKind::Vlan(vlan) if vlan.vlan_flags & LOOSE_BINDING == 0)
        };
        let links = self.state.links.iter().filter(is_bound);
        links.map(|link| link.name.clone()).collect()
    }

    pub fn down(&mut self, dev: &IfName) -> Result<(), Errno> {
        let flags = &mut self.link_mut(dev)?.flags;
        (flags.up, flags.carrier) = (false, false);
        let state = &mut self.state;
        state.routes.retain(|route| !route.devs().contains(&dev));
        state.neighbours.retain(|neighbour| neighbour.dev != *dev);
        self.take_ipv6_addresses(dev);
        for vlan in self.bound_vlans(dev) {
            self.down(&vlan)?;
        }
        Ok(())
    }

    fn set_mac(&mut self, dev: &IfName, mac: Mac) -> Result<(), Errno> {
        let link = self.link(dev)?;
        let is_other = |other: &&Link| {
            other.name != link.name && other.parent == link.parent && other.flags.up
        };
        let is_macvlan = matches!(link.kind, LinkKind::Macvlan(_)) && link.flags.up;
        if is_macvlan
            && self
                .state
                .links
                .iter()
                .filter(is_other)
                .any(|other| other.mac == Some(mac))
        {
            return Err(Errno::EADDRINUSE);
        }
        self.given_no_mac.remove(dev);
        self.mac_is_now(dev, mac)
    }

    /// A VLAN whose MAC was not set follows its parent.
    pub(super) fn mac_is_now(&mut self, dev: &IfName, mac: Mac) -> Result<(), Errno> {
        self.link_mut(dev)?.mac = Some(mac);
        let follows = |link: &&Link| {
            link.parent == Some(Parent::Own(dev.clone())) && self.given_no_mac.contains(&link.name)
        };
        let upper: Vec<IfName> = self
            .state
            .links
            .iter()
            .filter(follows)
            .map(|link| link.name.clone())
            .collect();
        upper.iter().try_for_each(|name| self.mac_is_now(name, mac))
    }
}

/// Whether the link has IPv6 and the kernel makes a link-local address for it.
pub(super) fn makes_link_local(link: &Link) -> bool {
    setting(link, &DISABLE_IPV6) == Some(0)
        && setting(link, &ADDR_GEN_MODE) != Some(MODE_NONE)
        && link.flags.up
        && link.flags.carrier
        && link.master.is_none()
}
