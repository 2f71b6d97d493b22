//! Sockets of other processes: what the kernel keeps in them, it tells only through them. They are asked, and nothing is changed in
//! them (`pidfd_getfd`, Linux 5.6).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{SockType, getsockopt, sockopt};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::socket;
use crate::model::{Bytes, IpFamily};

/// A process of which sockets are asked.
pub(crate) struct ForeignProcess(OwnedFd);

/// A second descriptor of a socket of another process.
pub(crate) struct ForeignSocket(OwnedFd);

/// The link of an open character device of a macvtap or ipvtap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TapLink {
    Named(Bytes),
    /// It is gone.
    Gone,
}

impl ForeignProcess {
    pub(crate) fn open(pid: u32) -> Result<Self, Errno> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(Errno::ESRCH)?;
        let opened = pidfd_open(pid, PidfdFlags::empty());
        opened.map(Self).map_err(errno)
    }

    /// The socket with this number in the process.
    pub(crate) fn socket(&self, number: RawFd) -> Result<ForeignSocket, Errno> {
        let got = pidfd_getfd(&self.0, number, PidfdGetfdFlags::empty());
        got.map(ForeignSocket).map_err(errno)
    }

    /// The link of the character device of a macvtap or ipvtap with this number in the process.
    #[allow(unsafe_code)]
    pub(crate) fn tap(&self, number: RawFd) -> Result<TapLink, Errno> {
        /// `TUNGETIFF` (`linux/if_tun.h`).
        const TUNGETIFF: libc::c_ulong = 0x8004_54d2;
        let got = pidfd_getfd(&self.0, number, PidfdGetfdFlags::empty()).map_err(errno)?;
        // `struct ifreq`: the name, and 24 bytes.
        let mut request = [0_u8; 40];
        // SAFETY: `request` is alive, exclusively borrowed for the call, and as long as the structure.
        let result = unsafe { libc::ioctl(got.as_raw_fd(), TUNGETIFF as _, &raw mut request) };
        match Errno::result(result) {
            Err(Errno::ENOLINK) => Ok(TapLink::Gone),
            Err(errno) => Err(errno),
            Ok(_) => {
                let name = request[..16].split(|byte| *byte == 0).next();
                Ok(TapLink::Named(Bytes::from(
                    name.unwrap_or_default().to_vec(),
                )))
            }
        }
    }
}

/// The inode of the socket that a link below `/proc/PID/fd` leads to: the number in `socket:[4711]`.
pub(crate) fn socket_inode(target: &OsStr) -> Option<u64> {
    let text = target.to_str()?.strip_prefix("socket:[")?;
    text.strip_suffix(']')?.parse().ok()
}

/// The major numbers of the character devices of these drivers.
pub(crate) fn majors(drivers: &[&str]) -> BTreeSet<u32> {
    let devices = fs::read_to_string("/proc/devices").unwrap_or_default();
    let lines = devices
        .lines()
        .filter_map(|line| line.trim().split_once(' '));
    lines
        .filter(|(_, driver)| drivers.contains(driver))
        .filter_map(|(major, _)| major.parse().ok())
        .collect()
}

/// The major number of the character device that a process has open with this number, without a request to a file system in user
/// space.
pub(crate) fn major(pid: u32, number: RawFd) -> Option<u32> {
    let path = format!("/proc/{pid}/fd/{number}");
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    let kind = FileType::from_raw_mode(found.stx_mode.into());
    kind.is_char_device().then_some(found.stx_rdev_major)
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// `struct group_filter` of linux/in.h without sources.
#[repr(C)]
struct GroupFilter {
    index: u32,
    group: SocketAddress,
    mode: u32,
    sources: u32,
}

/// `struct sockaddr_storage`.
#[repr(C, align(8))]
struct SocketAddress([u8; 128]);

impl ForeignSocket {
    /// The cookie of its namespace; `None` before Linux 5.14.
    pub(crate) fn netns_cookie(&self) -> Option<u64> {
        socket::netns_cookie(&self.0).ok().flatten()
    }

    /// Whether a socket of this type can be in a group, or route multicast.
    pub(crate) fn may_join(&self) -> bool {
        let kind = getsockopt(&self.0, sockopt::SockType);
        matches!(kind, Ok(SockType::Datagram | SockType::Raw))
    }

    /// Whether it joined this group on the link that had this ifindex. It keeps that when the link is gone.
    pub(crate) fn has_joined(&self, index: u32, group: IpAddr) -> bool {
        /// The same for both families (linux/in.h, linux/in6.h).
        const MCAST_MSFILTER: libc::c_int = 48;
        let mut address = [0; 128];
        let (level, family) = match group {
            IpAddr::V4(group) => {
                address[4..8].copy_from_slice(&group.octets());
                (libc::IPPROTO_IP, libc::AF_INET)
            }
            IpAddr::V6(group) => {
                address[8..24].copy_from_slice(&group.octets());
                (libc::IPPROTO_IPV6, libc::AF_INET6)
            }
        };
        let family = u16::try_from(family).unwrap_or_default();
        address[..2].copy_from_slice(&family.to_ne_bytes());
        let mut filter = GroupFilter {
            index,
            group: SocketAddress(address),
            mode: 0,
            sources: 0,
        };
        self.get(level, MCAST_MSFILTER, &mut filter).is_ok()
    }

    /// Whether it can be the socket of a multicast routing daemon.
    pub(crate) fn may_route(&self, family: IpFamily) -> bool {
        /// `MRT_VERSION` and `MRT6_VERSION` (linux/mroute.h, linux/mroute6.h).
        const VERSION: libc::c_int = 206;
        let level = match family {
            IpFamily::V4 => libc::IPPROTO_IP,
            IpFamily::V6 => libc::IPPROTO_IPV6,
        };
        self.get(level, VERSION, &mut 0_u32).is_ok()
    }

    #[allow(unsafe_code)]
    fn get<T>(&self, level: libc::c_int, name: libc::c_int, value: &mut T) -> Result<(), Errno> {
        let mut length = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| Errno::EINVAL)?;
        // SAFETY: `value` is alive and exclusively borrowed for the call, and `length` is its size.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_fd().as_raw_fd(),
                level,
                name,
                std::ptr::from_mut(value).cast(),
                &raw mut length,
            )
        };
        Errno::result(result).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_of_a_socket_is_in_its_link() {
        assert_eq!(socket_inode(OsStr::new("socket:[4711]")), Some(4711));
        for other in ["pipe:[4711]", "socket:[]", "/dev/tap3 (deleted)"] {
            assert_eq!(socket_inode(OsStr::new(other)), None, "{other}");
        }
    }
}
