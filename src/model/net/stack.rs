//! The host's links below a pod's link. A snapshot stores them in the checkpoint; a restore uses them if the node's state is
//! missing.

use std::collections::BTreeSet;

use crate::model::{IfName, Link, LinkKind, NetState, Parent, StackLink};

/// Every link of the host below a link of `pod`, top first.
pub(crate) fn under(pod: &NetState, host: &NetState) -> Vec<StackLink> {
    let mut stack = Vec::new();
    let mut seen = BTreeSet::new();
    for link in &pod.links {
        if let Some(Parent::Host(parent)) = &link.parent {
            descend(parent, host, &mut seen, &mut stack);
        }
    }
    stack
}

/// A link of the host and every link below it, top first; empty when it does not exist.
#[must_use]
pub fn from(name: &IfName, host: &NetState) -> Vec<StackLink> {
    let mut stack = Vec::new();
    descend(name, host, &mut BTreeSet::new(), &mut stack);
    stack
}

fn descend(
    name: &IfName,
    host: &NetState,
    seen: &mut BTreeSet<IfName>,
    stack: &mut Vec<StackLink>,
) {
    let Some(link) = host.link(name).filter(|_| seen.insert(name.clone())) else {
        return;
    };
    let over = below(link, host);
    stack.push(StackLink {
        name: link.name.clone(),
        kind: link.kind.name().to_owned(),
        mac: link.mac,
        mtu: link.mtu,
        vlan: if let LinkKind::Vlan(vlan) = &link.kind {
            Some(vlan.clone())
        } else {
            None
        },
        hardware: link.hardware.clone(),
        over: over.clone(),
    });
    for lower in &over {
        descend(lower, host, seen, stack);
    }
}

fn below(link: &Link, host: &NetState) -> Vec<IfName> {
    match (&link.parent, &link.kind) {
        (Some(Parent::Own(parent)), _) => vec![parent.clone()],
        (_, LinkKind::Bond(_)) => {
            let ports = host
                .links
                .iter()
                .filter(|port| port.master.as_ref() == Some(&link.name));
            ports.map(|port| port.name.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// The links at the bottom of a stack.
pub fn bottoms(stack: &[StackLink]) -> impl Iterator<Item = &StackLink> {
    stack
        .iter()
        .filter(|link| link.vlan.is_none() && link.over.is_empty())
}

/// The devices at the bottom of a stack.
pub fn devices(stack: &[StackLink]) -> impl Iterator<Item = &IfName> {
    bottoms(stack).map(|link| &link.name)
}

/// A node state from stacks alone: links without addresses, routes and settings.
///
/// Bonds are left out: their options are not part of a stack.
pub(crate) fn as_state<'a>(
    stacks: impl Iterator<Item = &'a [StackLink]>,
    host: &NetState,
) -> NetState {
    let mut state = NetState::default();
    for entry in stacks.flatten() {
        if state.link(&entry.name).is_some() {
            continue;
        }
        let kind = match (&entry.vlan, entry.kind.as_str()) {
            (Some(vlan), _) => LinkKind::Vlan(vlan.clone()),
            (None, "physical") => LinkKind::Physical,
            (None, driver) => LinkKind::Other {
                driver: driver.to_owned(),
            },
        };
        let now = host.link(&entry.name);
        let mut link = Link::plain(entry.name.clone(), kind);
        link.mac = entry.mac;
        link.mtu = entry.mtu;
        link.txqueuelen = now.map_or(link.txqueuelen, |link| link.txqueuelen);
        link.parent = entry
            .over
            .first()
            .filter(|_| entry.vlan.is_some())
            .cloned()
            .map(Parent::Own);
        link.hardware.clone_from(&entry.hardware);
        state.links.push(link);
    }
    state
}
