//! What a snapshot is worth: whether the moment is a bad one to write things down, and what no checkpoint could bring
//! back.

use std::collections::BTreeSet;

use crate::model::net::link::lower::WithoutLower;
use crate::model::net::link::nic::NicGroup;
use crate::model::problem::{PlanCause, SnapshotCause};
use crate::model::text::{escape, join};
use crate::model::{
    Address, Hardware, IfName, Indexed, Link, LinkGraph, LinkKind, NetState, Parent, Problem,
};
use crate::plan::link::port;

pub use crate::plan::verdict::host_loss::{host_loss, host_losses, missing_nic, silent_below_host};
pub(crate) use crate::plan::verdict::host_loss::{remade, renumbered};
pub use crate::plan::verdict::loss::{BesideState, chain_loss, loss, pod_loss, uplink_loss};

/// What a driver reload would take from a pod and netfix could not restore.
#[must_use]
pub fn unsupported_in_pod(state: &NetState) -> Vec<Problem> {
    let can_be_made = |link: &Link| link.can_be_made();
    unsupported(state)
        .into_iter()
        .chain(ports(state, can_be_made).map(|(link, cause)| cause.error(link)))
        .chain(traffic(state, can_be_made, OwnerRule::Ignored))
        .chain(devices_inside(state))
        .chain(data_center_bridging(state, false))
        .chain(memberships(state))
        .chain(held_down(state))
        .collect()
}

/// Links that are held down: the carrier of the link below raises them all the same (`netif_stacked_transfer_operstate`,
/// `net/core/dev.c`), and may have done so before.
fn held_down(state: &NetState) -> impl Iterator<Item = Problem> {
    let held = state
        .links
        .iter()
        .filter(|link| link.protodown && link.flags.up && link.is_on_host());
    held.map(|link| SnapshotCause::HeldDown.info(link.title()))
}

/// The addresses that are not usable because another machine has them: a restore adds each, and the kernel probes it then.
#[must_use]
pub fn duplicates(state: &NetState) -> Vec<Problem> {
    let addresses = state.addresses.iter();
    addresses
        .filter(|one| one.has_failed_detection())
        .map(|one| PlanCause::DuplicateAddress.warning(one))
        .collect()
}

/// What was added to ports of the host's bridges that are ends of pairs: it survives the loss of a NIC, and is not recorded.
#[must_use]
pub fn of_pairs(host: &NetState) -> Vec<Problem> {
    let of_port = |link: &Link| {
        let entries = link.fdb.iter().filter(|entry| entry.master).count();
        let numbers = [(entries, "bridge fdb"), (link.mdb.len(), "bridge mdb")];
        let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
        let what = join(
            numbers.map(|(number, of)| format!("{number} in {of}")),
            ", ",
        );
        (!what.is_empty()).then(|| SnapshotCause::PairNotRecorded { what }.info(&link.name))
    };
    let pairs = host.links.iter().filter(|link| link.is_pair());
    pairs.filter_map(of_port).collect()
}

/// Addresses of IPv6 groups with `autojoin` on links that are lost with the host's. For IPv4 there is a way
/// (`restore/detour.rs`): the kernel lets such an address be added without autojoin, and IPv6 does not (`ipv6_add_addr`).
fn memberships(state: &NetState) -> impl Iterator<Item = Problem> {
    let links = Indexed::new(state);
    let joined = state.addresses.iter().filter(move |address| {
        address.is_joined_group() && links.link(&address.dev).is_some_and(Link::is_on_host)
    });
    joined.map(membership)
}

/// The membership of an IPv6 group that the kernel keeps, although the link is gone.
pub(crate) fn membership(address: &Address) -> Problem {
    SnapshotCause::MembershipStays.error(format!("address {address}"))
}

/// The links and other objects of a namespace that netfix could not restore.
fn unsupported(state: &NetState) -> Vec<Problem> {
    let index = Indexed::new(state);
    let links = state
        .links
        .iter()
        .filter(|link| !is_on_loopback(link, &index))
        .filter_map(|link| Some(lost_for_good(link)?.error(link.title())));
    let others = state
        .unsupported
        .iter()
        .map(|what| SnapshotCause::CannotBeRestored.error(escape(what)));
    links.chain(others).collect()
}

/// Whether its lower device is the loopback device, which is never lost.
fn is_on_loopback(link: &Link, state: &Indexed<'_>) -> bool {
    let Some(Parent::Own(lower)) = &link.parent else {
        return false;
    };
    let lower = state.link(lower);
    lower.is_some_and(|lower| lower.kind == LinkKind::Loopback)
}

/// Why a record of the present state must not replace a good one: a restore could make a link by the good one, and could not by it.
pub(crate) fn less_restorable(
    good: &NetState,
    now: &NetState,
    generation: Option<u64>,
    is_host: bool,
) -> Option<Problem> {
    let index = Indexed::new(now);
    let cannot = |link: &&Link| {
        let now = index.link(&link.name);
        lost_for_good(link).is_none() && now.is_some_and(|now| lost_for_good(now).is_some())
    };
    let link = good.links.iter().find(cannot)?;
    let cause = SnapshotCause::LessRestorable {
        generation,
        is_host,
    };
    Some(cause.error(link.title()))
}

/// Whether a record has a link that a restore could not make, and that is missing in the present state.
pub(crate) fn lacks_unrestorable(record: &NetState, now: &NetState) -> bool {
    let mut links = record.links.iter();
    links.any(|link| lost_for_good(link).is_some() && now.link(&link.name).is_none())
}

pub(super) fn lost_for_good(link: &Link) -> Option<SnapshotCause> {
    match (&link.kind, &link.parent) {
        (LinkKind::Loopback, _) => None,
        (_, Some(Parent::Elsewhere)) => Some(SnapshotCause::OnThirdNamespace),
        (_, Some(_)) if link.can_be_made() => None,
        (_, None) if link.has_lost_lower() => Some(SnapshotCause::LowerIsGone),
        (_, None) => None,
        (kind, Some(parent)) => match (link.without_lower(), parent) {
            (Some(WithoutLower::Kept), Parent::Own(_)) if link.kind.has_data() => None,
            (Some(WithoutLower::Kept | WithoutLower::Fixed), _) => {
                Some(SnapshotCause::LowerCannotBeSet)
            }
            _ if kind.name() == "macsec" => Some(SnapshotCause::KeysCannotBeRead),
            _ => Some(SnapshotCause::KindCannotBeMade),
        },
    }
}

/// Whether programs that belong to a process are left to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerRule {
    Known,
    Ignored,
}

/// The parts of traffic control that netfix could not restore, of the links that are lost.
fn traffic(state: &NetState, is_lost: impl Fn(&Link) -> bool, owners: OwnerRule) -> Vec<Problem> {
    let mut problems = Vec::new();
    for link in state.links.iter().filter(|link| is_lost(link)) {
        for lost in &link.traffic.lost {
            let (object, what) = (link.title(), escape(&lost.what));
            let owner = link.traffic.owner_of(&lost.what);
            if let Some(owner) = owner.filter(|_| owners == OwnerRule::Known) {
                let owner = escape(owner);
                problems.push(SnapshotCause::ProgramOwned { what, owner }.warning(object));
                continue;
            }
            let cause = if lost.is_program {
                SnapshotCause::ProgramCannotBeRestored { what }
            } else {
                SnapshotCause::TrafficCannotBeRestored { what }
            };
            problems.push(cause.error(object));
        }
    }
    problems
}

/// The filters of the host that send packets to its devices, with those `under` pods: each gets another ifindex.
fn redirects<'a>(state: &NetState, under: impl IntoIterator<Item = &'a IfName>) -> Vec<Problem> {
    let mut devices = LinkGraph::new(&state.links).devices();
    let is_device = |name: &&IfName| {
        state
            .link(name)
            .is_some_and(|link| !link.kind.can_be_made())
    };
    devices.extend(under.into_iter().filter(is_device).cloned());
    let mut problems = Vec::new();
    for link in &state.links {
        for filter in &link.traffic.objects {
            let mut targets = filter.links.iter();
            let target = targets.find(|target| devices.contains(&target.name));
            problems.extend(target.map(|target| {
                let (filter, to) = (filter.to_string(), target.name.clone());
                SnapshotCause::RedirectCannotBeRestored { filter, link: to }.error(link.title())
            }));
        }
    }
    problems
}

/// A device inside a pod goes with its driver and comes back in the host's namespace, where it must be recognised.
fn devices_inside(state: &NetState) -> impl Iterator<Item = Problem> {
    state
        .links
        .iter()
        .filter(|link| {
            let is_known = link.hardware.as_ref().is_some_and(Hardware::is_known);
            link.kind == LinkKind::Physical && !is_known
        })
        .map(|link| SnapshotCause::DeviceInPod.error(link.title()))
}

/// Data center bridging of devices, which netfix never sets: a note where lldpad does.
#[must_use]
pub fn data_center_bridging(state: &NetState, is_managed: bool) -> Vec<Problem> {
    let of_link = |link: &Link| {
        let values = link.nic.as_ref()?.settings.get(&NicGroup::Dcb)?;
        let values = values.iter().map(|(key, value)| format!("{key} {value}"));
        let (what, object) = (join(values, ", "), format!("nic {} dcb", link.name));
        Some(if is_managed {
            SnapshotCause::DcbManaged { what }.info(object)
        } else {
            SnapshotCause::DcbCannotBeRestored { what }.error(object)
        })
    };
    state.links.iter().filter_map(of_link).collect()
}

/// What a driver reload would take from the host, whose links are `under` pods, and netfix could not restore.
#[must_use]
pub fn unsupported_on_host<'a>(
    state: &NetState,
    under: impl IntoIterator<Item = &'a IfName>,
) -> Vec<Problem> {
    let can_be_port = |link: &Link| link.can_be_lost();
    unsupported(state)
        .into_iter()
        .chain(traffic(state, can_be_port, OwnerRule::Known))
        .chain(redirects(state, under))
        .chain(ports(state, can_be_port).map(|(link, cause)| cause.error(link)))
        .collect()
}

/// What of that the host had by its good record and has no more, since devices of it, or `under` pods, were lost or made anew.
#[must_use]
pub fn unsupported_and_lost(
    good: &NetState,
    now: &NetState,
    under: &BTreeSet<&IfName>,
) -> Vec<Problem> {
    if remade(good, now, under.iter().copied()).is_empty() {
        return Vec::new();
    }
    let left = unsupported_on_host(now, under.iter().copied());
    // One whose owner is not known any more is there all the same.
    let programs = traffic(now, Link::can_be_lost, OwnerRule::Ignored);
    let mut lost = unsupported_on_host(good, under.iter().copied());
    lost.retain(|one| one.is_error() && !left.contains(one) && !programs.contains(one));
    lost
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
        let cause = SnapshotCause::PortCannotBeRestored { master };
        (!port::is_restorable(link, &index)).then_some((&link.name, cause))
    })
}
