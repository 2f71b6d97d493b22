//! Raw Ethernet frames, sent through a link of the calling thread's namespace (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::fault::{point, retry_interrupted};

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
    #[allow(unsafe_code)]
    pub fn send(&self, index: u32, frame: &[u8]) -> io::Result<()> {
        let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).map_err(invalid)?,
            sll_protocol: 0,
            sll_ifindex: i32::try_from(index).map_err(invalid)?,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = u32::try_from(size_of::<libc::sockaddr_ll>())
            .map_err(|_| io::Error::other("address length"))?;
        let send = || {
            point("packet send")?;
            // SAFETY: `frame` and `address` are valid for reads of the lengths given, for the duration of the call.
            let sent = unsafe {
                libc::sendto(
                    self.0.as_raw_fd(),
                    frame.as_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw const address).cast(),
                    length,
                )
            };
            if sent < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        };
        retry_interrupted(send)
    }
}
