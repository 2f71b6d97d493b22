//! ICMP echo (RFC 792) and `ICMPv6` echo (RFC 4443) from the calling thread's namespace.
//!
//! Raw sockets: `net.ipv4.ping_group_range` of a pod usually allows the unprivileged ones to no user, root included.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::{Duration, Instant};

use etherparse::{IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{BindToDevice, Mark};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, connect,
    recv, send, setsockopt, socket,
};

use crate::kernel::route::lookup::Selector;
use crate::model::IfName;

/// Between two requests, as ping(8).
const INTERVAL: Duration = Duration::from_secs(1);
const PAYLOAD: &[u8] = b"netfix verify: is there an answer?";

/// Sends echo requests until one is answered, and returns the round trip; `None` when none was answered in time. `id`
/// distinguishes the answers from those to other programs.
///
/// # Errors
/// The kernel's, of the last attempt: a source address may be tentative (RFC 4862) for the first seconds.
pub fn echo(to: IpAddr, id: u16, deadline: Instant) -> io::Result<Option<Duration>> {
    let mut failure = None;
    let mut number = 0;
    while Instant::now() < deadline {
        let until = deadline.min(Instant::now() + INTERVAL);
        match attempt(to, (id, number), until) {
            Ok(Some(rtt)) => return Ok(Some(rtt)),
            Ok(None) => failure = None,
            Err(error) => {
                failure = Some(error);
                thread::sleep(until.saturating_duration_since(Instant::now()));
            }
        }
        number = number.wrapping_add(1);
    }
    failure.map_or(Ok(None), Err)
}

/// One request, from a socket of its own: the kernel chooses the source address for it.
fn attempt(to: IpAddr, request: (u16, u16), until: Instant) -> io::Result<Option<Duration>> {
    let mut echo = Echo::open(SocketAddr::new(to, 0), request, None, Selector::default())?;
    echo.send()?;
    while wait(&echo.socket, until)? {
        if let Some(rtt) = echo.receive()? {
            return Ok(Some(rtt));
        }
    }
    Ok(None)
}

/// A socket that sends echo requests to one address and hears its answers.
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    to: SocketAddr,
    /// Distinguishes the answers from those to other programs, and to other requests.
    pub(crate) request: (u16, u16),
    sent: Instant,
}

impl Echo {
    /// Opens it in the calling thread's namespace. `dev` is the link to which the selector binds it.
    pub fn open(
        to: SocketAddr,
        request: (u16, u16),
        dev: Option<&IfName>,
        selector: Selector,
    ) -> io::Result<Self> {
        let (family, protocol) = match to {
            SocketAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
            SocketAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let kind = (family, SockType::Raw, Some(protocol));
        Ok(Self {
            socket: open(kind, dev, selector)?,
            to,
            request,
            sent: Instant::now(),
        })
    }

    /// Sends a request. The kernel chooses the source address of a socket with the first one.
    pub fn send(&mut self) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        // Only packets from that address are received.
        connect(fd, &SockaddrStorage::from(self.to))?;
        self.request.1 = self.request.1.wrapping_add(1);
        self.sent = Instant::now();
        let request = echo_request(self.to.ip(), self.request);
        send(fd, &request, MsgFlags::empty())?;
        Ok(())
    }

    /// When the last request was sent.
    #[must_use]
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// The round trip, if the last request has its answer. Takes all packets that have arrived.
    pub fn receive(&mut self) -> io::Result<Option<Duration>> {
        let mut answer = None;
        loop {
            let mut buffer = [0; 1500];
            let length = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Err(Errno::EAGAIN) => return Ok(answer),
                Err(Errno::EINTR) => continue,
                length => length?,
            };
            let packet = buffer.get(..length).unwrap_or_default();
            if is_answer(self.to.ip(), self.request, packet) {
                answer.get_or_insert(self.sent.elapsed());
            }
        }
    }
}

/// A socket whose packets are sent like this.
fn open(
    (family, kind, protocol): (AddressFamily, SockType, Option<SockProtocol>),
    dev: Option<&IfName>,
    selector: Selector,
) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, kind, flags, protocol)?;
    if let Some(mark) = selector.mark {
        setsockopt(&socket, Mark, &mark)?;
    }
    if let Some(dev) = dev.filter(|_| selector.bound.is_some()) {
        let name = OsStr::from_bytes(dev.as_bytes()).to_owned();
        setsockopt(&socket, BindToDevice, &name)?;
    }
    if let Some(source) = selector.source {
        let source = SockaddrStorage::from(SocketAddr::new(source, 0));
        bind(socket.as_raw_fd(), &source)?;
    }
    Ok(socket)
}

/// Whether the calling thread's namespace refuses to send UDP to that machine too (`EPERM`): a firewall that drops pings alone does not.
pub fn refuses_datagrams(mut to: SocketAddr, dev: &IfName, selector: Selector) -> bool {
    /// The port that discards what it gets (RFC 863).
    const DISCARD: u16 = 9;
    to.set_port(DISCARD);
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let sent = open((family, SockType::Datagram, None), Some(dev), selector).and_then(|socket| {
        connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
        send(socket.as_raw_fd(), &[], MsgFlags::empty())
    });
    sent == Err(Errno::EPERM)
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the socket has a packet before that moment.
pub(crate) fn wait(socket: &OwnedFd, until: Instant) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    let timeout =
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(
        &mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)],
        timeout,
    ) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// An echo request. The kernel adds the checksum of `ICMPv6`, which covers the IP header.
fn echo_request(to: IpAddr, (id, seq): (u16, u16)) -> Vec<u8> {
    let echo = IcmpEchoHeader { id, seq };
    let v4 = Icmpv4Header::with_checksum(Icmpv4Type::EchoRequest(echo), PAYLOAD);
    let v6 = Icmpv6Header::new(Icmpv6Type::EchoRequest(echo));
    match to {
        IpAddr::V4(_) => [&v4.to_bytes()[..], PAYLOAD].concat(),
        IpAddr::V6(_) => [&v6.to_bytes()[..], PAYLOAD].concat(),
    }
}

/// Whether a packet answers this request. An IPv4 packet has its IP header before the message.
fn is_answer(from: IpAddr, (id, number): (u16, u16), packet: &[u8]) -> bool {
    let (header, kind) = match from {
        IpAddr::V4(_) => (usize::from(packet.first().unwrap_or(&0) & 0xf) * 4, 0),
        IpAddr::V6(_) => (0, 129),
    };
    let [id, number] = [id.to_be_bytes(), number.to_be_bytes()];
    packet.get(header) == Some(&kind)
        && packet.get(header + 4..header + 6) == Some(&id)
        && packet.get(header + 6..header + 8) == Some(&number)
        && packet.get(header + 8..) == Some(PAYLOAD)
}

#[cfg(test)]
mod tests {
    use crate::kernel::wire::icmp::*;

    #[test]
    fn only_an_answer_to_the_own_request_counts() {
        let from: IpAddr = "fd00::1".parse().unwrap();
        let mut packet = echo_request(from, (5, 3));
        assert!(!is_answer(from, (5, 3), &packet), "the request itself");
        packet[0] = 129;
        assert!(is_answer(from, (5, 3), &packet));
        assert!(!is_answer(from, (6, 3), &packet));
        assert!(!is_answer(from, (5, 4), &packet));
        assert!(!is_answer(from, (5, 3), &packet[..6]));
        assert!(!is_answer("10.0.0.1".parse().unwrap(), (5, 3), &[0x4f]));
    }
}
