//! Link events of the calling thread's namespace, as `ip monitor link` shows them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkFlags;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::udev::UdevEvents;
use super::{Error, Netns, Socket, link, trace};
use crate::kernel::codec::message::Message;
use crate::kernel::netns::nsid;
use crate::model::IfName;

/// The multicast group of link changes (linux/rtnetlink.h).
const RTNLGRP_LINK: u32 = 1;
/// Those of addresses and routes: `RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV4_ROUTE`, `RTNLGRP_IPV6_IFADDR`, `RTNLGRP_IPV6_ROUTE`.
const RTNLGRP_ADDRESSES_AND_ROUTES: [u32; 4] = [5, 7, 9, 11];
/// How often a wait that can be interrupted checks for that.
const INTERVAL: Duration = Duration::from_millis(250);

/// The kernel declares a link operational up to a second after it got carrier (`net/core/link_watch.c`).
pub(crate) const LINKWATCH: Duration = Duration::from_millis(1500);
/// It does so in a work queue, which may come late on a busy machine.
pub(crate) const LATE_LINKWATCH: Duration = Duration::from_secs(10);

/// A subscription to link events.
#[derive(Debug)]
pub struct LinkEvents(Socket);

impl LinkEvents {
    /// Subscribes: every later event of the calling thread's namespace is received.
    pub fn subscribe() -> Result<Self, Error> {
        subscribe(RTNLGRP_LINK).map(Self)
    }

    /// Receives also the events of `others`, without a socket in them: that would keep their addresses alive after the end
    /// of their pods. One that cannot be added is left out.
    pub fn include(&mut self, others: impl IntoIterator<Item = Netns>) -> Result<(), Error> {
        // A socket that hears others would take their events for answers.
        let mut requests = Socket::open_here()?;
        for other in others {
            let _ = nsid::assign(&mut requests, &other);
        }
        self.0.hear_others()
    }

    /// The names of the links that were deleted, went down or lost their carrier; waits at most `limit` for an event.
    /// Fails with `ENOBUFS` when events were lost because the receive buffer was full.
    pub fn losses(&mut self, limit: Duration) -> Result<Vec<IfName>, Error> {
        if !self.wait(limit)? {
            return Ok(Vec::new());
        }
        let events = receive(&mut self.0)?;
        Ok(events.into_iter().filter_map(loss).collect())
    }

    /// The names of the links that were deleted since the last call.
    pub fn deleted(&mut self) -> Result<Vec<IfName>, Error> {
        let mut deleted = Vec::new();
        while self.wait(Duration::ZERO)? {
            let gone = self
                .changes()?
                .into_iter()
                .filter(|one| one.index.is_none());
            deleted.extend(gone.map(|one| one.name));
        }
        Ok(deleted)
    }

    /// What has changed since the last call. Blocks until there is an event.
    /// Fails with `ENOBUFS` when events were lost because the receive buffer was full.
    pub fn changes(&mut self) -> Result<Vec<LinkChange>, Error> {
        let events = receive(&mut self.0)?.into_iter();
        let change = |event| match event {
            RouteNetlinkMessage::DelLink(message) => Some(LinkChange {
                name: link::name(&message)?,
                index: None,
            }),
            RouteNetlinkMessage::NewLink(message) => Some(LinkChange {
                name: link::name(&message)?,
                index: Some(message.header.index),
            }),
            _ => None,
        };
        Ok(events.filter_map(change).collect())
    }

    /// Whether an event arrived within `limit`; a signal ends the wait early.
    fn wait(&self, limit: Duration) -> Result<bool, Error> {
        is_readable(&[self.0.as_fd()], limit)
    }

    /// Takes all events that have arrived.
    fn drain(&mut self) -> Result<(), Error> {
        while self.wait(Duration::ZERO)? {
            match receive(&mut self.0) {
                // More events than the buffer holds are events too.
                Ok(_) | Err(Error::Kernel(Errno::ENOBUFS)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// An event of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// Its name.
    pub name: IfName,
    /// Its ifindex; `None` where it was deleted.
    pub index: Option<u32>,
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether there is something to read within `limit`; a signal ends the wait early.
fn is_readable(sockets: &[BorrowedFd<'_>], limit: Duration) -> Result<bool, Error> {
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut sockets: Vec<_> = sockets
        .iter()
        .map(|socket| PollFd::new(*socket, PollFlags::POLLIN))
        .collect();
    match poll(&mut sockets, timeout) {
        Err(Errno::EINTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// A socket that receives the events of a multicast group (`RTNLGRP_*`) of the calling thread's namespace.
pub(super) fn subscribe(group: u32) -> Result<Socket, Error> {
    let mut socket = Socket::open_here()?;
    socket.join(group)?;
    Ok(socket)
}

/// The next events of such a socket; blocks until there is one.
pub(super) fn receive(socket: &mut Socket) -> Result<Vec<RouteNetlinkMessage>, Error> {
    let messages = socket.receive()?.into_iter();
    let objects = messages.filter_map(|(_, message)| match message.ok()?.payload {
        NetlinkPayload::InnerMessage(Message::Route(object)) => Some(object),
        _ => None,
    });
    Ok(objects.inspect(trace::event).collect())
}

/// The name of a link that carries nothing any more.
fn loss(event: RouteNetlinkMessage) -> Option<IfName> {
    match event {
        RouteNetlinkMessage::DelLink(link) => link::name(&link),
        RouteNetlinkMessage::NewLink(link) if !link.header.flags.contains(LinkFlags::LowerUp) => {
            link::name(&link)
        }
        _ => None,
    }
}

/// Calls `ready` now and after events of the calling thread's links, of the kernel and of udevd where that runs, until it
/// returns true, `until` has passed or `interrupted` returns true; returns the last result of `ready`.
///
/// The subscription comes before the first call, so no event is missed in between.
pub fn wait_for_link(
    until: Instant,
    interrupted: Option<&dyn Fn() -> bool>,
    ready: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    wait(LinkEvents::subscribe()?, until, interrupted, ready)
}

/// Waits like [`wait_for_link`], and calls `ready` also after events of addresses and routes. `interrupted` or anything else that
/// sends no event ends the wait within [`INTERVAL`].
pub fn wait_for_configuration(
    until: Instant,
    interrupted: Option<&dyn Fn() -> bool>,
    ready: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut all = LinkEvents::subscribe()?;
    for group in RTNLGRP_ADDRESSES_AND_ROUTES {
        all.0.join(group)?;
    }
    wait(all, until, Some(interrupted.unwrap_or(&|| false)), ready)
}

fn wait(
    mut links: LinkEvents,
    until: Instant,
    interrupted: Option<&dyn Fn() -> bool>,
    mut ready: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let longest = interrupted.map_or(Duration::MAX, |_| INTERVAL);
    let udev = UdevEvents::subscribe()?;
    let has_event = |links: &LinkEvents, left: Duration| {
        let udev = udev.as_ref().map(AsFd::as_fd);
        let all: Vec<_> = [links.0.as_fd()].into_iter().chain(udev).collect();
        is_readable(&all, left)
    };
    while !ready()? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || interrupted.is_some_and(|interrupted| interrupted()) {
            return Ok(false);
        }
        if has_event(&links, left.min(longest))? {
            links.drain()?;
            udev.as_ref().map_or(Ok(()), UdevEvents::drain)?;
        }
    }
    Ok(true)
}
