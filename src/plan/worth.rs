//! What a snapshot is worth: whether the moment is a bad one to write things down, and what no checkpoint could bring
//! back.

use crate::model::{Code, IfName, Link, LinkKind, NetState, Parent, Problem, Severity};

/// What a pod has lost since its good checkpoint: a whole link, its being up, or all its addresses.
#[must_use]
pub fn loss(good: &NetState, now: &NetState) -> Option<String> {
    let has_addresses = |state: &NetState, link: &Link| {
        state.addresses_of(&link.name).any(|address| !address.comes_by_itself())
    };
    let is_lost = |link: &Link| {
        is_gone(link, now.link(&link.name)) || (has_addresses(good, link) && !has_addresses(now, link))
    };
    first_link(good, is_lost)
}

/// What went while a pod was read: a link that is gone, down or another one by now. The kernel takes a link down before
/// it takes away its routes and addresses, so what was read before may lack them.
#[must_use]
pub fn torn(read: &NetState, links: &[Link]) -> Option<String> {
    first_link(read, |link| {
        let now = links.iter().find(|now| now.name == link.name);
        is_gone(link, now) || now.is_some_and(|now| now.index != link.index)
    })
}

fn is_gone(link: &Link, now: Option<&Link>) -> bool {
    now.is_none_or(|now| link.flags.up && !now.flags.up)
}

fn first_link(state: &NetState, is_it: impl Fn(&Link) -> bool) -> Option<String> {
    let mut links = state.links.iter().filter(|link| link.kind != LinkKind::Loopback);
    links.find(|link| is_it(link)).map(|link| format!("{} {}", link.kind.name(), link.name))
}

/// What a driver reload would take from this namespace and netfix could not put back.
#[must_use]
pub fn unsupported(state: &NetState) -> Vec<Problem> {
    let why = |link: &Link| match (&link.kind, &link.parent) {
        (LinkKind::Loopback, _) => None,
        (_, Some(Parent::Elsewhere)) => Some("stands on a link of a third namespace".to_owned()),
        (kind, Some(_)) if !kind.can_be_made() => Some("is of a kind that netfix cannot make yet".to_owned()),
        (kind, _) if kind.can_be_made() => {
            let qdisc = link.qdisc.as_deref().filter(|qdisc| *qdisc != "noqueue")?;
            Some(format!("has the qdisc {qdisc}, which netfix cannot restore yet"))
        }
        _ => None,
    };
    let links = state.links.iter().filter_map(|link| {
        let object = format!("{} {}", link.kind.name(), link.name);
        Some(Problem::error(Code::Unsupported, object, format!("{}; it would stay lost", why(link)?)))
    });
    let others = state.unsupported.iter().map(|what| {
        Problem::error(Code::Unsupported, what.escape_debug().to_string(), "netfix cannot restore this yet")
    });
    links.chain(others).collect()
}

/// A device inside a pod goes with its driver and comes back in the host's namespace.
pub fn devices_inside(state: &NetState) -> impl Iterator<Item = Problem> {
    let devices = state.links.iter().filter(|link| link.kind == LinkKind::Physical);
    devices.map(|link| {
        let message = "is a device, and netfix cannot bring devices back into a pod yet; it would stay lost";
        Problem::error(Code::Unsupported, format!("physical {}", link.name), message)
    })
}

/// The same for the host, where it is worth a warning: no pod is lost by it.
#[must_use]
pub fn unsupported_on_host(state: &NetState) -> Vec<Problem> {
    let is_bond = |name: &IfName| state.link(name).is_some_and(|link| matches!(link.kind, LinkKind::Bond(_)));
    let is_ours = |link: &&Link| link.kind == LinkKind::Physical || link.kind.can_be_made();
    let ports = state.links.iter().filter(is_ours).filter_map(|link| {
        let master = link.master.as_ref().filter(|name| !is_bond(name))?;
        let message = format!("is a port of {master}, which netfix cannot make it again yet");
        Some(Problem::warning(Code::Unsupported, link.name.to_string(), message))
    });
    let warn = |problem: Problem| Problem { severity: Severity::Warning, ..problem };
    unsupported(state).into_iter().map(warn).chain(ports).collect()
}
