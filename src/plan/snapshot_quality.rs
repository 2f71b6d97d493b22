//! What a snapshot is worth: whether the moment is a bad one to write things down, and what no checkpoint could bring
//! back.

use crate::model::net::address::MCAUTOJOIN;
use crate::model::net::traffic::LostTraffic;
use crate::model::problem::SnapshotCause;
use crate::model::text::escape;
use crate::model::{Address, Hardware, IfName, Indexed, Link, LinkKind, NetState, Parent, Problem};
use crate::plan::link_diff;

/// What a pod has lost since its good checkpoint: a whole link, its being up, or all its addresses.
#[must_use]
pub fn loss(good: &NetState, now: &NetState) -> Option<String> {
    let (then, now) = (Indexed::new(good), Indexed::new(now));
    let has_addresses = |state: &Indexed<'_>, link: &Link| {
        let given = |address: &&Address| !address.comes_by_itself();
        state.addresses_of(&link.name).iter().any(given)
    };
    let is_lost = |link: &Link| {
        is_gone(link, now.link(&link.name))
            || (has_addresses(&then, link) && !has_addresses(&now, link))
    };
    first_link(good, is_lost)
}

fn is_gone(link: &Link, now: Option<&Link>) -> bool {
    now.is_none_or(|now| link.flags.up && !now.flags.up)
}

fn first_link(state: &NetState, is_it: impl Fn(&Link) -> bool) -> Option<String> {
    let mut links = state
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Loopback);
    links.find(|link| is_it(link)).map(what)
}

/// A link as messages call it that was lost.
#[must_use]
pub fn what(link: &Link) -> String {
    format!("{} {}", link.kind.name(), link.name)
}

/// What a driver reload would take from a pod and netfix could not restore.
#[must_use]
pub fn unsupported_in_pod(state: &NetState) -> Vec<Problem> {
    let ports = ports(state, |link| link.kind.can_be_made());
    let ports = ports.map(|(link, cause)| cause.error(link));
    let all = unsupported(state).into_iter().chain(ports);
    all.chain(traffic(state, |link| link.kind.can_be_made()))
        .chain(devices_inside(state))
        .chain(memberships(state))
        .collect()
}

/// Addresses of IPv6 groups with `autojoin` on links that are lost with the host's. For IPv4 there is a way
/// (`restore/detour.rs`): the kernel lets such an address be added without autojoin, and IPv6 does not (`ipv6_add_addr`).
fn memberships(state: &NetState) -> impl Iterator<Item = Problem> {
    let is_lost = |dev: &IfName| state.link(dev).is_some_and(Link::is_on_host);
    let joined = state.addresses.iter().filter(move |address| {
        address.local.is_ipv6() && address.flags & MCAUTOJOIN != 0 && is_lost(&address.dev)
    });
    joined.map(|address| SnapshotCause::MembershipStays.error(format!("address {address}")))
}

/// The links and other objects of a namespace that netfix could not restore.
fn unsupported(state: &NetState) -> Vec<Problem> {
    let links = state
        .links
        .iter()
        .filter_map(|link| Some(lost_for_good(link)?.error(named(link))));
    let others = state
        .unsupported
        .iter()
        .map(|what| SnapshotCause::CannotBeRestored.error(escape(what)));
    links.chain(others).collect()
}

fn lost_for_good(link: &Link) -> Option<SnapshotCause> {
    match (&link.kind, &link.parent) {
        (LinkKind::Loopback, _) => None,
        (_, Some(Parent::Elsewhere)) => Some(SnapshotCause::OnThirdNamespace),
        (kind, Some(_)) if !kind.can_be_made() => Some(SnapshotCause::KindCannotBeMade),
        _ => None,
    }
}

/// The parts of traffic control that netfix could not restore, of the links that are lost.
fn traffic(state: &NetState, is_lost: impl Fn(&Link) -> bool) -> Vec<Problem> {
    let links = state.links.iter().filter(|link| is_lost(link));
    let parts = links.flat_map(|link| link.traffic.lost.iter().map(move |lost| (link, lost)));
    let problem = |(link, lost): (&Link, &LostTraffic)| {
        let what = escape(&lost.what);
        let cause = if lost.is_program {
            SnapshotCause::ProgramCannotBeRestored { what }
        } else {
            SnapshotCause::TrafficCannotBeRestored { what }
        };
        cause.error(named(link))
    };
    parts.map(problem).collect()
}

fn named(link: &Link) -> String {
    format!("{} {}", link.kind.name(), link.name)
}

/// A device inside a pod goes with its driver and comes back in the host's namespace, where it must be recognised.
fn devices_inside(state: &NetState) -> impl Iterator<Item = Problem> {
    let is_known = |link: &Link| link.hardware.as_ref().is_some_and(Hardware::is_known);
    let devices = state.links.iter();
    let devices = devices.filter(move |link| link.kind == LinkKind::Physical && !is_known(link));
    devices.map(|link| SnapshotCause::DeviceInPod.error(format!("physical {}", link.name)))
}

/// The same for the host, where it is a warning: no pod is lost by it.
#[must_use]
pub fn unsupported_on_host(state: &NetState) -> Vec<Problem> {
    let can_be_port = |link: &Link| link.kind.can_be_lost();
    let ports = ports(state, can_be_port);
    let ports = ports.map(|(link, cause)| cause.warning(link));
    let others = unsupported(state).into_iter();
    let others = others.chain(traffic(state, can_be_port));
    others.map(Problem::demoted).chain(ports).collect()
}

/// The ports of a master to which netfix cannot add one, among the links that `can_be_port`.
fn ports(
    state: &NetState,
    can_be_port: impl Fn(&Link) -> bool,
) -> impl Iterator<Item = (&IfName, SnapshotCause)> {
    let index = Indexed::new(state);
    let links = state.links.iter().filter(move |link| can_be_port(link));
    links.filter_map(move |link| {
        let master = link.master.clone()?;
        let can_be_added = index.link(&master).is_some_and(Link::takes_ports)
            || link_diff::is_bond_port(link, &index);
        (!can_be_added).then_some((&link.name, SnapshotCause::PortCannotBeRestored { master }))
    })
}
