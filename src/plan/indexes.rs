//! What of the host names a link by its ifindex, and the kernel keeps when the link is recreated with another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::net::link::index::{IndexUser, IndexUses};
use crate::model::problem::{KeptIndex, SocketCause};
use crate::model::{IfName, Link, LinkKind, NetState, NodeState, Problem};

/// What names one of these links, which can be lost. What a restore makes good is a note, and so is a program that must be restarted, as
/// that of another socket.
#[must_use]
pub fn named(
    known: &IndexUses,
    host: &NetState,
    at_risk: &BTreeSet<IfName>,
    kept: &BTreeMap<u32, KeptIndex>,
) -> Vec<Problem> {
    let links = host
        .links
        .iter()
        .filter(|link| at_risk.contains(&link.name));
    let named = links.filter_map(|link| {
        let (index, users) = (link.index, known.users.get(&link.index)?.clone());
        let why = kept.get(&index).filter(|_| link.is_device()).cloned();
        // A link that netfix creates has it from the start.
        let is_restored = match link.kind {
            LinkKind::Physical => why.is_none(),
            _ => link.can_be_made(),
        };
        if is_restored {
            return Some(SocketCause::IndexNamed { index, users }.info(&link.name));
        }
        let is_note = users.iter().all(IndexUser::is_socket);
        let cause = SocketCause::IndexEnds { index, users, why };
        Some(if is_note {
            cause.info(&link.name)
        } else {
            cause.warning(&link.name)
        })
    });
    named.collect()
}

/// What names an ifindex that its link does not have any more: an error where the link is there with another one. No link has the former
/// one, or another link. A link that is away, such as a tunnel, may be so by intention.
#[must_use]
pub fn dead(known: &IndexUses, host: &NetState, recorded: Option<&NodeState>) -> Vec<Problem> {
    let unread = known.unread.iter().cloned();
    let unread = unread.map(|what| SocketCause::IndexUnread { what }.info("host"));
    let dead = known.users.iter().filter_map(|(then, users)| {
        let by = holder(*then, host);
        let Some(former) = recorded.and_then(|recorded| FormerLink::of(*then, recorded)) else {
            let users = users.clone();
            let cause = SocketCause::IndexUnknown { users };
            return by.is_none().then(|| cause.info(format!("ifindex {then}")));
        };
        let link = former.present(host).filter(|link| link.index != *then)?;
        let anew = known.users.get(&link.index).map_or(&[][..], Vec::as_slice);
        let mut users = users.clone();
        users.retain(|user| !is_bound_again(user, anew));
        (!users.is_empty()).then(|| {
            let cause = SocketCause::IndexDead {
                then: *then,
                now: link.index,
                by: by.map(|by| by.name.clone()),
                users,
                is_older: former.is_older,
            };
            cause.error(&link.name)
        })
    });
    unread.chain(dead).collect()
}

/// The ifindexes that something names and that their links do not have any more, as far as a record knows them: the next record keeps
/// them. That of a link which is away may become another link's.
#[must_use]
pub fn former(
    known: &IndexUses,
    host: &NetState,
    recorded: Option<&NodeState>,
) -> BTreeMap<u32, IfName> {
    let known = known.users.keys().filter_map(|index| {
        let former = FormerLink::of(*index, recorded?)?;
        let name = match (former.present(host), holder(*index, host)) {
            (Some(now), _) if now.index == *index => return None,
            (Some(now), _) => &now.name,
            (None, None) => former.name,
            (None, Some(_)) => return None,
        };
        Some((*index, name.clone()))
    });
    known.collect()
}

/// Whether this link has the ifindex that another one had by the record, and that one is there with another.
pub(crate) fn is_taken(link: &Link, host: &NetState, recorded: &NodeState) -> bool {
    let former = FormerLink::of(link.index, recorded);
    let former = former.and_then(|former| former.present(host));
    former.is_some_and(|former| former.index != link.index)
}

/// The link that has an ifindex now.
fn holder(index: u32, host: &NetState) -> Option<&Link> {
    host.links.iter().find(|link| link.index == index)
}

/// The link that had an ifindex.
struct FormerLink<'a> {
    name: &'a IfName,
    /// As it was recorded.
    link: Option<&'a Link>,
    /// Whether it had another one already when it was recorded.
    is_older: bool,
}

impl<'a> FormerLink<'a> {
    fn of(index: u32, recorded: &'a NodeState) -> Option<Self> {
        // What has that ifindex in the record had it already when something named the former link.
        if let Some(name) = recorded.former_indexes.get(&index) {
            return Some(Self {
                name,
                link: recorded.state.link(name),
                is_older: true,
            });
        }
        let mut links = recorded.state.links.iter();
        let link = links.find(|link| link.index == index)?;
        Some(Self {
            name: &link.name,
            link: Some(link),
            is_older: false,
        })
    }

    /// The same link now.
    fn present<'n>(&self, host: &'n NetState) -> Option<&'n Link> {
        let hardware = self.link.and_then(|link| link.hardware.as_ref());
        host.present(self.name, hardware)
    }
}

/// Whether a program that has this socket has the same on the present link.
fn is_bound_again(user: &IndexUser, anew: &[IndexUser]) -> bool {
    let IndexUser::Socket { name, programs } = user else {
        return false;
    };
    let is_same = |other: &IndexUser| match other {
        IndexUser::Socket {
            name: other,
            programs: theirs,
        } => other == name && programs.iter().any(|one| theirs.contains(one)),
        _ => false,
    };
    anew.iter().any(is_same)
}
