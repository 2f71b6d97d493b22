//! The destinations of a namespace's routes. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::model::net::route::TABLE_MAIN;
use crate::model::{Address, NetState, Route};

/// The destinations of routes by table, and the subnets of addresses.
pub(crate) struct Destinations {
    routes: HashSet<(u32, IpNet)>,
    subnets: HashSet<IpNet>,
    /// The lengths of these prefixes.
    lengths: BTreeSet<u8>,
}

impl Destinations {
    pub(crate) fn of<'a>(states: impl Iterator<Item = &'a NetState> + Clone) -> Self {
        let routes = states.clone().flat_map(|state| &state.routes);
        let routes: HashSet<_> = routes
            .map(|route| (route.nature().1, route.destination()))
            .collect();
        let addresses = states.flat_map(|state| &state.addresses);
        let subnets: HashSet<_> = addresses.filter_map(Address::subnet).collect();
        let all = routes.iter().map(|(_, net)| net).chain(&subnets);
        Self {
            lengths: all.map(IpNet::prefix_len).collect(),
            routes,
            subnets,
        }
    }

    /// An address of a route's destination that no narrower route of its table and no subnet covers.
    pub(crate) fn address(&self, net: IpNet, table: u32, gateway: IpAddr) -> Option<IpAddr> {
        /// How many addresses are tried.
        const ATTEMPTS: u32 = 16;
        let is_covered = |ip: IpAddr| {
            let lengths = self.lengths.range(net.prefix_len() + 1..);
            let mut narrower = lengths.filter_map(|length| IpNet::new(ip, *length).ok());
            narrower.any(|net| {
                let net = net.trunc();
                self.routes.contains(&(table, net)) || self.subnets.contains(&net)
            })
        };
        (0..ATTEMPTS)
            .map(|at| address_in(net, at))
            .find(|ip| *ip != gateway && is_unicast(*ip) && !is_covered(*ip))
    }
}

/// The route of the main table that packets to this address take; `None` as well in the subnet of an address.
pub(crate) fn route_to(state: &NetState, to: IpAddr) -> Option<&Route> {
    let subnets = state.addresses.iter().filter_map(Address::subnet);
    let subnets = subnets.filter(|net| net.contains(&to));
    let on_link = subnets.map(|net| net.prefix_len()).max();
    let routes = state.routes.iter();
    let covering = routes.filter(|route| {
        let (net, source, table, tos, _) = route.place();
        let is_plain = table == TABLE_MAIN && source.is_none() && tos == 0;
        is_plain && net.contains(&to) && on_link.is_none_or(|length| net.prefix_len() > length)
    });
    covering.min_by_key(|route| {
        let (net, .., metric) = route.place();
        (Reverse(net.prefix_len()), metric)
    })
}

fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !matches!(ip.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_loopback() && !ip.is_unspecified(),
    }
}

/// One of the addresses of a prefix, spread over it.
pub(crate) fn address_in(net: IpNet, at: u32) -> IpAddr {
    /// 2^32 divided by the golden ratio: multiples of it are far from each other.
    const STEP: u32 = 0x9e37_79b9;
    let host = STEP.wrapping_mul(at + 1);
    match net {
        IpNet::V4(net) => {
            let host = host & u32::from(net.hostmask());
            Ipv4Addr::from(u32::from(net.network()) | host).into()
        }
        IpNet::V6(net) => {
            // Global unicast addresses, if these are in the prefix.
            let global = (0x2u128 << 124) | (u128::from(host) << 64) | 1;
            let host = if net.prefix_len() < 4 {
                global
            } else {
                u128::from(host) << 32 | u128::from(host)
            };
            let host = host & u128::from(net.hostmask());
            Ipv6Addr::from(u128::from(net.network()) | host).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_prefix_are_in_it() {
        for text in [
            "0.0.0.0/0",
            "10.3.0.0/16",
            "10.3.0.1/32",
            "10.3.0.0/31",
            "::/0",
            "fd00:9::/48",
            "fd00::1/128",
        ] {
            let net: IpNet = text.parse().unwrap();
            for at in 0..16 {
                assert!(net.contains(&address_in(net, at)), "{text}");
            }
        }
        let any: IpNet = "::/0".parse().unwrap();
        assert!(
            "2000::/4"
                .parse::<IpNet>()
                .unwrap()
                .contains(&address_in(any, 0))
        );
    }
}
