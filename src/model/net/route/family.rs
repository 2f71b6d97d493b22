//! From the stored form of a route, which has addresses of either family, to a route of one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::model::net::limits;
use crate::model::net::route::{Hop, Route, RouteOf};

/// The destination shows the family of a stored route. Serde would read the key `family` only after it has copied the route, and
/// a pod may have tens of thousands.
impl TryFrom<RouteOf<IpAddr, IpNet>> for Route {
    type Error = &'static str;

    fn try_from(route: RouteOf<IpAddr, IpNet>) -> Result<Self, Self::Error> {
        const MIXED: &str = "a route of two families";
        const TOO_MANY: &str = "more next hops than fit into one attribute of netlink";
        let (hops, gateway) = (route.hops.len(), route.dst.max_prefix_len() / 8);
        let route = match route.dst {
            IpNet::V4(_) => route.of_family(v4, v4_net).map(Self::V4),
            IpNet::V6(_) => route.of_family(v6, v6_net).map(Self::V6),
        };
        if hops > limits::hops(gateway.into()) {
            return Err(TOO_MANY);
        }
        route.ok_or(MIXED)
    }
}

fn v4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn v6(ip: IpAddr) -> Option<Ipv6Addr> {
    match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(ip),
    }
}

fn v4_net(net: IpNet) -> Option<Ipv4Net> {
    match net {
        IpNet::V4(net) => Some(net),
        IpNet::V6(_) => None,
    }
}

fn v6_net(net: IpNet) -> Option<Ipv6Net> {
    match net {
        IpNet::V4(_) => None,
        IpNet::V6(net) => Some(net),
    }
}

impl RouteOf<IpAddr, IpNet> {
    /// The route, if all its addresses are of one family.
    fn of_family<A, N>(
        self,
        address: fn(IpAddr) -> Option<A>,
        net: fn(IpNet) -> Option<N>,
    ) -> Option<RouteOf<A, N>> {
        let hop = |hop: Hop<IpAddr>| {
            let gateway = match hop.gateway {
                Some(gateway) => Some(address(gateway)?),
                None => None,
            };
            Some(Hop {
                gateway,
                dev: hop.dev,
                onlink: hop.onlink,
                weight: hop.weight,
                via: hop.via,
                extra: hop.extra,
            })
        };
        Some(RouteOf {
            dst: net(self.dst)?,
            src: match self.src {
                Some(src) => Some(net(src)?),
                None => None,
            },
            table: self.table,
            protocol: self.protocol,
            scope: self.scope,
            kind: self.kind,
            tos: self.tos,
            priority: self.priority,
            prefsrc: match self.prefsrc {
                Some(ip) => Some(address(ip)?),
                None => None,
            },
            hops: self.hops.into_iter().map(hop).collect::<Option<_>>()?,
            metrics: self.metrics,
            preference: self.preference,
            congctl: self.congctl,
            extra: self.extra,
            nexthop: self.nexthop,
            expires: self.expires,
        })
    }
}
