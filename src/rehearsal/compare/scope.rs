//! What of a namespace is compared with its twin: neither what stays, nor what the network, the carrier or a daemon brings to one of
//! them alone.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::Side;
use crate::model::loss::is_of_daemon;
use crate::model::net::address::{MANAGETEMPADDR, Maker, TEMPORARY};
use crate::model::net::route::{KIND_UNICAST, PROTOCOL_KERNEL, PROTOCOL_RA};
use crate::model::raw_object::{RawKind, RawObject, RawRoute};
use crate::model::{Address, IfName, NetState, Route};
use crate::plan::{DaemonState, routers};

/// `RT_TABLE_LOCAL` and `RTN_ANYCAST` (`linux/rtnetlink.h`).
const TABLE_LOCAL: u32 = 255;
const ANYCAST: u8 = 4;
/// `IFF_UP` (`linux/if.h`).
const UP: u8 = 0x1;
/// Settings of a link that an advertisement of a router changes.
const ADVERTISED_CONF: [&str; 2] = ["ipv6/conf/hop_limit", "ipv6/conf/mtu"];
/// What is compared.
pub(super) struct ComparedScope<'a> {
    pub lost: &'a BTreeSet<IfName>,
    pub devices: &'a BTreeSet<IfName>,
    /// What becomes of what daemons own and the twin lacks.
    pub daemons: DaemonState,
    /// The addresses of the lost links: routes with such a source go with them.
    lost_sources: BTreeSet<IpAddr>,
    /// Addresses that the kernel is still probing: its own routes to them come later.
    passing: BTreeSet<IpAddr>,
    /// Addresses that the network gave: a router brings them, and no twin has one.
    given: BTreeSet<(IfName, IpAddr)>,
    /// Where routes lead that look like those of a router, and are not: the kernel or a program brings them without one.
    own: BTreeSet<(IfName, Option<IpAddr>)>,
    /// Links that accept what routers advertise.
    pub listening: BTreeSet<&'a IfName>,
    /// Links that are held down: what is link-local on them comes when the carrier of the link below changes.
    held: BTreeSet<&'a IfName>,
}

impl<'a> ComparedScope<'a> {
    pub fn new(
        real: Side<'a>,
        twin: &NetState,
        lost: &'a BTreeSet<IfName>,
        devices: &'a BTreeSet<IfName>,
        daemons: DaemonState,
    ) -> Self {
        let state = real.state;
        let held = state.links.iter().filter(|link| link.protodown);
        let listening = state.links.iter();
        let listening = listening.filter(|link| routers::listens(&link.sysctls.ipv6));
        let addresses = state.addresses.iter();
        let of_lost = addresses.clone().filter(|one| lost.contains(&one.dev));
        let probed = addresses.chain(&twin.addresses);
        let probed = probed.filter(|one| one.is_in_detection() || one.has_failed_detection());
        Self {
            lost,
            devices,
            daemons,
            lost_sources: of_lost.map(|one| one.local).collect(),
            passing: probed.map(|one| one.local).collect(),
            given: given(real),
            own: own(state),
            listening: listening.map(|link| &link.name).collect(),
            held: held.map(|link| &link.name).collect(),
        }
    }

    /// Whether an object goes with the lost links.
    pub fn has(&self, one: &RawObject) -> bool {
        let source = one.source.filter(|_| one.what == RawKind::Route);
        one.devs.iter().any(|dev| self.lost.contains(dev))
            || source.is_some_and(|source| self.lost_sources.contains(&source))
    }

    /// Whether it is a stand-in, or comes with the end of duplicate address detection.
    pub fn is_left_out(&self, one: &RawObject) -> bool {
        let is_own = |route: RawRoute| {
            let is_anycast =
                route.kind == ANYCAST && !(self.passing.is_empty() && self.given.is_empty());
            let mut to = route.to.into_iter();
            let is_own = route.is_ipv6 && route.table == TABLE_LOCAL;
            is_own && (is_anycast || to.any(|to| self.passing.contains(&to)))
        };
        match one.what {
            RawKind::Link => one.devs.iter().any(|dev| self.devices.contains(dev)),
            RawKind::Route => one.route.is_some_and(is_own),
            RawKind::Address | RawKind::Nexthop | RawKind::Neighbour => false,
        }
    }

    /// Whether it comes with a change of carrier.
    pub fn is_of_carrier(&self, one: &RawObject) -> bool {
        let to = match one.what {
            RawKind::Address => one.source,
            RawKind::Route => one.route.and_then(|route| route.to),
            RawKind::Link | RawKind::Nexthop | RawKind::Neighbour => None,
        };
        let is_of_link =
            matches!(to, Some(IpAddr::V6(to)) if to.is_unicast_link_local() || to.is_multicast());
        is_of_link && one.devs.iter().any(|dev| self.held.contains(dev))
    }

    /// Whether the network brings what a twin lacks: the address, or a route that the kernel made with it or from an advertisement.
    pub fn is_of_network(&self, one: &RawObject) -> bool {
        let is_given = |dev: &IfName, to: IpAddr| self.given.contains(&(dev.clone(), to));
        one.devs.iter().any(|dev| match (one.what, one.route) {
            (RawKind::Address, _) => one.source.is_some_and(|local| is_given(dev, local)),
            (RawKind::Route, Some(route)) if route.is_ipv6 => {
                let is_own = || self.own.contains(&(dev.clone(), route.to));
                let is_of_address = route.to.is_some_and(|to| is_given(dev, to));
                is_of_address || may_be_advertised(route) && !is_own()
            }
            _ => false,
        })
    }

    /// Whether a restore leaves it to its daemon.
    pub fn is_left_to_daemon(&self, one: &RawObject) -> bool {
        let of = |name: &str| {
            one.attributes
                .get(name)
                .and_then(|value| value.first())
                .copied()
        };
        let protocol = match one.what {
            RawKind::Route => one.route.map(|route| route.protocol),
            RawKind::Nexthop => of("nh_protocol"),
            RawKind::Neighbour => of("NDA_PROTOCOL"),
            RawKind::Address => of("IFA_PROTO"),
            RawKind::Link => None,
        };
        self.daemons == DaemonState::Leave && protocol.is_some_and(is_of_daemon)
    }

    /// The attributes that must be equal: neither what the next advertisement of a router sets, nor the queue of a link that is down,
    /// which it gets anew once it is up.
    pub fn attributes<'b>(
        &self,
        one: &'b RawObject,
    ) -> impl Iterator<Item = (&'b String, &'b [u8])> {
        let flags = one.attributes.get("flags").and_then(|flags| flags.first());
        let is_down = one.what == RawKind::Link && flags.is_none_or(|flags| flags & UP == 0);
        let listens = one.devs.iter().any(|dev| self.listening.contains(dev));
        let is_route = one.route.is_some_and(may_be_advertised);
        let attributes = one.attributes.iter().filter(move |(name, _)| {
            let name = name.as_str();
            !(is_down && name == "IFLA_QDISC"
                || listens && ADVERTISED_CONF.contains(&name)
                || is_route && name == "expires")
        });
        attributes.map(|(name, value)| (name, value.as_slice()))
    }
}

/// Whether the kernel makes such a route from an advertisement: to a prefix, or over the router.
fn may_be_advertised(route: RawRoute) -> bool {
    let is_made = matches!(route.protocol, PROTOCOL_KERNEL | PROTOCOL_RA);
    let is_link_local =
        matches!(route.to, Some(IpAddr::V6(to)) if to.is_unicast_link_local() || to.is_multicast());
    route.is_ipv6 && route.kind == KIND_UNICAST && is_made && !is_link_local
}

/// The addresses that the network gave. The kernel marks those that came after the state was read too.
fn given(real: Side<'_>) -> BTreeSet<(IfName, IpAddr)> {
    let addresses = real.state.addresses.iter();
    let (known, mut given): (BTreeSet<_>, BTreeSet<_>) = (
        addresses.clone().map(|one| (&one.dev, one.local)).collect(),
        addresses
            .filter(|one| one.maker == Maker::Network)
            .map(|one| (one.dev.clone(), one.local))
            .collect(),
    );
    for one in real
        .reported
        .iter()
        .filter(|one| one.what == RawKind::Address)
    {
        let flags = one.attributes.get("IFA_FLAGS").map(Vec::as_slice);
        let flags = flags.and_then(|flags| flags.try_into().ok());
        let is_marked = flags.map_or(0, u32::from_ne_bytes) & (TEMPORARY | MANAGETEMPADDR) != 0;
        if let (Some(dev), Some(local @ IpAddr::V6(_))) = (one.devs.first(), one.source)
            && is_marked
            && !known.contains(&(dev, local))
        {
            given.insert((dev.clone(), local));
        }
    }
    given
}

/// Where routes lead that come with an address of no router, or that a program added.
fn own(state: &NetState) -> BTreeSet<(IfName, Option<IpAddr>)> {
    let addresses = state.addresses.iter();
    let addresses = addresses.filter(|one| one.maker != Maker::Network);
    let connected = addresses.filter_map(Address::connected_route);
    let is_like = |route: &&Route| {
        let (_, _, protocol) = route.nature();
        route.is_ipv6() && matches!(protocol, PROTOCOL_KERNEL | PROTOCOL_RA)
    };
    let added = state.routes.iter().filter(is_like);
    let targets = |route: &Route| {
        let to = route.destination();
        let to = (to.prefix_len() != 0).then(|| to.addr());
        let devs = route.devs().into_iter().cloned();
        devs.map(|dev| (dev, to)).collect::<Vec<_>>()
    };
    let connected = connected.flat_map(|route| targets(&route));
    connected.chain(added.flat_map(targets)).collect()
}
