//! Ways around what the kernel refuses although it was there before.

use std::net::IpAddr;

use crate::kernel::route::rule;
use crate::kernel::{Errno, Request, address};
use crate::model::net::address::MCAUTOJOIN;
use crate::model::net::route::TABLE_MAIN;
use crate::model::{Address, Bytes, IfName, Link, NetState, Rule};
use crate::plan::NetlinkStep;
use crate::restore::request;

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
        _ => return None,
    };
    let is_of_gateway = matches!(
        errno,
        Errno::EACCES | Errno::EHOSTUNREACH | Errno::EINVAL | Errno::ENETUNREACH | Errno::ESRCH
    );
    let own = request::of(step, true, at).ok().filter(|_| is_of_gateway)?;
    through_rules(own, &gateways, state)
}

/// Requests that are sent at once.
pub(in crate::restore) struct Detour {
    pub requests: Vec<Request>,
    /// The number of the one that carries out the step.
    pub which: usize,
}

/// The kernel's own socket keeps the membership of a deleted link (`ip_mc_autojoin_config`, net/ipv4/devinet.c), and refuses
/// the same ifindex. It leaves the group with the deletion of such an address.
fn autojoin(address: &Address, index: u32) -> Detour {
    let without = Address {
        flags: address.flags & !MCAUTOJOIN,
        ..address.clone()
    };
    Detour {
        requests: vec![
            address::add(index, &without),
            address::del(index, &without),
            address::add(index, address),
        ],
        which: 2,
    }
}

/// Whether a gateway is reachable, the kernel decides by the rules too (`fib_check_nh`, `net/ipv4/fib_semantics.c`), and rules
/// that were added after the route may lead elsewhere. For one send, a rule before all others leads what is bound to the
/// interface to the gateway.
fn through_rules(
    mut own: Vec<Request>,
    gateways: &[(IpAddr, &IfName)],
    state: &NetState,
) -> Option<Detour> {
    if gateways.is_empty() || own.len() != 1 {
        return None;
    }
    let rules: Vec<Rule> = gateways
        .iter()
        .map(|(gateway, dev)| towards(*gateway, dev, state))
        .collect();
    let mut requests: Vec<Request> = rules.iter().map(rule::add).collect();
    requests.append(&mut own);
    requests.extend(rules.iter().map(rule::del));
    Some(Detour {
        requests,
        which: rules.len(),
    })
}

/// The rule that finds the direct route to the gateway, in whichever table that is: a port's of a VRF is in that of the VRF.
fn towards(gateway: IpAddr, dev: &IfName, state: &NetState) -> Rule {
    const TO_TABLE: u8 = 1;
    let length = if gateway.is_ipv4() { 32 } else { 128 };
    let rule = Rule {
        ipv6: gateway.is_ipv6(),
        to: Some((gateway, length)),
        action: TO_TABLE,
        ..Rule::default()
    };
    let master = state.link(dev).and_then(|link| link.master.as_ref());
    if master.is_some_and(|name| state.link(name).is_some_and(Link::is_vrf)) {
        return Rule {
            l3mdev: true,
            ..rule
        };
    }
    let mut routes = state.routes.iter();
    let direct = routes.find_map(|route| route.direct_table(dev, gateway));
    Rule {
        oif: Some(Bytes::from(dev.as_bytes().to_vec())),
        table: direct.unwrap_or(TABLE_MAIN),
        ..rule
    }
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
