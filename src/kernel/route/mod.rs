//! Routes: between rtnetlink messages and the model (`ip route`).

pub(crate) mod advertised;
pub mod lookup;
pub mod nexthop;
mod read;
pub mod rule;
mod write;

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteAddress;

use crate::kernel::Errno;
use crate::model::IfName;

pub(super) use read::parse;
pub use write::{add, change, del};

/// The ifindex of an interface.
pub type IndexOf<'a> = &'a dyn Fn(&IfName) -> Result<u32, Errno>;

/// An IP family; the type keeps addresses of both families apart.
trait Family: Sized + Copy + Hash + Into<IpAddr> {
    type Net: Copy;
    const UNSPECIFIED: Self;
    const FAMILY: AddressFamily;
    fn from_route(address: &RouteAddress) -> Option<Self>;
    fn into_route(self) -> RouteAddress;
    fn net(self, len: u8) -> Option<Self::Net>;
    fn split(net: Self::Net) -> (Self, u8);
}

macro_rules! family {
    ($address:ident, $net:ident, $variant:ident) => {
        impl Family for $address {
            type Net = $net;
            const UNSPECIFIED: Self = $address::UNSPECIFIED;
            const FAMILY: AddressFamily = AddressFamily::$variant;

            fn from_route(address: &RouteAddress) -> Option<Self> {
                match address {
                    RouteAddress::$variant(ip) => Some(*ip),
                    _ => None,
                }
            }

            fn into_route(self) -> RouteAddress {
                RouteAddress::$variant(self)
            }

            fn net(self, len: u8) -> Option<$net> {
                $net::new(self, len).ok()
            }

            fn split(net: $net) -> (Self, u8) {
                (net.addr(), net.prefix_len())
            }
        }
    };
}

family!(Ipv4Addr, Ipv4Net, Inet);
family!(Ipv6Addr, Ipv6Net, Inet6);
