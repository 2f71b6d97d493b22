//! The host's links below a pod's link. A snapshot stores them in the checkpoint; a restore uses them if the node's state is
//! missing.

use std::collections::BTreeSet;

use crate::model::{IfName, Link, LinkKind, NetState, Parent, StackLink};

/// Every link of the host below a link of `pod`, top first: below its parent, below the bridge that the other end of a pair is a
/// port of, if that bridge has an uplink, and below a virtual function the device that it is a function of.
pub(crate) fn under(pod: &NetState, host: &NetState) -> Vec<StackLink> {
    let mut stack = Vec::new();
    let mut seen = BTreeSet::new();
    for link in &pod.links {
        let below = match (&link.parent, &link.peer) {
            (Some(Parent::Host(parent)), _) => Some(parent),
            (_, Some(Parent::Host(peer))) => bridge_of(peer, host),
            _ => None,
        };
        if let Some(below) = below {
            descend(below, host, &mut seen, &mut stack);
        }
        if let Some(device) = physical(link, host) {
            descend(device, host, &mut seen, &mut stack);
        }
    }
    stack
}

/// The switch with an uplink that this link of the host is a port of.
pub(crate) fn bridge_of<'a>(port: &IfName, host: &'a NetState) -> Option<&'a IfName> {
    let master = host.link(port)?.master.as_ref();
    let switch = master.and_then(|name| host.link(name));
    let switch = switch.filter(|link| link.is_switch() && !below(link, host).is_empty());
    switch.map(|link| &link.name)
}

/// A bridge in a stack with an uplink that it has no more, or that is down.
pub(crate) fn lost_uplink<'a>(
    stack: &'a [StackLink],
    host: &NetState,
) -> Option<(&'a IfName, &'a IfName)> {
    let switches = stack.iter().filter(|link| link.is_switch());
    let mut uplinks =
        switches.flat_map(|switch| switch.over.iter().map(|port| (&switch.name, port)));
    uplinks.find(|(switch, port)| {
        let recorded = stack.iter().find(|link| link.name == **port);
        let hardware = recorded.and_then(|link| link.hardware.as_ref());
        let is_it = |now: &&Link| match (hardware.filter(|one| one.is_known()), &now.hardware) {
            (Some(then), Some(now)) => then.is_same(now),
            _ => now.name == **port,
        };
        let mut now = host.links.iter().filter(is_it);
        !now.any(|now| now.flags.up && now.master.as_ref() == Some(*switch))
    })
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
    for lower in over.iter().chain(physical(link, host)) {
        descend(lower, host, seen, stack);
    }
}

/// The device of the host that a link is a virtual function of.
fn physical<'a>(link: &Link, host: &'a NetState) -> Option<&'a IfName> {
    let own = link.hardware.as_ref()?;
    own.function.as_ref()?;
    let is_of = |device: &&Link| {
        let device = device.hardware.as_ref();
        device.is_some_and(|device| own.is_function_of(device))
    };
    Some(&host.links.iter().find(is_of)?.name)
}

fn below(link: &Link, host: &NetState) -> Vec<IfName> {
    let ports = |is_below: fn(&Link) -> bool| {
        let ports = host.links.iter();
        let ports = ports.filter(|port| port.master.as_ref() == Some(&link.name) && is_below(port));
        ports.map(|port| port.name.clone()).collect()
    };
    match (&link.parent, &link.kind) {
        (Some(Parent::Own(parent)), _) => vec![parent.clone()],
        (_, LinkKind::Bond(_)) => ports(|_| true),
        // One that is down carries nothing.
        _ if link.is_switch() => ports(|port| port.flags.up && port.can_be_uplink()),
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

/// The host's devices: those of hardware, and what the links that netfix can make stand on.
#[must_use]
pub fn devices_of(host: &NetState) -> BTreeSet<IfName> {
    let (mut stack, mut seen) = (Vec::new(), BTreeSet::new());
    for link in host.links.iter().filter(|link| link.kind.can_be_made()) {
        descend(&link.name, host, &mut seen, &mut stack);
    }
    let bottoms = devices(&stack).filter_map(|name| host.link(name));
    let given = bottoms.filter(|link| !link.kind.can_be_made());
    let physical = host
        .links
        .iter()
        .filter(|link| link.kind == LinkKind::Physical);
    given
        .chain(physical)
        .map(|link| link.name.clone())
        .collect()
}

/// A node state from stacks alone: links without addresses, routes and settings.
///
/// Bonds are left out: their options are not part of a stack.
pub(crate) fn as_state<'a>(
    stacks: impl Iterator<Item = &'a [StackLink]> + Clone,
    host: &NetState,
) -> NetState {
    let mut state = NetState::default();
    for entry in stacks.clone().flatten() {
        if state.link(&entry.name).is_some() {
            continue;
        }
        let kind = match (&entry.vlan, entry.kind.as_str()) {
            (Some(vlan), _) => LinkKind::Vlan(vlan.clone()),
            (None, "physical") => LinkKind::Physical,
            (None, driver) => LinkKind::other(driver),
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
    for switch in stacks.flatten().filter(|link| link.is_switch()) {
        let ports = state.links.iter_mut();
        for port in ports.filter(|port| switch.over.contains(&port.name)) {
            port.master = Some(switch.name.clone());
        }
    }
    state
}
