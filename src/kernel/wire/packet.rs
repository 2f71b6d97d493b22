//! Raw Ethernet frames, sent and received through links of the calling thread's namespace (packet(7)).

use std::io;
use std::num::TryFromIntError;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, bind, sendto, setsockopt,
    socket,
};
use nix::{setsockopt_impl, sockopt_impl};

use crate::fault::{point, retry_interrupted};
use crate::kernel::ifreq;
use crate::kernel::wire::icmp::wait;
use crate::model::{IfName, Mac};

sockopt_impl!(
    /// Drops what a classic BPF program does not accept (`socket(7)`).
    AttachFilter,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_ATTACH_FILTER,
    libc::sock_fprog
);
sockopt_impl!(
    /// Lets a link receive frames for one more MAC (packet(7)).
    AddMembership,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq
);

/// A packet socket for sending only: with protocol 0 it receives nothing.
#[derive(Debug)]
pub struct Sender(OwnedFd);

impl Sender {
    /// Opens the socket. One is enough for all links, and closing each costs an RCU grace period.
    pub fn open() -> io::Result<Self> {
        Ok(Self(socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?))
    }

    /// Sends a frame, including its Ethernet header, through the link with that index.
    pub fn send(&self, index: u32, frame: &[u8]) -> io::Result<()> {
        let to = link_address(index, 0)?;
        retry_interrupted(|| {
            point("packet send")?;
            sendto(self.0.as_raw_fd(), frame, &to, MsgFlags::empty())?;
            Ok(())
        })
    }
}

/// A link's address for a packet socket. `protocol` is an `ETH_P_*` number.
#[allow(unsafe_code)]
fn link_address(index: u32, protocol: libc::c_int) -> io::Result<LinkAddr> {
    let address = raw_address(index, protocol).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `address` is a whole `sockaddr_ll`, which is copied.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), None) };
    address.ok_or_else(|| Errno::EINVAL.into())
}

fn raw_address(index: u32, protocol: libc::c_int) -> Result<libc::sockaddr_ll, TryFromIntError> {
    Ok(libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET)?,
        sll_protocol: u16::try_from(protocol)?.to_be(),
        sll_ifindex: i32::try_from(index)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    })
}

/// A packet socket that also receives ARP and neighbour discovery of every link.
///
/// It receives all protocols (`ETH_P_ALL`), because a link hands a unicast frame for a macvlan to that macvlan alone, but to
/// such sockets before it does so. A filter in the kernel drops everything else.
#[derive(Debug)]
pub struct FrameListener(Sender);

/// Bytes of a frame that are read: more than ARP and neighbour discovery have.
const SNAPLEN: u32 = 256;
/// For a thousand answers at once, in bytes of the kernel's own count.
const RECEIVE_BUFFER: usize = 4 << 20;

impl FrameListener {
    /// Opens the socket. Closing it costs an RCU grace period.
    pub fn open() -> io::Result<Self> {
        let sender = Sender::open()?;
        let filter = filter();
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).unwrap_or_default(),
            filter: filter.as_ptr().cast_mut(),
        };
        // The filter first: no other frame is ever queued.
        setsockopt(&sender.0, AttachFilter, &program)?;
        setsockopt(&sender.0, RcvBufForce, &RECEIVE_BUFFER)?;
        bind(sender.0.as_raw_fd(), &link_address(0, libc::ETH_P_ALL)?)?;
        Ok(Self(sender))
    }

    /// This socket for sending: it does not receive what it sends.
    pub fn sender(&self) -> &Sender {
        &self.0
    }

    /// Lets the link with that index receive frames for this MAC, which is a group's or a link's that is not up yet, as long
    /// as the socket is open: a NIC drops others.
    pub fn accept(&self, index: u32, mac: Mac) -> io::Result<()> {
        let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let kind = if mac.is_group() {
            libc::PACKET_MR_MULTICAST
        } else {
            libc::PACKET_MR_UNICAST
        };
        let mut address = [0; 8];
        address[..mac.0.len()].copy_from_slice(&mac.0);
        let membership = libc::packet_mreq {
            mr_ifindex: i32::try_from(index).map_err(invalid)?,
            mr_type: u16::try_from(kind).map_err(invalid)?,
            mr_alen: 6,
            mr_address: address,
        };
        Ok(setsockopt(&self.0.0, AddMembership, &membership)?)
    }

    /// Whether the link sends frames to the wire: without carrier the kernel drops them.
    pub fn is_running(&self, link: &IfName) -> bool {
        ifreq::is_running(&self.0.0, link)
    }

    /// The next frame before that moment, with the index of the link that received it; `None` when there was none.
    pub fn receive(&self, until: Instant) -> io::Result<Option<(u32, Vec<u8>)>> {
        while wait(&self.0.0, until)? {
            match self.receive_one() {
                Ok(received) => return Ok(Some(received)),
                // A signal came, or one of the links went down.
                Err(Errno::EINTR | Errno::EAGAIN | Errno::ENETDOWN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// A frame that has arrived, with the index of the link that received it.
    pub fn receive_now(&self) -> Option<(u32, Vec<u8>)> {
        self.receive_one().ok()
    }

    /// nix would drop the address: before Linux 5.2 it has only as many bytes as the link's MAC needs.
    #[allow(unsafe_code)]
    fn receive_one(&self) -> nix::Result<(u32, Vec<u8>)> {
        let mut buffer = vec![0_u8; SNAPLEN as usize];
        let mut from = raw_address(0, 0).map_err(|_| Errno::EINVAL)?;
        let mut length = u32::try_from(size_of_val(&from)).unwrap_or_default();
        // SAFETY: `buffer` and `from` are valid for writes of the lengths given, for the duration of the call.
        let received = unsafe {
            libc::recvfrom(
                self.0.0.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        let received = usize::try_from(Errno::result(received)?).unwrap_or_default();
        buffer.truncate(received);
        Ok((u32::try_from(from.sll_ifindex).unwrap_or_default(), buffer))
    }
}

impl AsFd for FrameListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// ARP, neighbour solicitations and advertisements, as they come in. What this machine sends does not count, and a frame that
/// still has a VLAN tag belongs to another link (linux/filter.h; classic BPF).
fn filter() -> [libc::sock_filter; 14] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// `SKF_AD_OFF + SKF_AD_PKTTYPE` and `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`.
    const PACKET_TYPE: u32 = 0xffff_f004;
    const HAS_VLAN_TAG: u32 = 0xffff_f030;
    const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;
    let load = |code, k| libc::sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    let jump = |k, jt, jf| libc::sock_filter {
        code: JUMP_IF_EQUAL,
        jt,
        jf,
        k,
    };
    [
        load(LOAD_WORD, PACKET_TYPE),
        jump(OUTGOING, 11, 0),
        load(LOAD_WORD, HAS_VLAN_TAG),
        jump(0, 0, 9),
        // The type of the frame.
        load(LOAD_HALF, 12),
        jump(0x0806, 6, 0),
        jump(0x86dd, 0, 6),
        // The next header of IPv6, and the type of ICMPv6.
        load(LOAD_BYTE, 20),
        jump(58, 0, 4),
        load(LOAD_BYTE, 54),
        jump(135, 1, 0),
        jump(136, 0, 1),
        load(RETURN, SNAPLEN),
        load(RETURN, 0),
    ]
}
