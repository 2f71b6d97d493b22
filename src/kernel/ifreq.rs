//! Requests on a link by its name (netdevice(7)), for what netlink does not have or answers dearly.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::{Error, Socket};
use crate::model::{IfName, Link, LinkKind};

/// `struct ifreq` with one member of its union.
#[repr(C)]
struct InterfaceRequest<T> {
    name: [u8; libc::IFNAMSIZ],
    member: T,
}

/// A socket of any family does. The services of the timers may open no Internet socket.
pub(super) fn open() -> Result<OwnedFd, Errno> {
    let (family, kind) = (AddressFamily::Unix, SockType::Datagram);
    socket(family, kind, SockFlag::SOCK_CLOEXEC, None)
}

/// One request; returns the member as the kernel left it.
///
/// # Safety
/// `T` is laid out like the member of the union in `struct ifreq` that the command uses, and what it points to is alive and
/// exclusively borrowed.
#[allow(unsafe_code)]
pub(super) unsafe fn ioctl<T>(
    socket: &impl AsFd,
    command: libc::c_ulong,
    name: &IfName,
    member: T,
) -> Result<T, Errno> {
    const {
        assert!(size_of::<InterfaceRequest<T>>() >= size_of::<libc::ifreq>());
    }
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        member,
    };
    let bytes = name.as_bytes();
    request.name[..bytes.len()].copy_from_slice(bytes);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `request` is as large as `struct ifreq`, alive and exclusively borrowed for the call; the caller answers for the
    // member.
    let result = unsafe { libc::ioctl(socket, command, &raw mut request) };
    Errno::result(result).map(|_| request.member)
}

/// The first link that is gone, replaced, or down since it was read, but for loopback. The kernel takes a link down before it
/// removes its routes and addresses, so that what was read of them may be incomplete. It takes no lock for this answer.
///
/// # Errors
/// Every errno but `ENODEV`.
pub fn lost<'a>(socket: &Socket, links: &'a [Link]) -> Result<Option<&'a Link>, Error> {
    for link in links {
        if link.kind != LinkKind::Loopback && is_lost(socket, link)? {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

#[allow(unsafe_code)]
fn is_lost(socket: &Socket, link: &Link) -> Result<bool, Errno> {
    // SAFETY: `ifr_ifindex`, padded to the size of the union.
    let index = unsafe { ioctl(socket, libc::SIOCGIFINDEX, &link.name, [0_u32; 6]) };
    match index.and_then(|[index, ..]| Ok((index, flags(socket, &link.name)?))) {
        Ok((index, flags)) => {
            let is_up = flags & libc::IFF_UP != 0;
            Ok(index != link.index || (link.flags.up && !is_up))
        }
        Err(Errno::ENODEV) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the link is up and the kernel has declared it operational.
pub(super) fn is_running(socket: &impl AsFd, link: &IfName) -> bool {
    flags(socket, link).is_ok_and(|flags| flags & libc::IFF_RUNNING != 0)
}

#[allow(unsafe_code)]
fn flags(socket: &impl AsFd, link: &IfName) -> Result<libc::c_int, Errno> {
    // SAFETY: `ifr_flags`, padded to the size of the union.
    let [flags, ..] = unsafe { ioctl(socket, libc::SIOCGIFFLAGS, link, [0_u16; 12]) }?;
    Ok(flags.into())
}
