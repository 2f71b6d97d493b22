//! What a namespace holds, from all its tables or some, its settings and its qdiscs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread;
use std::time::{Duration, Instant};

use super::dump::{self, HostView};
use super::{Error, Socket, bridging, sriov, traffic};
use crate::kernel::address::{self, connected};
use crate::kernel::conf::{ntable, sysctl};
use crate::kernel::link::{multicast, sockets};
use crate::kernel::route::advertised::AdvertisedRoutes;
use crate::kernel::route::lookup::{Found, Selector, lookup};
use crate::model::net::address::Maker;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::net::route::{PROTOCOL_RA, TABLE_MAIN};
use crate::model::{Address, IfName, Indexed, Link, LinkKind, NetState};

/// What to read besides links, addresses, routes, rules and settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one for each table")]
pub struct Needs {
    groups: bool,
    qdiscs: bool,
    nexthops: bool,
    neighbours: bool,
    forwarding: bool,
    bridging: bool,
    secrets: bool,
    sockets: bool,
    functions: bool,
}

impl Needs {
    /// Everything.
    pub const ALL: Self = Self {
        groups: true,
        qdiscs: true,
        nexthops: true,
        neighbours: true,
        forwarding: true,
        bridging: true,
        secrets: true,
        sockets: true,
        functions: true,
    };

    /// The tables, which may be long.
    pub const TABLES: Self = Self {
        groups: false,
        qdiscs: false,
        nexthops: true,
        neighbours: true,
        forwarding: false,
        bridging: false,
        secrets: false,
        sockets: false,
        functions: false,
    };

    /// Everything in a pod with these links: what programs have on others is not lost with the host's.
    #[must_use]
    pub fn all_in_pod(links: &[Link]) -> Self {
        Self {
            sockets: links.iter().any(Link::is_lost_with_host),
            ..Self::ALL
        }
    }

    /// Everything in the twin of a pod: no program is in it, and only a pod that has a secret gives it one. To read the file of one
    /// competes for the lock under which the kernel changes links.
    #[must_use]
    pub fn all_in_twin(of: &[Link]) -> Self {
        let mut settings = of.iter().map(|link| &link.sysctls);
        Self {
            sockets: false,
            secrets: settings.any(|settings| settings.stable_secret.is_some()),
            ..Self::ALL
        }
    }

    /// What must be read to see whether something of this record is missing: what it has nothing of cannot be. Of the links
    /// that are there `now`, one that is up and has another kind of qdisc shows that there is more to read.
    #[must_use]
    pub fn of(recorded: &NetState, now: &[Link]) -> Self {
        if !recorded.unsupported.is_empty() {
            return Self::ALL;
        }
        let (links, then) = (&recorded.links, Indexed::new(recorded));
        Self {
            groups: links.iter().any(|link| !link.groups.is_empty()),
            qdiscs: links.iter().any(|link| !link.traffic.is_empty())
                || now.iter().any(|now| {
                    let then = then.link(&now.name);
                    now.flags.up && then.is_some_and(|then| then.qdisc != now.qdisc)
                }),
            nexthops: !recorded.nexthops.is_empty(),
            neighbours: !recorded.neighbours.is_empty(),
            forwarding: links
                .iter()
                .any(|link| !link.fdb.is_empty() || link.vlans.is_some())
                || !bridging::uplinks_of_several(links).is_empty(),
            bridging: links.iter().any(|link| link.vlans.is_some()),
            secrets: links
                .iter()
                .any(|link| link.sysctls.stable_secret.is_some()),
            // A restore brings back none.
            sockets: false,
            functions: links.iter().any(|link| link.nic.is_some()),
        }
    }
}

/// Everything in the calling thread's namespace, read through a socket of that namespace. An object that the model
/// cannot hold goes to [`NetState::unsupported`].
pub fn whole(socket: &mut Socket, host: Option<HostView<'_>>) -> Result<NetState, Error> {
    let state = links(socket, host)?;
    let needs = match host {
        Some(_) => Needs::all_in_pod(&state.links),
        None => Needs::ALL,
    };
    complete(socket, state, needs)
}

/// The whole state of a namespace whose links were read a moment ago, as far as it is needed. Settings of neighbours that the
/// links already have are not read.
pub fn complete(socket: &mut Socket, links: NetState, needs: Needs) -> Result<NetState, Error> {
    let mut state = routing(socket, links, needs.neighbours)?;
    if needs.groups {
        let mut groups = multicast::joined().map_err(Error::from)?;
        for link in &mut state.links {
            link.groups = groups.remove(&link.index).unwrap_or_default();
        }
    }
    settings(socket, &mut state.links, needs)?;
    if needs.functions {
        sriov::complete(socket, &mut state.links, &mut state.unsupported)?;
    }
    if needs.sockets {
        state.sockets = sockets::read(&state.links, &state.addresses)?;
    }
    if needs.qdiscs {
        traffic::read(socket, &mut state.links)?;
        let redirects = traffic::redirects(&state.links)?;
        state.unsupported.extend(redirects);
    }
    let links = dump::by_index(&state.links);
    let unsupported = &mut state.unsupported;
    if needs.nexthops {
        state.nexthops = dump::nexthops(socket, &links, unsupported)?;
    }
    if needs.forwarding {
        state.learned = bridging::forwarding(socket, &mut state.links, unsupported)?;
    }
    if needs.bridging {
        bridging::read(socket, &mut state.links, unsupported)?;
    }
    Ok(state)
}

/// What decides where packets go, of a namespace whose links were read a moment ago: addresses, routes, rules, and neighbours on request.
pub fn routing(
    socket: &mut Socket,
    links: NetState,
    with_neighbours: bool,
) -> Result<NetState, Error> {
    let mut state = addresses_and_routes(socket, links)?;
    state.rules = dump::rules(socket, &mut state.unsupported)?;
    if with_neighbours {
        neighbours(socket, &mut state)?;
    }
    Ok(state)
}

/// The permanent neighbours of a namespace whose links are known.
pub fn neighbours(socket: &mut Socket, state: &mut NetState) -> Result<(), Error> {
    let links = dump::by_index(&state.links);
    state.neighbours = dump::neighbours(socket, &links, &mut state.unsupported)?;
    Ok(())
}

/// The settings that the dump of links lacks.
fn settings(socket: &mut Socket, links: &mut [Link], needs: Needs) -> Result<(), Error> {
    let mut links: Vec<&mut Link> = links
        .iter_mut()
        .filter(|link| link.kind != LinkKind::Loopback)
        .collect();
    if links
        .iter()
        .any(|link| link.sysctls.neigh4.is_empty() && link.sysctls.neigh6.is_empty())
    {
        let indexes: Vec<u32> = links.iter().map(|link| link.index).collect();
        let (mut table4, mut table6) = ntable::read(socket, &indexes)?;
        for link in &mut links {
            link.sysctls.neigh4 = table4.remove(&link.index).unwrap_or_default();
            link.sysctls.neigh6 = table6.remove(&link.index).unwrap_or_default();
        }
    }
    for link in links {
        sysctl::complete(&mut link.sysctls, &link.name, needs.secrets);
    }
    Ok(())
}

/// The links alone, without what only files or other tables have.
pub fn links(socket: &mut Socket, host: Option<HostView<'_>>) -> Result<NetState, Error> {
    let mut state = NetState::default();
    state.links = dump::links(socket, host, &mut state.unsupported)?;
    Ok(state)
}

/// The links and the addresses alone: what others may claim too.
pub fn links_and_addresses(
    socket: &mut Socket,
    host: Option<HostView<'_>>,
) -> Result<NetState, Error> {
    let state = links(socket, host)?;
    with_addresses(socket, state)
}

/// The links and the addresses alone, of a namespace whose links were read a moment ago.
pub fn with_addresses(socket: &mut Socket, links: NetState) -> Result<NetState, Error> {
    let mut state = links;
    let names = dump::by_index(&state.links);
    state.addresses = dump::addresses(socket, &names, &mut state.unsupported)?;
    Ok(state)
}

/// What decides where packets of a namespace go.
#[derive(Debug, Default)]
pub struct Reach {
    /// Its links, addresses and routes; its rules, if other tables than `main` have gateways.
    pub state: NetState,
    /// The router that IPv6 uses, with the link: it may have come with an advertisement.
    pub router: Option<(IpAddr, IfName)>,
    /// Where a table has more entries than this, and so is not read: the next hops of packets to other networks.
    pub long: Option<(usize, Vec<(IpAddr, IfName)>)>,
}

/// The links, addresses and routes alone: what the namespace reaches.
pub fn links_addresses_and_routes(
    socket: &mut Socket,
    host: Option<HostView<'_>>,
) -> Result<NetState, Error> {
    let state = links(socket, host)?;
    let mut state = addresses_and_routes(socket, state)?;
    let mut routes = state.routes.iter();
    if routes.any(|route| route.nature().1 != TABLE_MAIN && !route.gateways().is_empty()) {
        state.rules = dump::rules(socket, &mut state.unsupported)?;
    }
    Ok(state)
}

/// The router that IPv6 uses for other networks.
pub fn router(socket: &mut Socket, state: &NetState) -> Result<Option<(IpAddr, IfName)>, Error> {
    /// An address of no machine, outside of all that is documentation or local: only a default route leads there.
    const ELSEWHERE: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);
    let is_advertised = |address: &Address| address.maker == Maker::Network;
    let has_ipv6 = |address: &Address| address.local.is_ipv6() && !address.local.is_loopback();
    if !state.addresses.iter().any(has_ipv6) {
        return Ok(None);
    }
    let found = match lookup(socket, ELSEWHERE.into(), Selector::default())? {
        Ok(found) => found,
        // A rule can refuse packets that a router would take.
        Err(_) if state.addresses.iter().any(is_advertised) => {
            let names = dump::by_index(&state.links);
            let routes = dump::routes(socket, &names, &mut Vec::new())?;
            let mut advertised = routes
                .iter()
                .filter(|route| route.is_default() && route.nature().2 == PROTOCOL_RA);
            let hop = advertised.find_map(|route| route.gateways().into_iter().next());
            return Ok(hop.map(|(gateway, dev)| (gateway, dev.clone())));
        }
        Err(_) => return Ok(None),
    };
    Ok(hop(state, found))
}

fn hop(state: &NetState, found: Found) -> Option<(IpAddr, IfName)> {
    let (gateway, index) = found.gateway.zip(found.index)?;
    let link = state.links.iter().find(|link| link.index == index)?;
    Some((gateway, link.name.clone()))
}

/// The next hops of packets to other networks, as far as one lookup of each family shows them.
pub fn next_hops(socket: &mut Socket, state: &NetState) -> Result<Vec<(IpAddr, IfName)>, Error> {
    /// Of no machine (RFC 1112, class E).
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(240, 0, 0, 1);
    let found = lookup(socket, ELSEWHERE.into(), Selector::default())?;
    let of_ipv4 = found.ok().and_then(|found| hop(state, found));
    Ok(of_ipv4.into_iter().chain(router(socket, state)?).collect())
}

/// How often addresses and routes are read, at most, where something may have changed meanwhile.
const READINGS: usize = 4;
/// The pause between readings while the kernel may not have made the routes of a new address.
const NEW_PAUSE: Duration = Duration::from_millis(10);

fn addresses_and_routes(socket: &mut Socket, links: NetState) -> Result<NetState, Error> {
    let mut state = links;
    let names = dump::by_index(&state.links);
    let of_links = state.unsupported.clone();
    let mut before = Default::default();
    let mut left = READINGS;
    let end = Instant::now() + address::NEW;
    while left > 0 {
        state.unsupported.clone_from(&of_links);
        state.addresses = dump::addresses(socket, &names, &mut state.unsupported)?;
        let routes = dump::routes(socket, &names, &mut state.unsupported)?;
        connected::separate(&mut state, routes, AdvertisedRoutes::read).map_err(Error::from)?;
        let doubtful = connected::doubtful(&state);
        if doubtful == before {
            let is_undelivered = doubtful.0.iter().any(|address| address.without_local);
            if !is_undelivered || Instant::now() > end || !dump::has_new_address(socket)? {
                break;
            }
            // A worker of its own adds the route to an IPv6 address, after the request was acknowledged.
            thread::sleep(NEW_PAUSE);
            continue;
        }
        before = doubtful;
        left -= 1;
        // It lists an address a moment before its routes, under the lock that a dump of links needs.
        dump::link_table(socket, &mut Vec::new())?;
    }
    Ok(state)
}

/// The neighbour settings that the kernel gives to every new link of any namespace (`neigh_parms_alloc` copies those of
/// the table, which all namespaces share).
pub fn initial_neighbour_settings(socket: &mut Socket) -> Result<Sysctls, Error> {
    const NEW_LINK: u32 = ntable::NEW_LINK;
    let (mut table4, mut table6) = ntable::read(socket, &[NEW_LINK])?;
    Ok(Sysctls {
        neigh4: table4.remove(&NEW_LINK).unwrap_or_default(),
        neigh6: table6.remove(&NEW_LINK).unwrap_or_default(),
        ..Sysctls::default()
    })
}

/// The initial settings of a new link in the calling thread's namespace.
pub fn new_link_settings(socket: &mut Socket) -> Result<Sysctls, Error> {
    let Sysctls { neigh4, neigh6, .. } = initial_neighbour_settings(socket)?;
    Ok(Sysctls {
        neigh4,
        neigh6,
        ..sysctl::defaults()?
    })
}

/// The state that datagrams describe, as far as they alone do: without what is read from files and by ioctl.
#[cfg(feature = "fuzzing")]
pub fn state_in(datagrams: &[u8]) -> Result<NetState, Error> {
    let answer = || super::codec::decode_dump(datagrams);
    let mut state = NetState::default();
    let unsupported = &mut state.unsupported;
    let raws = dump::links_in(answer()?, unsupported);
    let names: dump::Names = raws
        .iter()
        .map(|raw| (raw.link.index, raw.link.name.clone()))
        .collect();
    let host = HostView {
        id: crate::kernel::netns::nsid::HostId::Known(0),
        names: &names,
    };
    let resolved = raws.into_iter().map(|raw| super::link::RawLink {
        has_hardware: false,
        ..raw
    });
    state.links = resolved
        .map(|raw| super::link::resolve(raw, &names, Some(host)))
        .collect();
    let links = dump::by_index(&state.links);
    state.addresses = dump::addresses_in(answer()?, &links, unsupported);
    let routes = dump::routes_in(answer()?, &links, unsupported);
    state.nexthops = dump::nexthops_in(&answer()?, &links, unsupported);
    state.rules = dump::rules_in(answer()?, unsupported);
    state.neighbours = dump::neighbours_in(answer()?, &links, unsupported);
    bridging::forwarding_in(answer()?, &mut state.links, &mut state.unsupported);
    super::link::vlan_options::words(datagrams);
    bridging::vlans_in(answer()?, &mut state.links, &mut state.unsupported);
    bridging::groups_in(&answer()?, &mut state.links, &mut state.unsupported);
    connected::separate(&mut state, routes, || Ok(AdvertisedRoutes::default()))
        .map_err(Error::from)?;
    traffic::read_from(&mut state.links, |_| answer())?;
    Ok(state)
}
