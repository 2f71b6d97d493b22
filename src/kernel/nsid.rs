//! The numbers by which one namespace names another (`IFLA_LINK_NETNSID`, ip-netns(8)).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use super::{Errno, Error, Netns, Socket};

/// The number by which a namespace names the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostId {
    /// This one.
    Known(i32),
    /// None: so no link in that namespace stands on one of the host's.
    Unassigned,
    /// The kernel has no such numbers (before 4.0).
    Unsupported,
}

/// The number by which the socket's namespace names `host`.
///
/// # Errors
/// The kernel's errno.
pub fn of(socket: &mut Socket, host: &Netns) -> Result<HostId, Error> {
    let fd = u32::try_from(host.raw_fd()).unwrap_or(u32::MAX);
    let mut request = NsidMessage::default();
    request.attributes.push(NsidAttribute::Fd(fd));
    let answer = match socket.get(&RouteNetlinkMessage::GetNsId(request)) {
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => return Ok(HostId::Unsupported),
        answer => answer?,
    };
    let RouteNetlinkMessage::NewNsId(answer) = answer else { return Ok(HostId::Unassigned) };
    let id =
        answer.attributes.iter().find_map(|a| if let NsidAttribute::Id(id) = a { Some(*id) } else { None });
    Ok(id.filter(|id| *id >= 0).map_or(HostId::Unassigned, HostId::Known))
}
