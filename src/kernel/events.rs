//! Waiting for link events of the host's namespace, instead of asking again and again.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rtnetlink::{MulticastGroup, new_multicast_connection};

use super::{Error, Socket, trace};

/// The multicast group of link changes (linux/rtnetlink.h).
const RTNLGRP_LINK: u32 = 1;

/// Hears of links that stop carrying anything.
#[derive(Debug)]
pub struct Losses {
    socket: Socket,
}

impl Losses {
    /// Listens to the calling thread's namespace from here on.
    ///
    /// # Errors
    /// The errno of opening or subscribing.
    pub fn listen() -> Result<Self, Error> {
        let mut socket = Socket::open_here()?;
        socket.join(RTNLGRP_LINK)?;
        Ok(Self { socket })
    }

    /// The names of the links that were deleted, went down or lost their carrier; waits so long for one.
    ///
    /// # Errors
    /// The errno of poll(2) or recv(2); `ENOBUFS` when more happened than could be remembered.
    pub fn next(&mut self, limit: Duration) -> Result<Vec<String>, Error> {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let messages = self.socket.receive()?.into_iter().filter_map(|(_, message)| message.ok());
        Ok(messages.filter_map(|message| lost(message.payload)).collect())
    }
}

fn lost(payload: NetlinkPayload<RouteNetlinkMessage>) -> Option<String> {
    let link = match payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => link,
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))
            if !link.header.flags.contains(LinkFlags::LowerUp) =>
        {
            link
        }
        _ => return None,
    };
    link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })
}

/// Calls `ready` now and after every link event of the calling thread's namespace, until it says yes.
///
/// Returns whether it did before `limit` was over. The subscription is made before the first call, so no
/// event between the two is missed.
///
/// # Errors
/// When the kernel refuses the subscription, or `ready` fails.
pub fn wait_for_link<E: From<Error>>(
    limit: Duration,
    mut ready: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let deadline = Instant::now() + limit;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map_err(Error::from)?.block_on(async {
        let (connection, _handle, mut events) =
            new_multicast_connection(&[MulticastGroup::Link]).map_err(Error::from)?;
        tokio::spawn(connection);
        loop {
            if ready()? {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, events.next()).await {
                Ok(Some((event, _))) => trace::event(&event.payload),
                Ok(None) => return Err(E::from(Error::Decode("the event stream ended".to_owned()))),
                Err(_) => return ready(),
            }
        }
    })
}
