//! The host's links under pods whose source has only their name, or not even that.

use super::host_baseline::HostBaseline;
use crate::model::net::link::{Flags, Vlan, VlanId};
use crate::model::pod::partial::Attachment;
use crate::model::problem::{ForeignCause, MatchingCause};
use crate::model::{IfName, Link, LinkGraph, LinkKind, NetState, Parent, Problem, Traffic, stack};

/// A parent of pods and the links below it, as far as `wanted` does not have them; and the devices at the bottom.
///
/// The name describes a missing link: `eth0.3` is VLAN 3 on eth0, any other name is a device.
pub(crate) fn links_under(
    parent: &IfName,
    wanted: &NetState,
    now: &NetState,
) -> (Vec<Link>, Vec<IfName>) {
    let known = if wanted.link(parent).is_some() {
        wanted
    } else {
        now
    };
    let under = LinkGraph::new(&known.links).stack(parent);
    if under.is_empty() {
        return assumed(parent, wanted, now);
    }
    let bottom = stack::devices(&under).cloned().collect();
    let absent = now.links.iter().filter(|link| {
        wanted.link(&link.name).is_none() && under.iter().any(|u| u.name == link.name)
    });
    (absent.map(was_up).collect(), bottom)
}

/// A link as it was under pods: no record has its flags, but the pods on it worked.
fn was_up(link: &Link) -> Link {
    let flags = Flags {
        up: true,
        ..link.flags
    };
    Link {
        flags,
        qdisc: None,
        traffic: Traffic::default(),
        ..link.clone()
    }
}

fn assumed(name: &IfName, wanted: &NetState, now: &NetState) -> (Vec<Link>, Vec<IfName>) {
    let Some((lower, id)) = vlan_in(name) else {
        return (
            vec![Link::plain(name.clone(), LinkKind::Physical)],
            vec![name.clone()],
        );
    };
    let (mut links, bottom) = links_under(&lower, wanted, now);
    let below = links
        .iter()
        .chain(&wanted.links)
        .find(|link| link.name == lower);
    let mut vlan = Link::plain(name.clone(), LinkKind::Vlan(Vlan::plain(id)));
    if let Some(below) = below {
        (vlan.mac, vlan.mtu) = (below.mac, below.mtu);
    }
    vlan.parent = Some(Parent::Own(lower));
    links.push(vlan);
    (links, bottom)
}

/// What a name like `eth0.3` describes: VLAN 3 on eth0.
fn vlan_in(name: &IfName) -> Option<(IfName, VlanId)> {
    let (lower, id) = name.as_str()?.rsplit_once('.')?;
    let id: u16 = id.parse().ok()?;
    Some((
        lower.to_owned().try_into().ok()?,
        VlanId::try_from(id).ok()?,
    ))
}

/// The parent of interfaces for which their source names none.
#[derive(Debug, Default)]
pub(crate) struct AssumedParent {
    /// `--parent`.
    named: Option<IfName>,
    /// The link that CNI plugins use when their configuration names no other.
    default: Option<IfName>,
}

impl AssumedParent {
    /// Refuses a `--parent` that does not exist, did not exist, and is not a VLAN of such a link.
    pub(crate) fn new(
        named: Option<&IfName>,
        by_plugins: bool,
        recorded: Option<&NetState>,
        host: &NetState,
    ) -> Result<Self, Problem> {
        let known = |name: &IfName| {
            host.link(name).is_some() || recorded.is_some_and(|state| state.link(name).is_some())
        };
        if let Some(name) = named
            && !known(name)
            && !vlan_in(name).is_some_and(|(lower, _)| known(&lower))
        {
            return Err(MatchingCause::UnknownParent.error(name.to_string()));
        }
        let default = if by_plugins && named.is_none() {
            recorded
                .and_then(default_link)
                .or_else(|| default_link(host))
        } else {
            None
        };
        Ok(Self {
            named: named.cloned(),
            default,
        })
    }

    /// Gives interfaces their parent where their source names none, and reports a parent that is only assumed.
    pub(crate) fn assign<'a>(
        &self,
        attachments: impl IntoIterator<Item = &'a mut Attachment>,
    ) -> Option<Problem> {
        let parent = self.named.as_ref().or(self.default.as_ref());
        let mut interfaces = 0;
        for attachment in attachments {
            if attachment.can_be_made() && attachment.parent.is_none() {
                attachment.parent = parent.cloned();
                interfaces += 1;
            }
        }
        let link = self.default.as_ref().filter(|_| interfaces > 0)?;
        Some(ForeignCause::ParentAssumed { interfaces }.warning(link.to_string()))
    }
}

/// The link of the host's default route: the one that plugins use when their configuration names no master.
pub(crate) fn default_link(state: &NetState) -> Option<IfName> {
    let defaults = state.routes.iter().filter(|route| route.is_default());
    let first = defaults.min_by_key(|route| (route.is_ipv6(), route.priority))?;
    first.devs().first().map(|dev| (*dev).clone())
}

/// What an incomplete source lacks, once for all pods.
pub(crate) fn unknown_from(source: &str, baseline: &HostBaseline, host: &NetState) -> Vec<Problem> {
    let mut problems = vec![ForeignCause::SourceIsPartial.info(source)];
    let vlans = baseline.nameless(host);
    if !vlans.is_empty() {
        let vlans: Vec<String> = vlans.iter().map(ToString::to_string).collect();
        problems.push(ForeignCause::VlanKnownByName.warning(vlans.join(", ")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    #[test]
    fn only_a_number_after_the_last_dot_is_a_vlan() {
        assert_eq!(
            vlan_in(&name("bond4.4094")).map(|(lower, _)| lower),
            Some(name("bond4"))
        );
        for text in ["eth0", "eth0.", ".3", "eth0.x", "eth0.4095"] {
            assert!(vlan_in(&name(text)).is_none(), "{text}");
        }
    }
}
