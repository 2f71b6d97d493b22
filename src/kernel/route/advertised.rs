//! Which routes the kernel has made from the advertisements of a router: no message tells, a file does.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use crate::model::net::route::{KIND_UNICAST, PROTOCOL_KERNEL, PROTOCOL_RA};
use crate::model::{Bytes, IfName, Route};

/// The IPv6 routes of the calling thread's namespace (`ipv6_route_seq_show` in `net/ipv6/ip6_fib.c`).
const FILE: &str = "/proc/thread-self/net/ipv6_route";
/// `RTF_ADDRCONF`: the kernel has it from an advertisement. A request cannot set it.
const ADVERTISED: u32 = 0x0004_0000;

/// The routes of routers, each by destination, gateway, metric and interface.
#[derive(Debug, Default)]
pub(crate) struct AdvertisedRoutes(HashSet<Row>);

type Row = (Ipv6Addr, u8, Ipv6Addr, u32, IfName);

impl AdvertisedRoutes {
    /// Reads those of the calling thread's namespace.
    pub(in crate::kernel) fn read() -> io::Result<Self> {
        let mut bytes = Vec::new();
        match File::open(FILE) {
            // A kernel without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => drop(file?.read_to_end(&mut bytes)?),
        }
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(Self(lines.filter_map(row).collect()))
    }

    /// Whether it is one of them.
    pub(in crate::kernel) fn has(&self, route: &Route) -> bool {
        row_of(route).is_some_and(|row| self.0.contains(&row))
    }
}

/// Whether a router may have it made: IPv6, unicast, over one interface.
pub(in crate::kernel) fn may_be(route: &Route) -> bool {
    row_of(route).is_some()
}

fn row_of(route: &Route) -> Option<Row> {
    let IpNet::V6(dst) = route.dst else {
        return None;
    };
    let is_candidate =
        route.kind == KIND_UNICAST && matches!(route.protocol, PROTOCOL_RA | PROTOCOL_KERNEL);
    match route.hops().as_slice() {
        [(gateway, Some(dev))] if is_candidate => {
            let gateway = match gateway {
                Some(IpAddr::V6(gateway)) => *gateway,
                _ => Ipv6Addr::UNSPECIFIED,
            };
            let metric = route.priority.unwrap_or_default();
            Some((
                dst.addr(),
                dst.prefix_len(),
                gateway,
                metric,
                (*dev).clone(),
            ))
        }
        _ => None,
    }
}

/// A line is destination, its length, source, its length, gateway, metric, references, uses, flags, interface; numbers are
/// hexadecimal. A name may have any bytes but white space.
fn row(line: &[u8]) -> Option<Row> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let mut next = || words.next();
    let mut text = || std::str::from_utf8(next()?).ok();
    let address = |text: &str| u128::from_str_radix(text, 16).ok().map(Ipv6Addr::from);
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let dst = address(text()?)?;
    let len = u8::try_from(number(text()?)?).ok()?;
    let (_source, _length) = (text()?, text()?);
    let gateway = address(text()?)?;
    let metric = number(text()?)?;
    let (_references, _uses) = (text()?, text()?);
    let flags = number(text()?)?;
    let dev = IfName::try_from(Bytes::from(next()?.to_vec())).ok()?;
    (flags & ADVERTISED != 0).then_some((dst, len, gateway, metric, dev))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                           fe80000000000000021b54fffe000001 00000400 00000001 00000000 00450003     eth0";

    #[test]
    fn a_route_of_a_router_is_known_by_its_flag() {
        let gateway = "fe80::21b:54ff:fe00:1".parse().unwrap();
        let dev = "eth0".parse().unwrap();
        let of_router = (Ipv6Addr::UNSPECIFIED, 0, gateway, 1024, dev);
        assert_eq!(row(DEFAULT.as_bytes()), Some(of_router));
        let by_program = DEFAULT.replace("00450003", "00400003");
        assert_eq!(row(by_program.as_bytes()), None);
        assert_eq!(row(b""), None);
    }
}
