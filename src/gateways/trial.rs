//! The probe of one gateway: by ARP (RFC 826) or neighbour discovery (RFC 4861), and by a ping.
//!
//! netfix makes the kernel resolve the gateway in the namespace, from the interface, with its MAC and address, and hears when the
//! answer came. A packet socket would cost an RCU grace period per pod when it is closed. The ping is the namespace's own packet:
//! it is refused where those are, and answered where the kernel resolves nothing.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use super::question::Question;
use super::targets::process_id;
use super::way::{self, Obstacle, Way};
use crate::kernel::address::neighbour_probe::{self, NeighbourEntry, NeighbourEvent};
use crate::kernel::wire::icmp::Echo;
use crate::kernel::{Errno, Error, Socket};
use crate::model::Mac;

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// It answered, after so long, with this hardware address.
    Reachable {
        /// From the request to the answer; `None` when it is not known which request was answered.
        rtt: Option<Duration>,
        /// The hardware address of the answer.
        lladdr: Option<Mac>,
        /// When the first answer came.
        at: Instant,
    },
    /// It did not answer in time.
    Silent,
    /// It did not answer a ping, and the kernel does not resolve it.
    Static,
    /// Packets to it do not leave the namespace, or none to destinations behind it.
    Blocked(Obstacle),
    /// The kernel refused the probe.
    Refused(Errno),
    /// The namespace does not have the interface.
    NoInterface,
    /// The time for its namespace was used up.
    Late,
}

/// The kernel repeats an unanswered request after this long (`retrans_time_ms`).
const RETRANSMIT: Duration = Duration::from_secs(1);
/// Between two pings, as ping(8).
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is checked whether an address has become usable.
const RECHECK: Duration = Duration::from_millis(100);

pub(super) struct GatewayProbe<'a> {
    pub question: &'a Question,
    since: Instant,
    answer: Option<ProbeAnswer>,
    /// It answered late, to an unknown one of several requests, or before the namespace could send; it is probed once more.
    late: Option<ProbeAnswer>,
    /// What may pass: an address is not usable yet.
    obstacle: Option<Obstacle>,
    checked: Instant,
    way: Option<Way>,
    /// The link on which the kernel's entry was made for the probe.
    made: Option<u32>,
    /// The kernel does not resolve it.
    is_static: bool,
    ping: Option<Echo>,
}

impl<'a> GatewayProbe<'a> {
    pub(super) fn new(question: &'a Question) -> Self {
        let now = Instant::now();
        Self {
            answer: match question.index {
                _ if question.is_late => Some(ProbeAnswer::Late),
                None => Some(ProbeAnswer::NoInterface),
                Some(_) => None,
            },
            question,
            since: now,
            late: None,
            obstacle: None,
            checked: now,
            way: None,
            made: None,
            is_static: false,
            ping: None,
        }
    }

    /// Whether it has no answer yet.
    pub(super) fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// The link on which the kernel has an entry that was made for the probe.
    pub(super) fn made_entry(&self) -> Option<u32> {
        self.made
    }

    /// The socket that hears answers to a ping, while they count.
    pub(super) fn ping(&self) -> Option<&Echo> {
        self.ping.as_ref().filter(|_| self.is_open())
    }

    /// Ends it, if it has no answer yet, where this has failed.
    pub(super) fn note(&mut self, worked: Result<(), Error>) {
        if let Err(error) = worked {
            self.give_up(&error);
        }
    }

    /// Ends it, if it has no answer yet.
    pub(super) fn give_up(&mut self, error: &Error) {
        self.answer.get_or_insert(match error {
            Error::Late => ProbeAnswer::Late,
            _ => ProbeAnswer::Refused(error.errno().unwrap_or(Errno::EIO)),
        });
    }

    /// What came of it.
    pub(super) fn outcome(self) -> ProbeAnswer {
        let silence = if self.is_static {
            ProbeAnswer::Static
        } else {
            ProbeAnswer::Silent
        };
        let blocked = self.obstacle.map(ProbeAnswer::Blocked);
        self.answer.or(blocked).or(self.late).unwrap_or(silence)
    }

    /// Finds the way and sends the first requests; the calling thread must be inside the namespace.
    pub(super) fn begin(&mut self, socket: &mut Socket, pings: bool) -> Result<(), Error> {
        if !self.is_open() {
            return Ok(());
        }
        let question = self.question;
        let mut way = Way {
            index: question.index,
            ..Way::default()
        };
        match way::find(socket, question)? {
            Ok(found) => way = found,
            Err(obstacle) if question.path.is_waiting() => self.obstacle = Some(obstacle),
            Err(obstacle) => {
                let obstacle = way::with_rule(socket, question, obstacle)?;
                self.answer = Some(ProbeAnswer::Blocked(obstacle));
                return Ok(());
            }
        }
        self.take_advertisement();
        self.way = Some(way);
        self.is_static = way.index.is_some() && !question.has_neighbours;
        self.resolve(socket)?;
        if pings && !question.is_any_router() {
            let request = (!process_id(), 0);
            let ping = Echo::open(
                self.destination(),
                request,
                Some(&question.dev),
                way.selector,
            );
            self.ping = ping.ok();
        }
        self.send_ping();
        Ok(())
    }

    /// The gateway's address, with the link of a link-local one.
    fn destination(&self) -> SocketAddr {
        match self.question.gateway {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => {
                let scope = self.question.index.unwrap_or_default();
                SocketAddrV6::new(ip, 0, 0, scope).into()
            }
            ip => SocketAddr::new(ip, 0),
        }
    }

    /// The link on which the kernel resolves it.
    fn neighbour(&self) -> Option<u32> {
        let index = self.way.and_then(|way| way.index);
        index.filter(|_| self.question.has_neighbours)
    }

    /// Makes the kernel resolve it: with a new entry where it has none, else again.
    fn resolve(&mut self, socket: &mut Socket) -> Result<(), Error> {
        let gateway = self.question.gateway;
        let Some(index) = self.neighbour() else {
            return Ok(());
        };
        let request = match neighbour_probe::lookup(socket, index, gateway)? {
            NeighbourEntry::Static => {
                self.is_static = true;
                return Ok(());
            }
            NeighbourEntry::Unknown => {
                self.made = Some(index);
                neighbour_probe::resolve(index, gateway)
            }
            NeighbourEntry::Known => neighbour_probe::reprobe(index, gateway),
        };
        self.since = Instant::now();
        if let Err(errno) = socket.run_one(request)? {
            self.answer = Some(ProbeAnswer::Refused(errno));
        }
        Ok(())
    }

    fn send_ping(&mut self) {
        let Some(ping) = self.ping.as_mut().filter(|_| self.answer.is_none()) else {
            return;
        };
        let sent = ping.send();
        let errno = sent.err().and_then(|error| error.raw_os_error());
        // A firewall. Of other errors, those of a lookup show more, and an address may not be usable yet.
        if errno == Some(libc::EPERM) {
            self.answer = Some(ProbeAnswer::Blocked(Obstacle::Refused(Errno::EPERM)));
        }
    }

    /// When something is to be done if no answer comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let ping = self.ping().map(|ping| ping.sent() + PING_INTERVAL);
        let check = self.obstacle.map(|_| self.checked + RECHECK);
        ping.into_iter()
            .chain(check)
            .min()
            .filter(|_| self.is_open())
    }

    /// Does what is due: looks the way up again, or sends another ping.
    pub(super) fn repeat(&mut self, socket: &mut Socket) -> Result<(), Error> {
        if self.obstacle.is_some() {
            self.checked = Instant::now();
            if way::find(socket, self.question)?.is_ok() {
                self.obstacle = None;
                self.answer = self.late.take();
                self.take_advertisement();
                self.send_ping();
            }
        }
        let is_due = |ping: &Echo| ping.sent().elapsed() >= PING_INTERVAL;
        if self.ping().is_some_and(is_due) {
            self.send_ping();
        }
        Ok(())
    }

    /// Whether a change in the neighbour table of its namespace is about it.
    pub(super) fn is_about(&self, event: &NeighbourEvent) -> bool {
        self.is_open()
            && self.neighbour() == Some(event.index)
            && self.question.gateway == event.dst
    }

    /// Takes a change in the neighbour table.
    pub(super) fn take(
        &mut self,
        event: &NeighbourEvent,
        socket: &mut Socket,
    ) -> Result<(), Error> {
        if event.reachable {
            let rtt = self.since.elapsed();
            let is_late = rtt >= RETRANSMIT;
            self.answered((!is_late).then_some(rtt), event.lladdr);
            if is_late && self.is_open() {
                self.resolve(socket)?;
            }
        } else if event.failed {
            // The kernel gives up after three requests; an IPv6 address in duplicate detection needs longer.
            self.resolve(socket)?;
        }
        Ok(())
    }

    /// Takes what has arrived at the socket of the pings.
    pub(super) fn take_ping(&mut self, socket: &mut Socket) -> Result<(), Error> {
        let answer = self.ping.as_mut().map(Echo::receive);
        // An error is the kernel's report of an unanswered request.
        let Some(Ok(Some(rtt))) = answer else {
            return Ok(());
        };
        let lladdr = match self.way.and_then(|way| way.index) {
            Some(index) => neighbour_probe::known_mac(socket, index, self.question.gateway)?,
            None => None,
        };
        self.answered(Some(rtt), lladdr);
        Ok(())
    }

    /// A router has answered if the namespace can send to other networks.
    fn take_advertisement(&mut self) {
        if self.question.is_any_router() && self.obstacle.is_none() {
            self.answer = Some(ProbeAnswer::Reachable {
                rtt: None,
                lladdr: None,
                at: Instant::now(),
            });
        }
    }

    /// It answered, to a known request if there is a round trip.
    fn answered(&mut self, rtt: Option<Duration>, lladdr: Option<Mac>) {
        let before = match self.late {
            Some(ProbeAnswer::Reachable { at, .. }) => Some(at),
            _ => None,
        };
        let at = before.unwrap_or_else(Instant::now);
        let answer = Some(ProbeAnswer::Reachable { rtt, lladdr, at });
        if rtt.is_some() && self.obstacle.is_none() {
            self.answer = answer;
        } else {
            self.late = answer;
        }
    }
}
