//! The host's links under pods whose source knows nothing of them but a name, or not even that.

use super::check_in::{CheckIn, Ground, Matched};
use crate::model::link::{Flags, Vlan, VlanId};
use crate::model::{Code, IfName, Link, LinkKind, NetState, NodeState, Parent, Problem, Route, stack};

/// What has to be known of a link that pods stand on, and of those below it, beyond what `wanted` has; and the devices
/// at the bottom.
///
/// A link that is gone is taken for what its name says: `eth0.3` for VLAN 3 on eth0, any other name for a device.
pub(super) fn ground(parent: &IfName, wanted: &NetState, now: &NetState) -> (Vec<Link>, Vec<IfName>) {
    let known = if wanted.link(parent).is_some() { wanted } else { now };
    let under = stack::from(parent, known);
    if under.is_empty() {
        return assumed(parent, wanted, now);
    }
    let bottom = stack::devices(&under).cloned().collect();
    let absent =
        |link: &&Link| wanted.link(&link.name).is_none() && under.iter().any(|u| u.name == link.name);
    // Nobody wrote down whether it was up; pods that stood on it say that it was.
    let was_up = |link: &Link| {
        let flags = Flags { up: true, ..link.flags };
        Link { flags, qdisc: None, ..link.clone() }
    };
    (now.links.iter().filter(absent).map(was_up).collect(), bottom)
}

fn assumed(name: &IfName, wanted: &NetState, now: &NetState) -> (Vec<Link>, Vec<IfName>) {
    let Some((lower, id)) = vlan_in(name) else {
        return (vec![Link::plain(name.clone(), LinkKind::Physical)], vec![name.clone()]);
    };
    let (mut links, bottom) = ground(&lower, wanted, now);
    let below = links.iter().chain(&wanted.links).find(|link| link.name == lower);
    let mut vlan = Link::plain(name.clone(), LinkKind::Vlan(Vlan::plain(id)));
    if let Some(below) = below {
        (vlan.mac, vlan.mtu) = (below.mac, below.mtu);
    }
    vlan.parent = Some(Parent::Own(lower));
    links.push(vlan);
    (links, bottom)
}

/// What a name like `eth0.3` says: VLAN 3 on eth0.
fn vlan_in(name: &IfName) -> Option<(IfName, VlanId)> {
    let (lower, id) = name.as_str().rsplit_once('.')?;
    let id: u16 = id.parse().ok()?;
    Some((lower.parse().ok()?, VlanId::try_from(id).ok()?))
}

/// What pods are to stand on whose source names no link.
#[derive(Debug, Default)]
pub(super) struct Parents {
    /// The link that the user named.
    named: Option<IfName>,
    /// The link that CNI plugins take when they are told no other.
    default: Option<IfName>,
}

impl Parents {
    /// Refuses a `--parent` that names no link that is there, that was there, or that could be made on one.
    pub(super) fn new(
        named: Option<&IfName>,
        by_plugins: bool,
        stored: Option<&NodeState>,
        host: &NetState,
    ) -> Result<Self, Problem> {
        let known = |name: &IfName| {
            host.link(name).is_some() || stored.is_some_and(|stored| stored.state.link(name).is_some())
        };
        if let Some(name) = named
            && !known(name)
            && !vlan_in(name).is_some_and(|(lower, _)| known(&lower))
        {
            let message =
                "--parent names no link that is there, that the node state has, or that is a VLAN of one";
            return Err(Problem::error(Code::ParentMissing, name.to_string(), message));
        }
        let default = || stored.and_then(|stored| default_link(&stored.state)).or_else(|| default_link(host));
        let default = if by_plugins && named.is_none() { default() } else { None };
        Ok(Self { named: named.cloned(), default })
    }
}

impl CheckIn {
    /// Says what interfaces stood on whose source does not.
    pub(super) fn find_parents(&mut self, parents: &Parents) {
        let partials = self.matched.iter_mut().filter_map(|matched| matched.partial.as_mut());
        let attachments = partials.flat_map(|partial| &mut partial.attachments);
        let orphans: Vec<_> = attachments.filter(|a| a.can_be_made() && a.parent.is_none()).collect();
        let Parents { named, default } = parents;
        if let Some(link) = default.as_ref().filter(|_| !orphans.is_empty()) {
            let message = format!(
                "is taken for the parent of {} interfaces, because the host's default route goes out of it and their \
                 configuration names no master; if it was another, say --parent",
                orphans.len()
            );
            self.problems.push(Problem::warning(Code::PartialSource, link.to_string(), message));
        }
        let parent = named.as_ref().or(default.as_ref());
        for attachment in orphans {
            attachment.parent = parent.cloned();
        }
    }
}

/// The link that the host's default route goes out of: what plugins take that are told no other.
pub(super) fn default_link(state: &NetState) -> Option<IfName> {
    let metric = |route: &Route| match route {
        Route::V4(route) if route.is_default() => Some((false, route.priority)),
        Route::V6(route) if route.is_default() => Some((true, route.priority)),
        _ => None,
    };
    let defaults = state.routes.iter().filter_map(|route| Some((metric(route)?, route)));
    let first = defaults.min_by_key(|(metric, _)| *metric)?;
    first.1.devs().first().map(|dev| (*dev).clone())
}

/// What sources that know only part leave open, said once.
pub(super) fn what_is_not_known(matched: &[Matched], ground: &Ground, host: &NetState) -> Vec<Problem> {
    let Some(source) = matched.iter().find(|m| m.partial.is_some()).map(|m| m.info.source.clone()) else {
        return Vec::new();
    };
    let message = "says nothing of ifindexes, of an MTU that nobody configured, of settings, rules, neighbours and \
                   routes that came later, nor of the host's own addresses and routes; a program that is bound to an \
                   interface may need a restart";
    let mut problems = vec![Problem::info(Code::PartialSource, source, message)];
    let vlans: Vec<String> = ground.nameless(host).iter().map(ToString::to_string).collect();
    if !vlans.is_empty() {
        let message = "is known by its name alone: it is made without QoS maps, flags, addresses and routes, and with \
                       the MAC and MTU of what it stands on";
        problems.push(Problem::warning(Code::PartialSource, vlans.join(", "), message));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    fn device(text: &str, mtu: u32) -> Link {
        Link { mtu, ..Link::plain(name(text), LinkKind::Physical) }
    }

    fn names(links: &[Link]) -> Vec<String> {
        links.iter().map(|link| format!("{} {}", link.kind.name(), link.name)).collect()
    }

    #[test]
    fn a_vlan_that_is_gone_is_read_from_its_name_and_takes_its_mtu_from_below() {
        let now = NetState { links: vec![device("eth0", 9000)], ..NetState::default() };
        let (links, bottom) = ground(&name("eth0.3.7"), &NetState::default(), &now);
        assert_eq!(names(&links), ["physical eth0", "vlan eth0.3", "vlan eth0.3.7"]);
        assert_eq!(bottom, [name("eth0")]);
        assert!(links.iter().all(|link| link.mtu == 9000 && link.flags.up));
    }

    #[test]
    fn a_device_that_is_not_back_is_waited_for() {
        let (links, bottom) = ground(&name("eth0.3"), &NetState::default(), &NetState::default());
        assert_eq!(names(&links), ["physical eth0", "vlan eth0.3"]);
        assert_eq!(bottom, [name("eth0")]);
    }

    #[test]
    fn what_was_written_down_is_not_guessed() {
        let wanted = NetState { links: vec![device("eth0", 1500)], ..NetState::default() };
        let (links, bottom) = ground(&name("eth0"), &wanted, &NetState::default());
        assert!(links.is_empty());
        assert_eq!(bottom, [name("eth0")]);
    }

    #[test]
    fn only_a_number_after_the_last_dot_is_a_vlan() {
        assert_eq!(vlan_in(&name("bond4.4094")).map(|(lower, _)| lower), Some(name("bond4")));
        for text in ["eth0", "eth0.", ".3", "eth0.x", "eth0.4095"] {
            assert!(vlan_in(&name(text)).is_none(), "{text}");
        }
    }
}
