//! Dumps of the tables of a namespace: links, addresses, routes, nexthop objects, rules, neighbours.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourFlags, NeighbourMessage};
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::codec::{Dump, Undecodable};
use super::link::RawLink;
use super::{Errno, Error, Socket, address, link, route, sriov};
use crate::kernel::address::neighbour;
use crate::kernel::netns::nsid::HostId;
use crate::kernel::route::{nexthop, rule};
use crate::model::net::address::Maker;
use crate::model::net::link::sysctl::GenMode;
use crate::model::{Address, IfName, Link, Mac, Neighbour, Nexthop, Route, Rule};

/// Interface names by ifindex.
pub type Names = BTreeMap<u32, IfName>;

/// How a pod's namespace refers to the host's.
#[derive(Debug, Clone, Copy)]
pub struct HostView<'a> {
    /// The host's nsid in the pod's namespace (`IFLA_LINK_NETNSID`).
    pub id: HostId,
    pub names: &'a Names,
}

/// A multipath route of thousands of hops: no datagram of a dump, which has at most 32 KiB, can hold it, and the kernel ends
/// the dump of its family there (`netlink_dump` in `net/netlink/af_netlink.c`).
const CUT_ROUTES: &str = "routes: a multipath route has too many hops for a netlink message (EMSGSIZE); the kernel lists \
                          neither it nor the routes of its family after it";

/// The links of the calling thread's namespace, in ascending order of their index.
pub fn links(
    socket: &mut Socket,
    host: Option<HostView<'_>>,
    unsupported: &mut Vec<String>,
) -> Result<Vec<Link>, Error> {
    let mut raws = link_table(socket, unsupported)?;
    raws.sort_by_key(|raw| raw.link.index);
    let names: Names = raws
        .iter()
        .map(|raw| (raw.link.index, raw.link.name.clone()))
        .collect();
    let resolved = raws.into_iter();
    let mut links: Vec<Link> = resolved
        .map(|raw| link::resolve(raw, &names, host))
        .collect();
    sriov::identify(&mut links)?;
    Ok(links)
}

pub(super) fn link_table(
    socket: &mut Socket,
    unsupported: &mut Vec<String>,
) -> Result<Vec<RawLink>, Error> {
    let mut request = LinkMessage::default();
    request
        .attributes
        .push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    let request = RouteNetlinkMessage::GetLink(request);
    Ok(links_in(whole(socket, request)?, unsupported))
}

pub(super) fn links_in(dump: Dump, unsupported: &mut Vec<String>) -> Vec<RawLink> {
    let Dump {
        objects,
        undecodable,
        nexthops: _,
        groups: _,
        is_cut: _,
    } = dump;
    let mut links = Vec::with_capacity(objects.len());
    for object in objects {
        if let RouteNetlinkMessage::NewLink(message) = object {
            links.extend(link::parse(message));
        }
    }
    for Undecodable { message, why } in undecodable {
        match link::parse_in_part(&message) {
            Some(link) => links.push(link),
            None => unsupported.push(format!("link: {why}")),
        }
    }
    // The kernel lets no packet pass where a port or its bridge is down, and a spanning tree has its reasons.
    let passing = links.iter().filter(|raw| raw.link.flags.up && !raw.has_stp);
    let passing: BTreeSet<u32> = passing.map(|raw| raw.link.index).collect();
    for RawLink { link, master, .. } in &mut links {
        let is_open = master.is_some_and(|master| passing.contains(&master));
        link.blocked &= link.flags.up && link.flags.carrier && is_open;
    }
    for RawLink { link, flaws, .. } in &links {
        unsupported.extend(
            flaws
                .iter()
                .map(|flaw| format!("link {}: {flaw}", link.name)),
        );
    }
    links
}

/// What a link means to the addresses and routes that refer to it.
#[derive(Debug)]
pub(super) struct LinkFacts {
    name: IfName,
    mac: Option<Mac>,
    /// From what it derives link-local addresses.
    mode: GenMode,
}

/// The links by ifindex.
pub(super) type LinkNames = BTreeMap<u32, LinkFacts>;

/// A dump that has every object.
pub(super) fn whole(socket: &mut Socket, request: RouteNetlinkMessage) -> Result<Dump, Error> {
    let dump = socket.dump(request)?;
    if dump.is_cut {
        return Err(Errno::EMSGSIZE.into());
    }
    Ok(dump)
}

pub(super) fn by_index(links: &[Link]) -> LinkNames {
    links
        .iter()
        .map(|link| {
            let facts = LinkFacts {
                name: link.name.clone(),
                mac: link.mac,
                mode: link.sysctls.gen_mode(),
            };
            (link.index, facts)
        })
        .collect()
}

fn name_of(links: &LinkNames, index: u32) -> Option<IfName> {
    links.get(&index).map(|link| link.name.clone())
}

/// The objects of a dump. What cannot be decoded, and what the model cannot hold, is unsupported.
pub(super) fn parsed<T>(
    dump: Dump,
    what: &str,
    unsupported: &mut Vec<String>,
    parse: impl Fn(RouteNetlinkMessage) -> Result<Option<T>, String>,
) -> Vec<T> {
    let Dump {
        objects,
        undecodable,
        nexthops: _,
        groups: _,
        is_cut: _,
    } = dump;
    let refused = undecodable.into_iter();
    unsupported.extend(refused.map(|one| format!("{what}: {}", one.why)));
    let mut parsed = Vec::with_capacity(objects.len());
    for object in objects {
        match parse(object) {
            Ok(one) => parsed.extend(one),
            Err(why) => unsupported.push(why),
        }
    }
    parsed
}

pub(super) fn addresses(
    socket: &mut Socket,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Result<Vec<Address>, Error> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    Ok(addresses_in(whole(socket, request)?, links, unsupported))
}

/// Whether there is an address of which the kernel may not have made the routes yet.
pub(super) fn has_new_address(socket: &mut Socket) -> Result<bool, Error> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let dump = whole(socket, request)?;
    Ok(dump.objects.iter().any(|object| match object {
        RouteNetlinkMessage::NewAddress(message) => address::is_new(message),
        _ => false,
    }))
}

pub(super) fn addresses_in(
    dump: Dump,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Vec<Address> {
    let read = parsed(dump, "address", unsupported, |object| {
        let RouteNetlinkMessage::NewAddress(message) = object else {
            return Ok(None);
        };
        let link = links.get(&message.header.index);
        Ok(link.and_then(|link| Some((address::parse(&message, &link.name)?, link))))
    });
    let reports =
        address::reports_origin() || read.iter().any(|(address, _)| address.protocol.is_some());
    read.into_iter()
        .map(|(address, link)| {
            let maker = Maker::of(&address, reports, link.mac, link.mode);
            Address { maker, ..address }
        })
        .collect()
}

pub(super) fn routes(
    socket: &mut Socket,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Result<Vec<Route>, Error> {
    let mut read = |family| {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        socket.dump(RouteNetlinkMessage::GetRoute(request))
    };
    let mut dumps = vec![read(AddressFamily::Unspec)?];
    if dumps[0].is_cut {
        // The other family has nothing to do with it. The kernel ends a dump of IPv6 routes alone as if it were whole.
        unsupported.push(CUT_ROUTES.to_owned());
        dumps = vec![read(AddressFamily::Inet)?, read(AddressFamily::Inet6)?];
    }
    let mut routes = Vec::new();
    for dump in dumps {
        routes.extend(routes_in(dump, links, unsupported));
    }
    Ok(routes)
}

pub(super) fn routes_in(
    dump: Dump,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Vec<Route> {
    parsed(dump, "route", unsupported, |object| match object {
        RouteNetlinkMessage::NewRoute(message) => {
            route::parse(&message, |index| name_of(links, index))
        }
        _ => Ok(None),
    })
}

pub(super) fn nexthops(
    socket: &mut Socket,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Result<Vec<Nexthop>, Error> {
    let dump = match socket.dump(nexthop::list()) {
        // Before Linux 5.3.
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(Vec::new()),
        dump => dump?,
    };
    Ok(nexthops_in(&dump, links, unsupported))
}

pub(super) fn nexthops_in(
    dump: &Dump,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Vec<Nexthop> {
    let mut nexthops = Vec::with_capacity(dump.nexthops.len());
    for message in &dump.nexthops {
        match nexthop::parse(message, |index| name_of(links, index)) {
            Ok(nexthop) => nexthops.push(nexthop),
            Err(why) => unsupported.push(why),
        }
    }
    nexthops
}

/// The rules of the socket's namespace; the calling thread must be inside it.
pub fn rules(socket: &mut Socket, unsupported: &mut Vec<String>) -> Result<Vec<Rule>, Error> {
    let request = RouteNetlinkMessage::GetRule(RuleMessage::default());
    Ok(rules_in(whole(socket, request)?, unsupported))
}

pub(super) fn rules_in(dump: Dump, unsupported: &mut Vec<String>) -> Vec<Rule> {
    parsed(dump, "rule", unsupported, |object| match object {
        RouteNetlinkMessage::NewRule(message) => rule::parse(&message),
        _ => Ok(None),
    })
}

pub(super) fn neighbours(
    socket: &mut Socket,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Result<Vec<Neighbour>, Error> {
    let mut neighbours = Vec::new();
    for flags in [NeighbourFlags::empty(), NeighbourFlags::Proxy] {
        let mut request = NeighbourMessage::default();
        request.header.flags = flags;
        let dump = whole(socket, RouteNetlinkMessage::GetNeighbour(request))?;
        neighbours.extend(neighbours_in(dump, links, unsupported));
    }
    Ok(neighbours)
}

pub(super) fn neighbours_in(
    dump: Dump,
    links: &LinkNames,
    unsupported: &mut Vec<String>,
) -> Vec<Neighbour> {
    parsed(dump, "neighbour", unsupported, |object| {
        let RouteNetlinkMessage::NewNeighbour(message) = object else {
            return Ok(None);
        };
        let link = links.get(&message.header.ifindex);
        Ok(link.and_then(|link| neighbour::parse(&message, &link.name, link.mac)))
    })
}
