//! Neighbour settings of interfaces (`ip ntable`), under the names of their files in `/proc/sys/net/ipv{4,6}/neigh`.

use std::collections::BTreeMap;

use netlink_packet_core::{NlaBuffer, NlasIterator};
use netlink_packet_route::neighbour_table::{NeighbourTableAttribute, NeighbourTableMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::codec::text;
use crate::kernel::codec::text::NDTA_PARMS;
use crate::kernel::{Error, Socket};
use crate::model::net::link::sysctl::{Settings, SysctlKey};

/// The settings of one family's table by ifindex; those of [`NEW_LINK`] are the initial ones.
pub(crate) type NeighbourSettings = BTreeMap<u32, Settings>;

/// No link's ifindex.
pub(crate) const NEW_LINK: u32 = 0;

/// The settings of these links, in ascending order of their indexes, in both tables of the socket's namespace: IPv4, IPv6.
pub(crate) fn read(
    socket: &mut Socket,
    links: &[u32],
) -> Result<(NeighbourSettings, NeighbourSettings), Error> {
    let request = RouteNetlinkMessage::GetNeighbourTable(NeighbourTableMessage::default());
    let (mut v4, mut v6) = (NeighbourSettings::new(), NeighbourSettings::new());
    for object in socket.dump(request)?.objects {
        let RouteNetlinkMessage::NewNeighbourTable(message) = object else {
            continue;
        };
        let table = match message.header.family {
            AddressFamily::Inet => &mut v4,
            AddressFamily::Inet6 => &mut v6,
            _ => continue,
        };
        for attribute in &message.attributes {
            if let NeighbourTableAttribute::Other(raw) = attribute
                && text::is(raw, NDTA_PARMS)
            {
                let numbers = numbers(&text::stored(raw).value);
                let index = numbers[NDTPA_IFINDEX].unwrap_or_default();
                let index = u32::try_from(index).unwrap_or_default();
                if links.binary_search(&index).is_ok() {
                    table.insert(index, settings(&numbers));
                }
            }
        }
    }
    Ok((v4, v6))
}

/// The highest `NDTPA_*` of [`SETTINGS`].
const LAST: usize = 19;
const NDTPA_IFINDEX: usize = 1;

/// The value of each `NDTPA_*`.
type Numbers = [Option<i64>; LAST + 1];

fn numbers(parameters: &[u8]) -> Numbers {
    let mut numbers = [None; LAST + 1];
    for parameter in NlasIterator::new(parameters).map_while(Result::ok) {
        if let Some(place) = numbers.get_mut(usize::from(parameter.kind())) {
            *place = number(&parameter);
        }
    }
    numbers
}

fn number(parameter: &NlaBuffer<&[u8]>) -> Option<i64> {
    let value = parameter.value();
    let short = value.try_into().map(u32::from_ne_bytes).ok().map(i64::from);
    short.or_else(|| i64::try_from(u64::from_ne_bytes(value.try_into().ok()?)).ok())
}

/// In the kernel times are milliseconds; this is the unit of a file that has another one.
const SECOND: i64 = 1000;
const HUNDREDTH: i64 = 10;

/// The files, in ascending order: name, `NDTPA_*` (linux/neighbour.h) and unit.
const SETTINGS: [(SysctlKey, usize, i64); 14] = [
    (SysctlKey::known("anycast_delay"), 12, HUNDREDTH),
    (SysctlKey::known("app_solicit"), 9, 1),
    (SysctlKey::known("base_reachable_time_ms"), 4, 1),
    (SysctlKey::known("delay_first_probe_time"), 7, SECOND),
    (SysctlKey::known("gc_stale_time"), 6, SECOND),
    (SysctlKey::known("interval_probe_time_ms"), LAST, 1),
    (SysctlKey::known("locktime"), 15, HUNDREDTH),
    (SysctlKey::known("mcast_resolicit"), 17, 1),
    (SysctlKey::known("mcast_solicit"), 11, 1),
    (SysctlKey::known("proxy_delay"), 13, HUNDREDTH),
    (SysctlKey::known("proxy_qlen"), 14, 1),
    (SysctlKey::known("retrans_time_ms"), 5, 1),
    (SysctlKey::known("ucast_solicit"), 10, 1),
    (SysctlKey::known("unres_qlen_bytes"), 16, 1),
];

fn settings(numbers: &Numbers) -> Settings {
    SETTINGS
        .iter()
        .filter_map(|(key, parameter, unit)| Some((*key, numbers[*parameter]? / unit)))
        .collect()
}
