//! nsids: the numbers by which one namespace refers to another (`IFLA_LINK_NETNSID`, ip-netns(8)).

use std::collections::BTreeSet;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use crate::kernel::{Errno, Error, Netns, Request, Socket};

/// The kernel chooses one (`NETNSA_NSID_NOT_ASSIGNED`, `linux/net_namespace.h`).
const ANY: i32 = -1;

/// The host's nsid in another namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostId {
    /// This one.
    Known(i32),
    /// There is none: no link of that namespace has a parent on the host.
    Unassigned,
    /// The kernel has no nsids (before 4.0).
    Unsupported,
}

/// The nsid of `host` in the socket's namespace.
pub fn of(socket: &mut Socket, host: &Netns) -> Result<HostId, Error> {
    let fd = u32::try_from(host.raw_fd()).unwrap_or(u32::MAX);
    let mut request = NsidMessage::default();
    request.attributes.push(NsidAttribute::Fd(fd));
    let answer = match socket.get(RouteNetlinkMessage::GetNsId(request)) {
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(HostId::Unsupported),
        answer => answer?,
    };
    let RouteNetlinkMessage::NewNsId(answer) = answer else {
        return Ok(HostId::Unassigned);
    };
    let id = answer.attributes.iter().find_map(id);
    Ok(id.map_or(HostId::Unassigned, HostId::Known))
}

/// The nsids of the socket's namespace: each is that of a namespace that exists. A link was moved from here to there, or has its peer
/// there.
pub(crate) fn all(socket: &mut Socket) -> Result<BTreeSet<i32>, Error> {
    dumped(socket, RouteNetlinkMessage::GetNsId(NsidMessage::default()))
}

/// The nsids by which the links of the socket's namespace refer to their peers.
pub(crate) fn of_peers(socket: &mut Socket) -> Result<BTreeSet<i32>, Error> {
    dumped(socket, RouteNetlinkMessage::GetLink(LinkMessage::default()))
}

fn dumped(socket: &mut Socket, request: RouteNetlinkMessage) -> Result<BTreeSet<i32>, Error> {
    let dump = match socket.dump(request) {
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(BTreeSet::new()),
        dump => dump?,
    };
    let ids = dump.objects.into_iter().flat_map(|one| match one {
        RouteNetlinkMessage::NewNsId(one) => one.attributes.iter().filter_map(id).collect(),
        RouteNetlinkMessage::NewLink(one) => one.attributes.iter().filter_map(of_peer).collect(),
        _ => Vec::new(),
    });
    Ok(ids.collect())
}

fn of_peer(attribute: &LinkAttribute) -> Option<i32> {
    match attribute {
        LinkAttribute::LinkNetNsId(id) => Some(*id),
        _ => None,
    }
}

/// The nsid, where there is one.
fn id(attribute: &NsidAttribute) -> Option<i32> {
    match attribute {
        NsidAttribute::Id(id) => Some(*id).filter(|id| *id >= 0),
        _ => None,
    }
}

/// Gives `other` an nsid in the socket's namespace, where it has none, as `ip netns set NAME auto` does. It lasts as long as
/// `other`, and holds neither of them.
pub fn assign(socket: &mut Socket, other: &Netns) -> Result<(), Error> {
    let fd = u32::try_from(other.raw_fd()).unwrap_or(u32::MAX);
    let mut request = NsidMessage::default();
    request.attributes = vec![NsidAttribute::Fd(fd), NsidAttribute::Id(ANY)];
    let message = RouteNetlinkMessage::NewNsId(request);
    match socket.run_one(Request::new(message, 0))? {
        Err(errno) if errno != Errno::EEXIST => Err(errno.into()),
        _ => Ok(()),
    }
}
