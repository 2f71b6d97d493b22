//! The host's links below a pod's link. A snapshot stores them in the checkpoint; a restore uses them if the node's state is
//! missing.

use std::collections::BTreeSet;

use super::{HostSide, LinkGraph, Tie};
use crate::model::{AnswerRecord, IfName, Link, LinkKind, NetState, Parent, StackLink};

impl<'a> LinkGraph<'a> {
    /// Every link of the host below a link of `pod`, top first: below its parent, below the bridge that the other end of a pair is a
    /// port of, if that bridge has an uplink, and below a virtual function the device that it is a function of.
    pub(crate) fn under(&self, pod: &[Link]) -> Vec<StackLink> {
        let mut stack = Stack::of(self);
        for link in pod {
            let physical = self.physical(link.hardware.as_ref()).into_iter();
            let physical = physical.map(|device| &device.name);
            for name in self.entry_of(link).into_iter().chain(physical) {
                stack.descend(name);
            }
        }
        stack.links
    }

    /// The link of the host through which the packets of a pod's link go: its parent, or the bridge that the other end of a pair is a
    /// port of, if that bridge has an uplink.
    pub(crate) fn entry_of<'p>(&self, link: &'p Link) -> Option<&'p IfName>
    where
        'a: 'p,
    {
        match (&link.parent, &link.peer) {
            (Some(Parent::Host(parent)), _) => Some(parent),
            (_, Some(Parent::Host(peer))) => self.bridge_of(peer),
            _ => None,
        }
    }

    /// The switch with an uplink that this link of the host is a port of.
    fn bridge_of(&self, port: &IfName) -> Option<&'a IfName> {
        let master = self.link(port)?.master.as_ref();
        let switch = master.and_then(|name| self.link(name));
        let switch = switch.filter(|link| link.is_switch() && !self.carriers(link).is_empty());
        switch.map(|link| &link.name)
    }

    /// A link and every link below it, top first; empty when it does not exist.
    pub(crate) fn stack(&self, name: &IfName) -> Vec<StackLink> {
        let mut stack = Stack::of(self);
        stack.descend(name);
        stack.links
    }

    /// Directly below a link: what carries its packets.
    pub(crate) fn carriers(&self, link: &Link) -> Vec<&'a IfName> {
        // A port of a switch that is down carries nothing.
        let is_uplink = |name: &IfName| {
            let port = self.link(name);
            port.is_some_and(|port| port.flags.up && port.can_be_uplink())
        };
        let carries = |(tie, lower): &&(Tie, &IfName)| match tie {
            Tie::Port | Tie::Member if link.is_switch() => is_uplink(lower),
            Tie::Child | Tie::Tunnel | Tie::Port => true,
            Tie::Function | Tie::Member => false,
        };
        let below = self.below(&link.name).iter().filter(carries);
        below.map(|(_, lower)| *lower).collect()
    }

    /// The host's devices: those of hardware, and what the links that netfix can make stand on.
    pub(crate) fn devices(&self) -> BTreeSet<IfName> {
        let mut stack = Stack::of(self);
        for link in self.links.iter().filter(|link| link.kind.can_be_made()) {
            stack.descend(&link.name);
        }
        let bottoms = devices(&stack.links).filter_map(|name| self.link(name));
        let given = bottoms.filter(|link| !link.kind.can_be_made());
        let physical = self
            .links
            .iter()
            .filter(|link| link.kind == LinkKind::Physical);
        given
            .chain(physical)
            .map(|link| link.name.clone())
            .collect()
    }
}

/// Links of the host, top first.
struct Stack<'g, 'a> {
    graph: &'g LinkGraph<'a>,
    seen: BTreeSet<&'a IfName>,
    links: Vec<StackLink>,
}

impl<'g, 'a> Stack<'g, 'a> {
    fn of(graph: &'g LinkGraph<'a>) -> Self {
        Self {
            graph,
            seen: BTreeSet::new(),
            links: Vec::new(),
        }
    }

    fn descend(&mut self, name: &IfName) {
        let link = self.graph.link(name);
        let Some(link) = link.filter(|link| self.seen.insert(&link.name)) else {
            return;
        };
        let over = self.graph.carriers(link);
        let vlan = match &link.kind {
            LinkKind::Vlan(vlan) => Some(vlan.clone()),
            _ => None,
        };
        self.links.push(StackLink {
            name: link.name.clone(),
            kind: link.kind.name().to_owned(),
            mac: link.mac,
            mtu: link.mtu,
            vlan,
            hardware: link.hardware.clone(),
            over: over.iter().map(|lower| (*lower).clone()).collect(),
        });
        let physical = self.graph.physical(link.hardware.as_ref()).into_iter();
        for lower in over.into_iter().chain(physical.map(|device| &device.name)) {
            self.descend(lower);
        }
    }
}

/// A bridge in a stack with an uplink that it has no more, or that is down; of several the one that led to what has answered.
pub(crate) fn lost_uplink<'a>(
    stack: &'a [StackLink],
    answers: &[AnswerRecord],
    host: &HostSide<'_>,
) -> Option<(&'a IfName, &'a IfName)> {
    let mut switches = stack.iter().filter(|link| link.is_switch());
    switches.find_map(|switch| {
        let used = used_port(&switch.over.iter().collect::<Vec<_>>(), answers, host.state);
        let is_lost = |port: &&IfName| {
            let recorded = stack.iter().find(|link| link.name == **port);
            let hardware = recorded.and_then(|link| link.hardware.as_ref());
            let now = host.present(port, hardware);
            let carries = |now: &Link| now.flags.up && now.master.as_ref() == Some(&switch.name);
            !now.is_some_and(|now| carries(now) && !(used.is_some() && now.blocked))
        };
        let mut ports = switch.over.iter();
        let lost = ports.find(|port| used.is_none_or(|used| used == *port) && is_lost(port))?;
        Some((&switch.name, lost))
    })
}

/// The one of several ports of a bridge that leads to what has answered, by what the bridge has learnt: now, or else then.
pub(crate) fn used_port<'a>(
    ports: &[&'a IfName],
    answers: &[AnswerRecord],
    now: &NetState,
) -> Option<&'a IfName> {
    let named = |name: &IfName| ports.iter().copied().find(|port| *port == name);
    answers.iter().find_map(|one| {
        let then = named(one.port.as_ref()?)?;
        let mut learned = now.learned.iter().filter(|(_, mac)| one.mac == Some(*mac));
        let now = learned.find_map(|(port, _)| named(port));
        Some(now.unwrap_or(then))
    })
}

/// The links at the bottom of a stack.
pub(crate) fn bottoms(stack: &[StackLink]) -> impl Iterator<Item = &StackLink> {
    stack
        .iter()
        .filter(|link| link.vlan.is_none() && link.over.is_empty())
}

/// The devices at the bottom of a stack.
pub(crate) fn devices(stack: &[StackLink]) -> impl Iterator<Item = &IfName> {
    bottoms(stack).map(|link| &link.name)
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
