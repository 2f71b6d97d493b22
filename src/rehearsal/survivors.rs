//! What is left of a namespace when devices are lost, and what stands in for the devices: computed from its state alone.

use std::collections::BTreeSet;

use crate::model::net::link::fdb::FdbEntry;
use crate::model::raw_object::{LINK_ELSEWHERE, RawObject};
use crate::model::{IfName, Link, LinkGraph, LinkKind, NetState, Parent, Traffic};

/// Gives the links of a host the indexes that they have in its twin.
pub(super) fn beyond(mut state: NetState) -> NetState {
    for link in &mut state.links {
        if link.kind != LinkKind::Loopback {
            link.index = link.index.saturating_add(Link::FIRST_STAND_IN);
        }
    }
    state
}

/// Gives what the kernel reports of a twin the indexes that the links have in earnest.
pub(super) fn in_earnest(mut twin: Vec<RawObject>) -> Vec<RawObject> {
    for one in &mut twin {
        for name in ["ifindex", LINK_ELSEWHERE] {
            let Some(value) = one.attributes.get_mut(name) else {
                continue;
            };
            let index = value.as_slice().try_into().map_or(0, u32::from_ne_bytes);
            if let Some(index) = index.checked_sub(Link::FIRST_STAND_IN) {
                *value = index.to_ne_bytes().to_vec();
            }
        }
    }
    twin
}

/// The links of the host that a loss of devices takes, or leaves without what is below them.
#[derive(Debug, Default)]
pub(super) struct HostLoss {
    /// All of them, with the devices.
    pub links: BTreeSet<IfName>,
    /// Those that neither stay as they are nor can be made.
    pub unrehearsed: Vec<Link>,
}

impl HostLoss {
    pub(super) fn of(devices: &BTreeSet<IfName>, host: &NetState) -> Self {
        let all = LinkGraph::new(&host.links).changed_with(devices);
        let is_unrehearsed = |link: &&Link| {
            let can_be = link.can_be_made() || is_kept(link) || devices.contains(&link.name);
            all.contains(&link.name) && !can_be
        };
        let unrehearsed = host.links.iter().filter(is_unrehearsed);
        let unrehearsed: Vec<Link> = unrehearsed.cloned().collect();
        let mut links = all;
        links.retain(|name| {
            let link = host.link(name);
            let stays = link.is_some_and(is_kept);
            !stays && unrehearsed.iter().all(|one| one.name != *name)
        });
        Self { links, unrehearsed }
    }
}

/// Whether a link stays with its kind when its ports are lost.
pub(super) fn is_kept(link: &Link) -> bool {
    link.is_bridge() || link.is_vrf()
}

/// The links of a pod that it loses with links of the host.
pub(super) fn lost_in_pod(pod: &NetState, host: &BTreeSet<IfName>) -> BTreeSet<IfName> {
    let on_lost =
        |link: &&Link| matches!(&link.parent, Some(Parent::Host(parent)) if host.contains(parent));
    let below = pod.links.iter().filter(on_lost);
    let mut lost = LinkGraph::new(&pod.links).changed_with(below.map(|link| &link.name));
    let made = pod.links_but_loopback().filter(|link| link.can_be_made());
    let made: BTreeSet<&IfName> = made.map(|link| &link.name).collect();
    lost.retain(|name| made.contains(name));
    lost
}

/// The state without `lost` and what goes with them, and with a stand-in for each other link.
pub(super) fn without(state: &NetState, lost: &BTreeSet<IfName>) -> NetState {
    let stays = |dev: &IfName| !lost.contains(dev);
    let links = state.links.iter().filter(|link| stays(&link.name));
    let mut left = NetState {
        links: links.map(|link| survivor(link, state)).collect(),
        rules: state.rules.clone(),
        ..NetState::default()
    };
    let addresses = state.addresses.iter().filter(|one| stays(&one.dev));
    left.addresses = addresses.cloned().collect();
    let neighbours = state.neighbours.iter().filter(|one| stays(&one.dev));
    left.neighbours = neighbours.cloned().collect();
    let mut dead: BTreeSet<u32> = BTreeSet::new();
    for nexthop in &state.nexthops {
        let is_dead = nexthop.dev.as_ref().is_some_and(|dev| !stays(dev))
            || nexthop.group.iter().any(|one| dead.contains(&one.id));
        if is_dead {
            dead.insert(nexthop.id);
        } else {
            left.nexthops.push(nexthop.clone());
        }
    }
    let of_lost = state.addresses.iter().filter(|one| !stays(&one.dev));
    let of_lost: BTreeSet<_> = of_lost.map(|one| one.local).collect();
    let is_source_lost = |route: &&crate::model::Route| {
        let source = route.prefsrc;
        source.is_some_and(|source| of_lost.contains(&source))
    };
    let routes = state.routes.iter().filter(|route| {
        let is_dead = route.nexthop.is_some_and(|id| dead.contains(&id));
        route.devs().into_iter().all(stays) && !is_dead && !is_source_lost(route)
    });
    left.routes = routes.cloned().collect();
    left
}

/// The link that stands in for one that stays.
fn survivor(link: &Link, state: &NetState) -> Link {
    if link.kind == LinkKind::Loopback {
        return link.clone();
    }
    let master = link.master.as_ref().and_then(|name| state.link(name));
    let master = master.filter(|master| is_kept(master));
    let kept = is_kept(link);
    Link {
        sysctls: link.sysctls.clone(),
        flags: link.flags,
        txqueuelen: link.txqueuelen,
        mtu: link.mtu,
        mac: link.mac,
        index: link.index,
        master: master.map(|master| master.name.clone()),
        vlan_filtering: link.vlan_filtering && kept,
        default_pvid: link.default_pvid.filter(|_| kept),
        ..Link::plain(link.name.clone(), kind(link))
    }
}

fn kind(link: &Link) -> LinkKind {
    if is_kept(link) {
        return link.kind.clone();
    }
    LinkKind::other(Link::STAND_IN)
}

/// The record for a rehearsal: with the stand-ins in the place of devices, and of links that are not `lost`.
pub(super) fn record(
    recorded: &NetState,
    lost: &BTreeSet<IfName>,
    devices: &BTreeSet<IfName>,
) -> NetState {
    let links = recorded.links.iter().map(|link| {
        if devices.contains(&link.name) {
            device(link, recorded)
        } else if lost.contains(&link.name) {
            link.clone()
        } else {
            survivor(link, recorded)
        }
    });
    NetState {
        links: links.collect(),
        sockets: Vec::new(),
        unsupported: Vec::new(),
        ..recorded.clone()
    }
}

/// A device with all that its stand-in can have.
fn device(link: &Link, recorded: &NetState) -> Link {
    let master = link.master.as_ref().and_then(|name| recorded.link(name));
    let takes = |master: &&Link| is_kept(master) || matches!(master.kind, LinkKind::Bond(_));
    let master = master.filter(takes).map(|master| master.name.clone());
    let (port, vlans, fdb, mdb) = match &master {
        Some(_) => (
            link.port.clone(),
            link.vlans.clone(),
            link.fdb.clone(),
            link.mdb.clone(),
        ),
        None => (Vec::new(), None, Vec::<FdbEntry>::new(), Vec::new()),
    };
    Link {
        kind: LinkKind::other(Link::STAND_IN),
        hardware: None,
        nic: None,
        parent: None,
        peer: None,
        qdisc: None,
        traffic: Traffic::default(),
        offload: std::collections::BTreeMap::new(),
        sysfs: std::collections::BTreeMap::new(),
        queues: None,
        master,
        port,
        vlans,
        fdb,
        mdb,
        ..link.clone()
    }
}
