//! Bonds: their options, and the state of their ports.

use netfix::model::net::link::bond::{Bond, BondOption};
use netfix::model::net::link::port::{MdbEntry, PortVlans};
use netfix::model::net::raw::RawAttribute;
use netfix::model::{IfName, Link, LinkKind, Mac, Parent};

use super::{Errno, Kernel};

impl Kernel {
    pub(super) fn enslave(&mut self, port: &IfName, bond: &IfName) -> Result<(), Errno> {
        let (device, master) = (self.link(port)?, self.link(bond)?);
        let is_parent_of_macvlan = |link: &Link| {
            link.parent == Some(Parent::Own(port.clone()))
                && matches!(link.kind, LinkKind::Macvlan(_))
        };
        match &master.kind {
            LinkKind::Bond(_)
                if device.master.is_some() || self.state.links.iter().any(is_parent_of_macvlan) =>
            {
                return Err(Errno::EBUSY);
            }
            LinkKind::Bond(_) if device.flags.up => return Err(Errno::EPERM),
            LinkKind::Bond(_) => {}
            LinkKind::Other { .. } => return self.add_bridge_port(port, bond),
            _ => return Err(Errno::EOPNOTSUPP),
        }
        let (own, bonds, mtu) = (device.mac, master.mac, master.mtu);
        let is_first = !self
            .state
            .links
            .iter()
            .any(|link| link.master.as_ref() == Some(bond));
        if is_first && self.given_no_mac.remove(bond) {
            self.mac_is_now(bond, own.ok_or(Errno::EOPNOTSUPP)?)?;
        } else if let Some(mac) = bonds {
            self.mac_is_now(port, mac)?;
        }
        let device = self.link_mut(port)?;
        device.master = Some(bond.clone());
        device.mtu = mtu;
        device.flags.up = true;
        self.enslaved.push(port.clone());
        self.forget_missing_ports();
        Ok(())
    }

    /// A group needs a bridge that is up, and its VLAN.
    pub(super) fn add_group(
        &mut self,
        bridge: &IfName,
        port: &IfName,
        entry: &MdbEntry,
    ) -> Result<(), Errno> {
        if !self.link(bridge)?.flags.up {
            return Err(Errno::EINVAL);
        }
        let device = self.link_mut(port)?;
        if device.master.as_ref() != Some(bridge) {
            return Err(Errno::EINVAL);
        }
        device.mdb.push(entry.clone());
        device.mdb.sort();
        Ok(())
    }

    /// A port gets the initial cost and the default VLAN, and a bridge without a MAC that of its first port.
    fn add_bridge_port(&mut self, port: &IfName, bridge: &IfName) -> Result<(), Errno> {
        const COST: u16 = 3;
        let device = self.link_mut(port)?;
        device.master = Some(bridge.clone());
        device.port = vec![RawAttribute {
            number: COST,
            value: vec![2, 0, 0, 0],
        }];
        let mac = device.mac;
        let given = self.link(bridge)?.default_pvid.map(|id| PortVlans {
            first: id,
            last: id,
            pvid: true,
            untagged: true,
        });
        self.link_mut(port)?.vlans = given.map(|given| vec![given]);
        let has_mac = self.link(bridge)?.mac.is_some_and(|mac| mac != Mac([0; 6]));
        match mac.filter(|_| !has_mac) {
            Some(mac) => self.mac_is_now(bridge, mac),
            None => Ok(()),
        }
    }

    pub(super) fn bond_mut(&mut self, dev: &IfName) -> Result<&mut Bond, Errno> {
        match &mut self.link_mut(dev)?.kind {
            LinkKind::Bond(bond) => Ok(bond),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    pub(super) fn set_bond_option(
        &mut self,
        dev: &IfName,
        option: BondOption,
        value: u32,
    ) -> Result<(), Errno> {
        let options = &mut self.bond_mut(dev)?.options;
        let needs_miimon = matches!(option, BondOption::Updelay | BondOption::Downdelay);
        if needs_miimon
            && options
                .get(&BondOption::Miimon)
                .is_none_or(|miimon| *miimon == 0)
        {
            return Err(Errno::EPERM);
        }
        options.insert(option, value);
        Ok(())
    }

    /// A bond shows its preferred port only while it has that port.
    pub(super) fn forget_missing_ports(&mut self) {
        let ports: Vec<_> = self
            .state
            .links
            .iter()
            .map(|link| (link.name.clone(), link.master.clone()))
            .collect();
        for link in &mut self.state.links {
            let LinkKind::Bond(bond) = &mut link.kind else {
                continue;
            };
            let wanted = self
                .wanted_primary
                .get(&link.name)
                .or(bond.primary.as_ref())
                .cloned();
            bond.primary =
                wanted.filter(|port| ports.contains(&(port.clone(), Some(link.name.clone()))));
        }
    }
}

/// A new bond: only its mode is set.
pub(super) fn fresh(wanted: &Bond) -> Bond {
    let initial = |option: &BondOption| match option {
        BondOption::UseCarrier
        | BondOption::NumPeerNotif
        | BondOption::ResendIgmp
        | BondOption::LpInterval
        | BondOption::PacketsPerSlave
        | BondOption::TlbDynamicLb
        | BondOption::AdLacpActive => 1,
        BondOption::ArpMissedMax => 2,
        BondOption::AdActorSysPrio => 65535,
        _ => 0,
    };
    Bond {
        mode: wanted.mode,
        options: wanted
            .options
            .keys()
            .map(|option| (*option, initial(option)))
            .collect(),
        ..Bond::default()
    }
}
