//! Addresses: which one is primary, in which order they are listed, what is deleted with one.

use std::net::IpAddr;

use ipnet::IpNet;
use netfix::model::net::address::{
    DADFAILED, NODAD, PERMANENT, REQUESTED_FLAGS, TEMPORARY, TENTATIVE,
};
use netfix::model::{Address, IfName};

use super::sysctl::{DISABLE_IPV6, setting};
use super::{Errno, Kernel};

/// `IFA_F_SECONDARY` has the bit of `IFA_F_TEMPORARY`.
const SECONDARY: u32 = TEMPORARY;

impl Kernel {
    pub(super) fn add_address(&mut self, wanted: &Address) -> Result<(), Errno> {
        let link = self.link(&wanted.dev)?;
        let is_v6 = wanted.local.is_ipv6();
        if is_v6 && setting(link, &DISABLE_IPV6) == Some(1) {
            return Err(Errno::EACCES);
        }
        let mut known = self.state.addresses.iter().filter(|a| a.dev == wanted.dev);
        if known.any(|a| a.local == wanted.local && (is_v6 || subnet(a) == subnet(wanted))) {
            return Err(Errno::EEXIST);
        }
        let mut primaries = self.state.addresses.iter().filter(|a| a.dev == wanted.dev);
        let is_secondary = !is_v6 && primaries.any(|a| subnet(a) == subnet(wanted));
        let mut address = wanted.clone();
        (address.without_route, address.without_local) = (false, false);
        address.flags &= REQUESTED_FLAGS;
        let derived = [
            (address.valid_lft.is_none(), PERMANENT),
            (is_secondary, SECONDARY),
            (is_v6 && address.flags & NODAD == 0, TENTATIVE),
        ];
        for (is_set, bit) in derived {
            address.flags |= if is_set { bit } else { 0 };
        }
        if is_v6 {
            self.list_ipv6(address);
        } else {
            self.state.addresses.push(address);
        }
        Ok(())
    }

    /// The newest first, and wider scopes before narrower ones.
    pub(super) fn list_ipv6(&mut self, address: Address) {
        let addresses = &mut self.state.addresses;
        let is_behind = |other: &Address| {
            other.dev == address.dev && other.local.is_ipv6() && other.scope >= address.scope
        };
        let at = addresses
            .iter()
            .position(is_behind)
            .unwrap_or(addresses.len());
        addresses.insert(at, address);
    }

    /// `ip address change`: an IPv4 address keeps everything except its lifetime, metric and protocol.
    pub(super) fn change_address(&mut self, wanted: &Address) -> Result<(), Errno> {
        let mut addresses = self.state.addresses.iter_mut();
        let now = addresses
            .find(|now| now.is_same(wanted))
            .ok_or(Errno::ENOENT)?;
        let derived = now.flags & !REQUESTED_FLAGS & !PERMANENT;
        let forever = if wanted.valid_lft.is_none() {
            PERMANENT
        } else {
            0
        };
        now.valid_lft = wanted.valid_lft;
        now.preferred_lft = wanted.preferred_lft;
        now.metric = wanted.metric;
        now.protocol = wanted.protocol;
        let requested = if wanted.local.is_ipv4() {
            now.flags
        } else {
            wanted.flags
        };
        now.flags = derived | forever | (requested & REQUESTED_FLAGS);
        Ok(())
    }

    pub(super) fn take_ipv6_addresses(&mut self, dev: &IfName) {
        let stays = |address: &Address| address.dev != *dev || address.local.is_ipv4();
        self.state.addresses.retain(stays);
    }

    /// Deletes an address, its secondaries and the routes that have it as their source.
    pub fn delete_address(&mut self, gone: &Address) {
        let is_secondary = |a: &Address| a.local.is_ipv4() && a.flags & SECONDARY != 0;
        let takes_along = !is_secondary(gone) && gone.local.is_ipv4();
        let goes = |a: &Address| {
            a.dev == gone.dev
                && (a.is_same(gone)
                    || (takes_along && is_secondary(a) && subnet(a) == subnet(gone)))
        };
        let (lost, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.state.addresses)
            .into_iter()
            .partition(goes);
        self.state.addresses = kept;
        let has_lost = |source: IpAddr| lost.iter().any(|address| address.local == source);
        self.state
            .routes
            .retain(|route| !route.prefsrc.is_some_and(has_lost));
        self.address_went(&gone.dev);
    }

    pub(super) fn end_detection(&mut self) {
        for address in &mut self.state.addresses {
            if address.flags & DADFAILED == 0 {
                address.flags &= !TENTATIVE;
            }
        }
    }

    /// Whether a connected route that came with an address of the link leads to `target`.
    pub(super) fn is_connected(&self, dev: &IfName, target: IpAddr) -> bool {
        use netfix::model::net::address::NOPREFIXROUTE;
        let mut addresses = self.state.addresses_of(dev);
        addresses.any(|address| {
            address.flags & NOPREFIXROUTE == 0
                && !address.without_route
                && subnet(address).contains(&target)
        })
    }
}

/// The subnet of an address.
pub(super) fn subnet(address: &Address) -> IpNet {
    let far = address.peer.unwrap_or(address.local);
    IpNet::new(far, address.prefix_len)
        .expect("a prefix length of its family")
        .trunc()
}
