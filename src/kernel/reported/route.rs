//! Routes and nexthop objects.

use std::collections::{BTreeSet, HashMap};

use super::attributes::{Collected, index, value};
use crate::kernel::admission;
use crate::kernel::dump::Names;
use crate::model::IfName;
use crate::model::fidelity::{HOP, METRIC, NEXTHOP, RESILIENT, ROUTE};
use crate::model::raw_object::{RawKind, RawObject, RawRoute};

/// `struct rtmsg` and `struct nhmsg` in bytes.
const ROUTE_HEADER: usize = 12;
const NEXTHOP_HEADER: usize = 8;
/// `RTA_*` (`linux/rtnetlink.h`).
const DST: u16 = 1;
const OIF: u16 = 4;
const PRIORITY: u16 = 6;
const PREFSRC: u16 = 7;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHEINFO: u16 = 12;
const TABLE: u16 = 15;
/// `NHA_*` (`linux/nexthop.h`).
const ID: u16 = 1;
const NEXTHOP_OIF: u16 = 5;
const RES_GROUP: u16 = 12;
/// `RTNH_F_ONLINK` and `RTNH_F_PERVASIVE`: the other flags are states.
const HOP_FLAGS: u32 = 0x4 | 0x2;
/// `AF_INET6` (`linux/socket.h`).
const INET6: u8 = 10;

/// A route.
pub(super) fn read(body: &[u8], names: &Names) -> Option<RawObject> {
    let [
        family,
        length,
        source_length,
        tos,
        table,
        protocol,
        scope,
        kind,
    ] = *body.get(..8)?
    else {
        return None;
    };
    let flags = index(body.get(8..ROUTE_HEADER)?);
    if !admission::is_route(family.into(), flags) {
        return None;
    }
    let attributes = &body[ROUTE_HEADER..];
    let mut route = Collected::default();
    for (name, value) in [
        ("rtm_src_len", source_length),
        ("rtm_protocol", protocol),
        ("rtm_scope", scope),
        ("rtm_type", kind),
    ] {
        route.add_field(name, value.into());
    }
    route.add_field("rtm_flags", flags & HOP_FLAGS);
    route.table(&ROUTE, names, attributes, special);
    let table = value(attributes, TABLE).map_or(table.into(), index);
    let prefix = value(attributes, DST).and_then(|value| admission::ip(family.into(), value));
    let to = match prefix {
        Some(to) => format!("{to}/{length}"),
        None => "default".to_owned(),
    };
    let metric = value(attributes, PRIORITY).map_or(0, index);
    let ipv6 = if family == INET6 { " -6" } else { "" };
    let tos = if tos == 0 {
        String::new()
    } else {
        format!(" tos {tos}")
    };
    Some(RawObject {
        what: RawKind::Route,
        name: format!("route{ipv6} {to}{tos} table {table} metric {metric}"),
        devs: route.devs,
        source: value(attributes, PREFSRC).and_then(|value| admission::ip(family.into(), value)),
        route: Some(RawRoute {
            to: prefix,
            table,
            protocol,
            kind,
            is_ipv6: family == INET6,
        }),
        attributes: route.attributes,
    })
}

fn special(route: &mut Collected, names: &Names, name: &str, number: u16, value: &[u8]) -> bool {
    match number {
        OIF => route.add_own(name, names, index(value)),
        METRICS => route.plain(&METRIC, "", value),
        MULTIPATH => hops(route, names, value),
        // `rta_expires` alone is set, and counts down.
        CACHEINFO => {
            let is_limited = value.get(8..12).map(index).unwrap_or_default() != 0;
            route.add_field("expires", is_limited.into());
        }
        _ => return false,
    }
    true
}

/// `struct rtnexthop` with attributes behind each.
fn hops(route: &mut Collected, names: &Names, mut bytes: &[u8]) {
    const HOP_HEADER: usize = 8;
    let mut number = 0;
    while let [low, high, flags, weight, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some(hop) = bytes.get(..length).filter(|hop| hop.len() >= HOP_HEADER) else {
            return;
        };
        let prefix = format!("nexthop {number} ");
        route.add_own(&format!("{prefix}dev"), names, index(&hop[4..HOP_HEADER]));
        route.add_field(&format!("{prefix}weight"), weight.into());
        let flags = u32::from(flags) & HOP_FLAGS;
        route.add_field(&format!("{prefix}flags"), flags);
        route.plain(&HOP, &prefix, &hop[HOP_HEADER..]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        number += 1;
    }
}

/// A nexthop object.
pub(super) fn nexthop(body: &[u8], names: &Names) -> Option<RawObject> {
    let [family, _, protocol, ..] = *body else {
        return None;
    };
    let flags = index(body.get(4..NEXTHOP_HEADER)?);
    let attributes = &body[NEXTHOP_HEADER..];
    let mut nexthop = Collected::default();
    nexthop.add_field("nh_family", family.into());
    nexthop.add_field("nh_protocol", protocol.into());
    nexthop.add_field("nh_flags", flags & HOP_FLAGS);
    nexthop.table(&NEXTHOP, names, attributes, special_nexthop);
    let id = value(attributes, ID).map_or(0, index);
    Some(RawObject {
        what: RawKind::Nexthop,
        name: nexthop_name(id),
        devs: nexthop.devs,
        source: None,
        route: None,
        attributes: nexthop.attributes,
    })
}

/// Adds to each group the links of its members: it goes with them.
pub(super) fn add_links_of_members(nexthops: &mut [RawObject]) {
    let devs = |one: &RawObject| (one.name.clone(), one.devs.clone());
    let devs: HashMap<String, BTreeSet<IfName>> = nexthops.iter().map(devs).collect();
    for group in nexthops {
        // `struct nexthop_grp` (`linux/nexthop.h`).
        let members = group.attributes.get("NHA_GROUP").map(Vec::as_slice);
        let members = members.unwrap_or_default().chunks_exact(8);
        let names = members.map(|member| nexthop_name(index(&member[..4])));
        let links = names.filter_map(|name| devs.get(&name)).flatten();
        group.devs.extend(links.cloned());
    }
}

fn nexthop_name(id: u32) -> String {
    format!("nexthop id {id}")
}

fn special_nexthop(
    nexthop: &mut Collected,
    names: &Names,
    name: &str,
    number: u16,
    value: &[u8],
) -> bool {
    match number {
        NEXTHOP_OIF => nexthop.add_own(name, names, index(value)),
        RES_GROUP => nexthop.plain(&RESILIENT, "", value),
        _ => return false,
    }
    true
}
