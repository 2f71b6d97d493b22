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
    let Some(name) = temporary_name(link) else {
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

/// What an interrupted run left in the host's namespace on this link's way to its pod.
fn leftover<'a>(host: &'a NetState, link: &Link) -> Option<&'a Link> {
    let found = host.link(&temporary_name(link)?)?;
    let is_ours = is_same_kind(&found.kind, &link.kind) && found.mac == link.mac && !found.flags.up;
    is_ours.then_some(found)
}

/// VLANs on one link have different ids, but several may have the link's MAC.
fn is_same_kind(a: &LinkKind, b: &LinkKind) -> bool {
    match (a, b) {
        (LinkKind::Macvlan(_), LinkKind::Macvlan(_)) => true,
        (LinkKind::Vlan(a), LinkKind::Vlan(b)) => (a.id, a.protocol) == (b.id, b.protocol),
        _ => false,
    }
}

/// A name derived from the MAC, so that another run finds what an interrupted one left: `nfx` and 12 hex digits.
fn temporary_name(link: &Link) -> Option<IfName> {
    let hex = link.mac?.0.map(|byte| format!("{byte:02x}"));
    format!("nfx{}", hex.concat()).parse().ok()
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

    #[test]
    fn what_an_interrupted_run_left_is_known_by_name_mac_and_kind() {
        let macvlan = || LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
        let host = |kind| NetState {
            links: vec![link("nfx020000880101", kind)],
            ..NetState::default()
        };
        assert!(leftover(&host(macvlan()), &link("eth0", macvlan())).is_some());
        assert!(leftover(&host(vlan(5)), &link("eth0", vlan(5))).is_some());
        assert!(leftover(&host(vlan(5)), &link("eth0", vlan(6))).is_none());
        assert!(leftover(&host(macvlan()), &link("eth0", vlan(5))).is_none());
    }
}
