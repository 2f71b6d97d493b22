//! `--parent`: the host's link under pods whose checkpoint, being of the origin's format, names none.

use crate::model::link::{Flags, Vlan, VlanId};
use crate::model::{Code, IfName, Link, LinkKind, NetState, NodeState, Parent, Problem, stack};

/// What has to be known of a link that only the command line names, and the devices that it stands on.
pub(super) fn ground(parent: &Link, wanted: &NetState, now: &NetState) -> (Vec<Link>, Vec<IfName>) {
    let known = if wanted.link(&parent.name).is_some() { wanted } else { now };
    let mut under = stack::from(&parent.name, known);
    let mut missing = Vec::new();
    if under.is_empty() {
        missing.push(parent.clone());
        if let Some(Parent::Own(lower)) = &parent.parent {
            under = stack::from(lower, now);
        }
    }
    let bottom = stack::devices(&under).cloned().collect();
    let absent =
        |link: &&Link| wanted.link(&link.name).is_none() && under.iter().any(|u| u.name == link.name);
    // Nobody wrote down whether it was up; pods that stood on it say that it was.
    let was_up = |link: &Link| {
        let flags = Flags { up: true, ..link.flags };
        Link { flags, qdisc: None, ..link.clone() }
    };
    missing.extend(now.links.iter().filter(absent).map(was_up));
    (missing, bottom)
}

/// The link that `--parent` names: as it is, as it was, or, for a name like `eth0.3`, VLAN 3 on eth0.
pub(super) fn parent(name: &IfName, stored: Option<&NodeState>, host: &NetState) -> Result<Link, Problem> {
    if let Some(link) = host.link(name).or_else(|| stored.and_then(|stored| stored.state.link(name))) {
        return Ok(link.clone());
    }
    let missing = || {
        let message =
            "--parent names no link that is there, that the node state has, or that is a VLAN of one";
        Problem::error(Code::ParentMissing, name.to_string(), message)
    };
    let (lower, id) = name.as_str().rsplit_once('.').ok_or_else(missing)?;
    let id = id.parse().ok().and_then(|id: u16| VlanId::try_from(id).ok()).ok_or_else(missing)?;
    let lower = host.links.iter().find(|link| link.name.as_str() == lower).ok_or_else(missing)?;
    let vlan = Vlan::plain(id);
    let parent = Some(Parent::Own(lower.name.clone()));
    Ok(Link { mac: lower.mac, mtu: lower.mtu, parent, ..Link::plain(name.clone(), LinkKind::Vlan(vlan)) })
}
