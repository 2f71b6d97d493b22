//! Neighbour settings of interfaces (`ip ntable`), under the names of their files in `/proc/sys/net/ipv{4,6}/neigh`.

use std::collections::BTreeMap;

use netlink_packet_route::neighbour_table::{
    NeighbourTableAttribute, NeighbourTableMessage, NeighbourTableParameter as Parameter,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Error, Socket};
use crate::model::sysctl::{Settings, SysctlKey};

/// The settings of one family's table by ifindex; those of [`NEW_LINK`] are the initial ones.
pub(super) type Table = BTreeMap<u32, Settings>;

/// No link's ifindex.
pub(super) const NEW_LINK: u32 = 0;

/// The settings of these links, in ascending order of their indexes, in both tables of the socket's namespace: IPv4, IPv6.
pub(super) fn read(socket: &mut Socket, links: &[u32]) -> Result<(Table, Table), Error> {
    let request = RouteNetlinkMessage::GetNeighbourTable(NeighbourTableMessage::default());
    let (mut v4, mut v6) = (Table::new(), Table::new());
    for object in socket.dump(request)?.objects {
        let RouteNetlinkMessage::NewNeighbourTable(message) = object else {
            continue;
        };
        let table = match message.header.family {
            AddressFamily::Inet => &mut v4,
            AddressFamily::Inet6 => &mut v6,
            _ => continue,
        };
        for attribute in message.attributes {
            if let NeighbourTableAttribute::Parms(parameters) = attribute {
                let index = parameters.iter().find_map(index).unwrap_or(NEW_LINK);
                if links.binary_search(&index).is_ok() {
                    table.insert(index, parameters.iter().filter_map(setting).collect());
                }
            }
        }
    }
    Ok((v4, v6))
}

fn index(parameter: &Parameter) -> Option<u32> {
    match parameter {
        Parameter::Ifindex(index) => Some(*index),
        _ => None,
    }
}

/// `NDTPA_*` (linux/neighbour.h) in the unit of its file: seconds, milliseconds or hundredths of a second.
fn setting(parameter: &Parameter) -> Option<(SysctlKey, i64)> {
    const SECOND: u64 = 1000;
    const HUNDREDTH: u64 = 10;
    let number = |value: u32| u64::from(value);
    let (name, value) = match parameter {
        Parameter::BaseReachableTime(ms) => ("base_reachable_time_ms", *ms),
        Parameter::RetransTime(ms) => ("retrans_time_ms", *ms),
        Parameter::GcStaletime(ms) => ("gc_stale_time", ms / SECOND),
        Parameter::DelayProbeTime(ms) => ("delay_first_probe_time", ms / SECOND),
        Parameter::IntervalProbeTimeMs(ms) => ("interval_probe_time_ms", *ms),
        Parameter::AnycastDelay(ms) => ("anycast_delay", ms / HUNDREDTH),
        Parameter::ProxyDelay(ms) => ("proxy_delay", ms / HUNDREDTH),
        Parameter::Locktime(ms) => ("locktime", ms / HUNDREDTH),
        Parameter::AppProbes(count) => ("app_solicit", number(*count)),
        Parameter::UcastProbes(count) => ("ucast_solicit", number(*count)),
        Parameter::McastProbes(count) => ("mcast_solicit", number(*count)),
        Parameter::McastReprobes(count) => ("mcast_resolicit", number(*count)),
        Parameter::ProxyQlen(length) => ("proxy_qlen", number(*length)),
        Parameter::QueueLenbytes(bytes) => ("unres_qlen_bytes", number(*bytes)),
        _ => return None,
    };
    Some((SysctlKey::known(name), i64::try_from(value).ok()?))
}
