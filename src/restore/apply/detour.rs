//! Ways around what the kernel refuses although it was there before.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kernel::route::rule;
use crate::kernel::{Errno, Request, address, route};
use crate::model::net::address::MCAUTOJOIN;
use crate::model::net::route::{Position, SCOPE_LINK, SCOPE_UNIVERSE, TABLE_MAIN};
use crate::model::{Address, Bytes, IfName, Link, NetState, Route, Rule};
use crate::plan::{NetlinkStep, OrderedObject};

/// Another way to carry out a step that the kernel refused with `errno`, if there is one.
pub(in crate::restore) fn of(
    step: &NetlinkStep,
    errno: Errno,
    state: &NetState,
    at: impl Fn(&IfName) -> Result<u32, Errno>,
) -> Option<Detour> {
    if let (NetlinkStep::AddAddress(address), Errno::EADDRINUSE) = (step, errno) {
        let index = at(&address.dev).ok()?;
        return (address.flags & MCAUTOJOIN != 0).then(|| autojoin(address, index));
    }
    let gateways = match step {
        NetlinkStep::AddRoute { route, .. } | NetlinkStep::ChangeRoute(route) => route.gateways(),
        NetlinkStep::AddNexthop(nexthop) | NetlinkStep::ChangeNexthop(nexthop) => nexthop
            .gateway
            .zip(nexthop.dev.as_ref())
            .into_iter()
            .collect(),
        NetlinkStep::Rewrite(rewrite) => {
            let routes = rewrite.added.iter().filter_map(OrderedObject::route);
            routes.flat_map(Route::gateways).collect()
        }
        _ => return None,
    };
    let is_of_gateway = matches!(
        errno,
        Errno::EACCES | Errno::EHOSTUNREACH | Errno::EINVAL | Errno::ENETUNREACH | Errno::ESRCH
    );
    // A route that is put in order was there; another one may never have been.
    let was_there = matches!(step, NetlinkStep::Rewrite(_));
    let mut far = gateways
        .iter()
        .filter(|(gateway, dev)| !is_near(*gateway, dev, state));
    let is_possible = is_of_gateway && (was_there || far.next().is_none());
    is_possible.then(|| through_rules(&gateways, state, &at))?
}

/// Whether an address of the link is in a subnet with the gateway, or a route of any table leads to it directly.
fn is_near(gateway: IpAddr, dev: &IfName, state: &NetState) -> bool {
    let mut addresses = state.addresses.iter();
    let mut routes = state.routes.iter();
    addresses.any(|one| one.dev == *dev && one.subnet().is_some_and(|net| net.contains(&gateway)))
        || routes.any(|route| {
            let is_direct = route.gateways().is_empty() && route.devs().contains(&dev);
            is_direct && route.destination().contains(&gateway)
        })
}

/// What is sent with the requests of a step at once.
pub(in crate::restore) struct Detour {
    before: Vec<Request>,
    after: Vec<Request>,
}

impl Detour {
    /// All requests, with those of the step.
    pub(in crate::restore) fn around(self, own: Vec<Request>) -> Vec<Request> {
        let mut all = self.before;
        all.extend(own);
        all.extend(self.after);
        all
    }

    /// The number of requests before those of the step.
    pub(in crate::restore) fn before(&self) -> usize {
        self.before.len()
    }
}

/// The kernel's own socket keeps the membership of a deleted link (`ip_mc_autojoin_config`, net/ipv4/devinet.c), and refuses
/// the same ifindex. It leaves the group with the deletion of such an address.
fn autojoin(address: &Address, index: u32) -> Detour {
    let without = Address {
        flags: address.flags & !MCAUTOJOIN,
        ..address.clone()
    };
    Detour {
        before: vec![address::add(index, &without), address::del(index, &without)],
        after: Vec::new(),
    }
}

/// Whether a gateway is reachable, the kernel decides by the rules too (`fib_check_nh`, `net/ipv4/fib_semantics.c`), and rules
/// that were added after the route may lead elsewhere. For one send, a rule before all others leads what is bound to the
/// interface to the gateway.
fn through_rules(
    gateways: &[(IpAddr, &IfName)],
    state: &NetState,
    at: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Option<Detour> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (gateway, dev) in gateways {
        let (rule, direct) = towards(*gateway, dev, state);
        if let Some(direct) = direct {
            before.push(route::add(&direct, Position::Last, at).ok()?);
            after.push(route::del(&direct, at).ok()?);
        }
        before.push(rule::add(&rule));
        after.push(rule::del(&rule));
    }
    (!before.is_empty()).then_some(Detour { before, after })
}

/// The rule that finds a direct route to the gateway, and that route in a table of its own: another table may have none, or one for
/// other packets alone. A port of a VRF has those of the VRF.
fn towards(gateway: IpAddr, dev: &IfName, state: &NetState) -> (Rule, Option<Route>) {
    const TO_TABLE: u8 = 1;
    let alone = IpNet::from(gateway);
    let rule = Rule {
        ipv6: gateway.is_ipv6(),
        to: Some((gateway, alone.prefix_len())),
        action: TO_TABLE,
        ..Rule::default()
    };
    let master = state.link(dev).and_then(|link| link.master.as_ref());
    if master.is_some_and(|name| state.link(name).is_some_and(Link::is_vrf)) {
        let rule = Rule {
            l3mdev: true,
            ..rule
        };
        return (rule, None);
    }
    let table = spare_table(state);
    let rule = Rule {
        oif: Some(Bytes::from(dev.as_bytes().to_vec())),
        table,
        ..rule
    };
    (rule, Some(direct_route(alone, dev, table)))
}

fn direct_route(to: IpNet, dev: &IfName, table: u32) -> Route {
    let scope = match to {
        IpNet::V4(_) => SCOPE_LINK,
        IpNet::V6(_) => SCOPE_UNIVERSE,
    };
    Route {
        table,
        scope,
        ..Route::plain(to, dev)
    }
}

/// A table without routes.
fn spare_table(state: &NetState) -> u32 {
    let used: HashSet<u32> = state.routes.iter().map(|route| route.nature().1).collect();
    let mut tables = (TABLE_MAIN..u32::MAX).rev();
    tables
        .find(|table| !used.contains(table))
        .unwrap_or(TABLE_MAIN)
}

/// Whether the kernel refused a link because one of this state has its name or index. Before Linux 6.15 it says `EINVAL` where that
/// one has a longer address than a MAC, as a tunnel over IPv6 has (`validate_linkmsg`, `net/core/rtnetlink.c`).
pub(in crate::restore) fn is_taken(errno: Errno, link: &Link, state: &NetState) -> bool {
    let mut links = state.links.iter();
    match errno {
        Errno::EEXIST | Errno::EBUSY => true,
        Errno::EINVAL => links.any(|now| now.index == link.index || now.name == link.name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LinkKind;

    #[test]
    fn an_index_of_a_link_with_a_long_address_is_taken_too() {
        let link = |index| Link {
            index,
            ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
        };
        let tunnel = Link {
            index: 7,
            ..Link::plain("ip6tnl0".parse().unwrap(), LinkKind::other("ip6tnl"))
        };
        let state = NetState {
            links: vec![tunnel],
            ..NetState::default()
        };
        assert!(is_taken(Errno::EINVAL, &link(7), &state));
        assert!(!is_taken(Errno::EINVAL, &link(8), &state));
        assert!(is_taken(Errno::EEXIST, &link(8), &state));
        assert!(!is_taken(Errno::ENODEV, &link(7), &state));
    }
}
