//! What of the host names a link by its ifindex, and the kernel keeps when the link is recreated with another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::net::link::index::{IndexUser, IndexUses};
use crate::model::problem::{KeptIndex, SocketCause};
use crate::model::{IfName, Link, LinkKind, NetState, NodeState, Problem};

/// Whether a restore gives a link of the host its ifindex back: a device unless it is among those that keep another one; a link that
/// netfix creates has it from the start.
#[must_use]
pub fn is_index_restored(link: &Link, kept: &BTreeMap<u32, KeptIndex>) -> bool {
    match link.kind {
        LinkKind::Physical => !kept.contains_key(&link.index),
        _ => link.can_be_made(),
    }
}

/// What names one of these links, which can be lost. A program that must be restarted is a note, as that of another socket.
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
        let is_restored = is_index_restored(link, kept);
        let is_note = is_restored || users.iter().all(IndexUser::is_socket);
        let cause = SocketCause::IndexNamed {
            index,
            users,
            is_restored,
        };
        Some(if is_note {
            cause.info(&link.name)
        } else {
            cause.warning(&link.name)
        })
    });
    named.collect()
}

/// What names an ifindex that no link has: an error where its link is there with another one. A link that is away, such as a tunnel,
/// may be so by intention.
#[must_use]
pub fn dead(known: &IndexUses, host: &NetState, recorded: Option<&NodeState>) -> Vec<Problem> {
    let unread = known.unread.iter().cloned();
    let unread = unread.map(|what| SocketCause::IndexUnread { what }.info("host"));
    let dead = dead_indexes(known, host).filter_map(|(then, users)| {
        let Some(former) = recorded.and_then(|recorded| FormerLink::of(then, recorded)) else {
            let users = users.clone();
            return Some(SocketCause::IndexUnknown { users }.info(format!("ifindex {then}")));
        };
        let link = former.present(host)?;
        let anew = known.users.get(&link.index).map_or(&[][..], Vec::as_slice);
        let mut users = users.clone();
        users.retain(|user| !is_bound_again(user, anew));
        let cause = SocketCause::IndexDead {
            then,
            now: link.index,
            users,
            is_older: former.is_older,
        };
        matches!(&cause, SocketCause::IndexDead { users, .. } if !users.is_empty())
            .then(|| cause.error(&link.name))
    });
    unread.chain(dead).collect()
}

/// The ifindexes that no link has, that something names, and of which a record knows the link: the next record keeps them.
#[must_use]
pub fn former(
    known: &IndexUses,
    host: &NetState,
    recorded: Option<&NodeState>,
) -> BTreeMap<u32, IfName> {
    let known = dead_indexes(known, host).filter_map(|(index, _)| {
        let former = FormerLink::of(index, recorded?)?;
        let now = former.present(host).map(|link| &link.name);
        Some((index, now.unwrap_or(former.name).clone()))
    });
    known.collect()
}

fn dead_indexes<'a>(
    known: &'a IndexUses,
    host: &'a NetState,
) -> impl Iterator<Item = (u32, &'a Vec<IndexUser>)> {
    let is_dead = |index: u32| host.links.iter().all(|link| link.index != index);
    let users = known.users.iter();
    users.filter_map(move |(index, users)| is_dead(*index).then_some((*index, users)))
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
        let mut links = recorded.state.links.iter();
        if let Some(link) = links.find(|link| link.index == index) {
            return Some(Self {
                name: &link.name,
                link: Some(link),
                is_older: false,
            });
        }
        let name = recorded.former_indexes.get(&index)?;
        Some(Self {
            name,
            link: recorded.state.link(name),
            is_older: true,
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
