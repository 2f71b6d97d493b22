//! Routes: the conditions under which the kernel accepts one.

use std::net::IpAddr;

use ipnet::IpNet;
use netfix::model::net::address::TENTATIVE;
use netfix::model::net::route::Position;
use netfix::model::{Address, IfName, Route};

use super::{Errno, Kernel};

impl Kernel {
    pub(super) fn add_route(&mut self, wanted: &Route, position: Position) -> Result<(), Errno> {
        self.check(wanted)?;
        self.check_reference(wanted)?;
        if let Some(address) = self.without_route(wanted) {
            address.without_route = false;
            return Ok(());
        }
        let routes = &mut self.state.routes;
        if routes.contains(wanted) {
            return Err(Errno::EEXIST);
        }
        let is_rival = |other: &Route| other.shares_place_with(wanted);
        let first = routes.iter().position(is_rival);
        match (routes.iter().rposition(is_rival), position) {
            (Some(_), Position::Only) => return Err(Errno::EEXIST),
            // Several IPv6 routes in one place are one route with several hops.
            (Some(at), _) if wanted.is_ipv6() => {
                routes[at].hops.extend(wanted.hops.iter().cloned());
            }
            (Some(at), Position::Last) => routes.insert(at + 1, wanted.clone()),
            (Some(_), Position::First) => {
                routes.insert(first.unwrap_or_default(), wanted.clone());
            }
            (None, _) => routes.push(wanted.clone()),
        }
        Ok(())
    }

    /// `ip route replace`.
    pub(super) fn change_route(&mut self, wanted: &Route) -> Result<(), Errno> {
        self.check(wanted)?;
        let mut routes = self.state.routes.iter_mut();
        let now = routes.find(|other| other.shares_place_with(wanted));
        *now.ok_or(Errno::ENOENT)? = wanted.clone();
        Ok(())
    }

    pub(super) fn delete_route(&mut self, gone: &Route) -> Result<(), Errno> {
        let mut addresses = self.state.addresses.iter_mut();
        let is_listed = self.state.routes.contains(gone);
        let connected = addresses.find(|address| !is_listed && connects(address, gone));
        if let Some(address) = connected.filter(|address| !address.without_route) {
            address.without_route = true;
            return Ok(());
        }
        let before = self.state.routes.len();
        self.state.routes.retain(|route| route != gone);
        let is_gone = self.state.routes.len() < before;
        if is_gone { Ok(()) } else { Err(Errno::ESRCH) }
    }

    /// The address whose connected route this is, and is missing.
    fn without_route(&mut self, route: &Route) -> Option<&mut Address> {
        let mut addresses = self.state.addresses.iter_mut();
        addresses.find(|address| address.without_route && connects(address, route))
    }

    fn check(&self, route: &Route) -> Result<(), Errno> {
        for hop in &route.hops {
            let dev = hop.dev.as_ref().ok_or(Errno::ENODEV)?;
            if !self.link(dev)?.flags.up {
                return Err(Errno::ENETDOWN);
            }
            let Some(gateway) = hop.gateway else {
                continue;
            };
            if self.has_address(gateway) {
                return Err(Errno::EINVAL);
            }
            if !hop.onlink && !self.reaches(dev, gateway, route) {
                return Err(if route.is_ipv6() {
                    Errno::EHOSTUNREACH
                } else {
                    Errno::ENETUNREACH
                });
            }
        }
        let Some(source) = route.prefsrc else {
            return Ok(());
        };
        let mut addresses = self.state.addresses.iter();
        match addresses.find(|address| address.local == source) {
            None => Err(Errno::EINVAL),
            Some(address) if route.is_ipv6() && address.flags & TENTATIVE != 0 => {
                Err(Errno::TENTATIVE)
            }
            Some(_) => Ok(()),
        }
    }

    fn has_address(&self, target: IpAddr) -> bool {
        self.state
            .addresses
            .iter()
            .any(|address| address.local == target)
    }

    /// The kernel accepts a gateway only if a route of a narrower scope leads to it through the same link.
    fn reaches(&self, dev: &IfName, gateway: IpAddr, route: &Route) -> bool {
        let is_link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let leads_there = |other: &Route| {
            let mut hops = other.hops.iter();
            let is_direct = hops.any(|hop| hop.gateway.is_none() && hop.dev.as_ref() == Some(dev));
            is_direct
                && (route.is_ipv6() || other.scope > route.scope)
                && other.dst.contains(&gateway)
        };
        is_link_local
            || self.is_connected(dev, gateway)
            || self.state.routes.iter().any(leads_there)
    }

    /// The kernel deletes all IPv4 routes of a link with its last IPv4 address.
    pub(super) fn address_went(&mut self, dev: &IfName) {
        let has_ipv4 = self
            .state
            .addresses_of(dev)
            .any(|address| address.local.is_ipv4());
        if !has_ipv4 {
            let stays = |route: &Route| route.is_ipv6() || !route.devs().contains(&dev);
            self.state.routes.retain(stays);
        }
    }
}

/// Whether it is the connected route of the address: of the kernel, in the main table.
fn connects(address: &Address, route: &Route) -> bool {
    const NATURE: (u32, u8) = (254, 2);
    (route.table, route.protocol) == NATURE
        && route.hops[0].gateway.is_none()
        && route.devs() == [&address.dev]
        && super::address::subnet(address) == route.dst
}

/// The place of a route in the tables; the kernel tries routes in the same place in order.
pub(super) fn place(route: &Route) -> (bool, u32, IpNet, u8, Option<u32>) {
    let (table, dst) = (route.table, route.dst);
    (route.is_ipv6(), table, dst, route.tos, route.priority)
}
