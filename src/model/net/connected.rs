//! The connected route of an address: the one that the kernel adds to the main table with it (`fib_add_ifaddr` in
//! `net/ipv4/fib_frontend.c`, `addrconf_prefix_route` in `net/ipv6/addrconf.c`).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::model::Address;
use crate::model::net::address::NOPREFIXROUTE;
use crate::model::net::route::{PROTOCOL_KERNEL, Route, SCOPE_LINK};

/// `IP6_RT_PRIO_ADDRCONF`: the metric of a connected route of IPv6.
const METRIC: u32 = 256;

impl Address {
    /// The route that the kernel adds with the address to a link that is up; none for a secondary address and for one with
    /// `noprefixroute`.
    pub(crate) fn connected_route(&self) -> Option<Route> {
        if self.flags & NOPREFIXROUTE != 0 || self.is_secondary() {
            return None;
        }
        match (self.subnet()?, self.local) {
            (IpNet::V4(dst), IpAddr::V4(local)) => {
                let is_alone = dst.prefix_len() == 32 && dst.addr() == local;
                let is_zeronet = dst.addr().octets()[0] == Ipv4Addr::UNSPECIFIED.octets()[0];
                let route = Route {
                    scope: SCOPE_LINK,
                    protocol: PROTOCOL_KERNEL,
                    priority: self.metric,
                    prefsrc: Some(local.into()),
                    ..Route::plain(dst, &self.dev)
                };
                (!is_alone && !is_zeronet).then_some(route)
            }
            (IpNet::V6(dst), _) => Some(Route {
                protocol: PROTOCOL_KERNEL,
                priority: Some(self.metric.unwrap_or(METRIC)),
                expires: self.valid_lft.map(Into::into),
                ..Route::plain(dst, &self.dev)
            }),
            (IpNet::V4(_), IpAddr::V6(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::connected::*;

    fn route(address: &str, len: u8, change: impl FnOnce(&mut Address)) -> Option<String> {
        let mut address = Address::plain("eth0".parse().unwrap(), address.parse().unwrap(), len);
        change(&mut address);
        address.connected_route().map(|route| route.to_string())
    }

    #[test]
    fn an_address_connects_to_its_subnet_or_its_peer() {
        let plain = |_: &mut Address| {};
        let of = |text: &str, len| route(text, len, plain);
        assert_eq!(
            of("10.1.0.5", 24).unwrap(),
            "10.1.0.0/24 dev eth0 src 10.1.0.5"
        );
        assert_eq!(of("10.1.0.5", 32), None);
        assert_eq!(of("0.1.0.5", 24), None);
        assert_eq!(
            of("fd10::5", 128).unwrap(),
            "fd10::5/128 dev eth0 metric 256"
        );
        let peer = |address: &mut Address| address.peer = Some("10.2.0.1".parse().unwrap());
        assert_eq!(
            route("10.1.0.5", 32, peer).unwrap(),
            "10.2.0.1/32 dev eth0 src 10.1.0.5"
        );
        let no_route = |address: &mut Address| address.flags = NOPREFIXROUTE;
        assert_eq!(route("10.1.0.5", 24, no_route), None);
    }
}
