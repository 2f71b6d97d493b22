//! Creates the pods' links from the host's namespace, all pods in few sends.

use crate::kernel::link::{self, Placement};
use crate::kernel::{Errno, Error, Netns, Request, Socket};
use crate::model::{IfName, Link, LinkKind, NetState, Parent};

/// The namespace of a missing link, and the link.
pub(crate) type Creation<'a> = (&'a Netns, &'a Link);

/// Creates the links, each in one message with its final name, index, MAC and MTU; the results are in order.
///
/// Kernels before 6.15 look the name and index up in the sender's namespace and answer `EEXIST` where the host has
/// them; such a link is created under a temporary name, moved, and renamed by the move. Fails when the host's socket
/// fails.
pub(crate) fn create(
    socket: &mut Socket,
    host: &NetState,
    creations: &[Creation<'_>],
) -> Result<Vec<Result<(), Errno>>, Error> {
    let direct = |(netns, link): &Creation<'_>| {
        if leftover(host, link).is_some() {
            return Err(Errno::EEXIST);
        }
        let index = Some(link.index).filter(|index| *index != 0);
        request(host, link, &link.name, index, Some(netns))
    };
    let requests: Vec<_> = creations.iter().map(direct).collect();
    let sendable: Vec<Request> = requests.iter().flatten().cloned().collect();
    let mut answers = socket.run(&sendable)?.into_iter();
    let mut results = Vec::with_capacity(creations.len());
    for (creation, request) in creations.iter().zip(requests) {
        let result = request.and_then(|_| answers.next().unwrap_or(Err(Errno::EIO)));
        results.push(match result {
            Err(Errno::EEXIST | Errno::EBUSY) => detour(socket, host, creation)?,
            other => other,
        });
    }
    Ok(results)
}

/// The request for a link on one of the host's, under this name.
fn request(
    host: &NetState,
    link: &Link,
    name: &IfName,
    index: Option<u32>,
    netns: Option<&Netns>,
) -> Result<Request, Errno> {
    let Some(Parent::Host(parent)) = &link.parent else {
        return Err(Errno::EINVAL);
    };
    let parent = host.link(parent).ok_or(Errno::ENODEV)?;
    let place = Placement {
        name,
        index,
        netns: netns.map(Netns::raw_fd),
        parent: Some(parent.index),
    };
    link::add(link, place)
}

/// Through a temporary name in the host's namespace.
fn detour(
    socket: &mut Socket,
    host: &NetState,
    (netns, link): &Creation<'_>,
) -> Result<Result<(), Errno>, Error> {
    let Some(name) = temporary_name(host, link) else {
        return Ok(Err(Errno::EEXIST));
    };
    let adopted = leftover(host, link).map(|link| link.index);
    let index = match adopted {
        Some(index) => index,
        None => match add_temporary(socket, host, link, &name)? {
            Ok(index) => index,
            Err(errno) => return Ok(Err(errno)),
        },
    };
    let moved = |wanted| link::move_to(index, netns.raw_fd(), &link.name, wanted);
    let mut result = socket.run_one(moved(link.index))?;
    if link.index != 0 && result.is_err() {
        // Its old index is taken in the pod; the link matters more than its number.
        result = socket.run_one(moved(0))?;
    }
    if result.is_err() && adopted.is_none() {
        socket.run_one(link::del(index))?.map_err(Error::from)?;
    }
    Ok(result)
}

fn add_temporary(
    socket: &mut Socket,
    host: &NetState,
    link: &Link,
    name: &IfName,
) -> Result<Result<u32, Errno>, Error> {
    let request = match request(host, link, name, None, None) {
        Ok(request) => request,
        Err(errno) => return Ok(Err(errno)),
    };
    match socket.run_one(request)? {
        Ok(()) => Ok(Ok(link::index_of(socket, name)?)),
        Err(errno) => Ok(Err(errno)),
    }
}

/// The begin of a temporary name.
const PREFIX: &str = "nfx";

/// What an interrupted run left in the host's namespace on this link's way to its pod. A tenant may choose such a name too: the
/// link must be what netfix would create, on the same parent, and down.
fn leftover<'a>(host: &'a NetState, link: &Link) -> Option<&'a Link> {
    let Some(Parent::Host(parent)) = &link.parent else {
        return None;
    };
    let is_ours = |found: &&Link| {
        found.name.as_str().starts_with(PREFIX)
            && is_same_kind(&found.kind, &link.kind)
            && found.mac == link.mac
            && found.parent == Some(Parent::Own(parent.clone()))
            && !found.flags.up
    };
    host.links.iter().find(is_ours)
}

fn is_same_kind(a: &LinkKind, b: &LinkKind) -> bool {
    match (a, b) {
        (LinkKind::Macvlan(a), LinkKind::Macvlan(b)) => a.mode == b.mode,
        (LinkKind::Vlan(a), LinkKind::Vlan(b)) => (a.id, a.protocol) == (b.id, b.protocol),
        _ => false,
    }
}

/// A name that no link of the host has: `nfx`, and 12 hex digits that begin as the MAC.
fn temporary_name(host: &NetState, link: &Link) -> Option<IfName> {
    let mac = link
        .mac?
        .0
        .iter()
        .fold(0, |all, byte| all << 8 | u64::from(*byte));
    let names = (0..=0xff).map(|number| format!("{PREFIX}{:012x}", mac ^ number));
    let mut names = names.filter_map(|name| name.parse().ok());
    names.find(|name| host.link(name).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mac;
    use crate::model::link::{Flags, Macvlan, MacvlanMode, Vlan, VlanId};

    const MAC: Mac = Mac([2, 0, 0, 0x88, 1, 1]);

    fn link(name: &str, kind: LinkKind) -> Link {
        Link {
            mac: Some(MAC),
            flags: Flags::default(),
            ..Link::plain(name.parse().unwrap(), kind)
        }
    }

    fn vlan(id: u16) -> LinkKind {
        LinkKind::Vlan(Vlan::plain(VlanId::try_from(id).unwrap()))
    }

    fn on(parent: Parent, link: Link) -> Link {
        Link {
            parent: Some(parent),
            ..link
        }
    }

    #[test]
    fn what_an_interrupted_run_left_is_exactly_what_a_run_creates() {
        let eth0 = || "eth0".parse().unwrap();
        let macvlan = |mode| LinkKind::Macvlan(Macvlan::plain(mode));
        let bridge = || macvlan(MacvlanMode::Bridge);
        let is_found = |parent, found: LinkKind, wanted: LinkKind| {
            let host = NetState {
                links: vec![on(parent, link("nfx020000880101", found))],
                ..NetState::default()
            };
            leftover(&host, &on(Parent::Host(eth0()), link("eth0", wanted))).is_some()
        };
        let own = || Parent::Own(eth0());
        assert!(is_found(own(), bridge(), bridge()));
        assert!(is_found(own(), vlan(5), vlan(5)));
        assert!(!is_found(own(), vlan(5), vlan(6)));
        assert!(!is_found(own(), bridge(), vlan(5)));
        assert!(!is_found(own(), macvlan(MacvlanMode::Private), bridge()));
        // A tenant's, whose lower device is in its own namespace.
        assert!(!is_found(Parent::Elsewhere, bridge(), bridge()));
        let other = Parent::Own("eth1".parse().unwrap());
        assert!(!is_found(other, bridge(), bridge()));
    }

    #[test]
    fn a_taken_temporary_name_is_not_used() {
        let wanted = link("eth0", vlan(5));
        let mut host = NetState::default();
        for name in ["nfx020000880101", "nfx020000880100"] {
            assert_eq!(temporary_name(&host, &wanted).unwrap().as_str(), name);
            host.links.push(link(name, vlan(7)));
        }
    }
}
