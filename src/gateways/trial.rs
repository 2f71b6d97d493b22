//! The probe of one gateway: by ARP (RFC 826) or neighbour discovery (RFC 4861), and by a ping.
//!
//! netfix makes the kernel resolve the gateway in the namespace, from the interface, with its MAC and address, and hears when the
//! answer came. A packet socket would cost an RCU grace period per pod when it is closed. The ping is the namespace's own packet:
//! it is refused where those are, and answered where the kernel resolves nothing.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use super::answers::GatewayReply;
use super::question::Question;
use super::recorded::PastAnswer;
use super::targets::process_id;
use super::way::{self, Obstacle, Way};
use crate::kernel::address::neighbour_probe::{self, NeighbourEntry, NeighbourEvent};
use crate::kernel::wire::icmp::{self, Echo};
use crate::kernel::{Errno, Error, Socket};
use crate::model::Mac;

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    Reachable(GatewayReply),
    /// It answers ARP or neighbour discovery, and no pings any more.
    ArpOnly(GatewayReply),
    /// It did not answer in time.
    Silent,
    /// It did not answer a ping, and the kernel does not resolve it.
    Static,
    /// No answer was heard, and what its link receives goes to another link.
    Redirected,
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
/// How long a ping may take after an answer to ARP where it is not known that pings are answered.
const GRACE: Duration = Duration::from_millis(250);
/// How often it is checked whether an address has become usable.
const RECHECK: Duration = Duration::from_millis(100);

pub(super) struct GatewayProbe<'a> {
    pub question: &'a Question,
    since: Instant,
    answer: Option<ProbeAnswer>,
    /// What it has answered so far.
    reply: Option<GatewayReply>,
    /// What may pass: an address is not usable yet.
    obstacle: Option<Obstacle>,
    checked: Instant,
    way: Option<Way>,
    /// The link on which the kernel's entry was made for the probe.
    made: Option<u32>,
    /// The kernel does not resolve it.
    is_static: bool,
    /// What its link receives goes to another link; `None` while that was not asked.
    pub is_redirected: Option<bool>,
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
            reply: None,
            obstacle: None,
            checked: now,
            way: None,
            made: None,
            is_static: false,
            is_redirected: None,
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
        let before = self.question.before;
        let silence = match self.is_redirected {
            _ if before == PastAnswer::Ping => ProbeAnswer::Silent,
            _ if self.is_static => ProbeAnswer::Static,
            Some(true) if before != PastAnswer::Arp => ProbeAnswer::Redirected,
            _ => ProbeAnswer::Silent,
        };
        let is_mute = before == PastAnswer::Ping && self.ping.is_some();
        let reply = self.reply.map(|reply| {
            if is_mute && !reply.ping {
                ProbeAnswer::ArpOnly(reply)
            } else {
                ProbeAnswer::Reachable(reply)
            }
        });
        let blocked = self.obstacle.map(ProbeAnswer::Blocked);
        self.answer.or(blocked).or(reply).unwrap_or(silence)
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
            self.ping = self.open_ping();
        }
        if self.send_ping() == Some(Errno::EPERM)
            && icmp::refuses_datagrams(self.destination(), &question.dev, way.selector)
        {
            let obstacle = Obstacle::Refused(Errno::EPERM);
            self.answer = Some(ProbeAnswer::Blocked(obstacle));
        }
        Ok(())
    }

    /// A socket for pings in the namespace of the calling thread.
    fn open_ping(&self) -> Option<Echo> {
        let number = self.ping.as_ref().map_or(0, |ping| ping.request.1);
        let (request, dev) = ((!process_id(), number), Some(&self.question.dev));
        Echo::open(self.destination(), request, dev, self.way?.selector).ok()
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

    /// Sends a ping; returns why none could be sent. No other is sent after one that a firewall dropped: of other errors, those of a
    /// lookup show more. None is sent while an address is not usable yet: the socket keeps the source of its first request.
    fn send_ping(&mut self) -> Option<Errno> {
        let may_send = self.answer.is_none() && self.obstacle.is_none();
        let ping = self.ping.as_mut().filter(|_| may_send)?;
        let errno = ping.send().err()?.raw_os_error().map(Errno::from_raw)?;
        if errno == Errno::EPERM {
            self.ping = None;
            self.settle();
        }
        Some(errno)
    }

    /// When something is to be done if no answer comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let ping = self.ping().filter(|_| self.obstacle.is_none());
        let ping = ping.map(|ping| ping.sent() + PING_INTERVAL);
        let check = self.obstacle.map(|_| self.checked + RECHECK);
        ping.into_iter()
            .chain(check)
            .chain(self.grace())
            .min()
            .filter(|_| self.is_open())
    }

    /// Does what is due, in its namespace: looks the way up again, or sends another ping.
    pub(super) fn repeat(&mut self, socket: &mut Socket) -> Result<(), Error> {
        if self.obstacle.is_some() {
            self.checked = Instant::now();
            if way::find(socket, self.question)?.is_ok() {
                self.obstacle = None;
                self.take_advertisement();
                self.send_ping();
            }
        }
        let is_due = |ping: &Echo| ping.sent().elapsed() >= PING_INTERVAL;
        if self.ping().is_some_and(is_due) {
            // The first one may have a source that was chosen too early.
            self.ping = self.open_ping();
            self.send_ping();
        }
        self.settle();
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
            self.take_arp((!is_late).then_some(rtt), event.lladdr);
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
        self.take_reply(GatewayReply {
            rtt: Some(rtt),
            lladdr,
            at: Instant::now(),
            arp: false,
            ping: true,
        });
        Ok(())
    }

    /// Whether it may have answered although its namespace does not see that: it is silent, and only the frames on its link were not
    /// looked at yet.
    pub(super) fn is_suspect(&self) -> bool {
        let is_silent = self.is_open() && self.reply.is_none() && !self.is_static;
        is_silent && self.is_redirected.is_none() && self.neighbour().is_some()
    }

    /// Takes a frame that its link received, where that goes to another link. A ping has no answer there.
    pub(super) fn take_frame(&mut self, lladdr: Mac) {
        self.ping = None;
        self.take_arp(None, Some(lladdr));
    }

    /// A router has answered if the namespace can send to other networks.
    fn take_advertisement(&mut self) {
        if self.question.is_any_router() && self.obstacle.is_none() {
            self.answer = Some(ProbeAnswer::Reachable(GatewayReply {
                rtt: None,
                lladdr: None,
                at: Instant::now(),
                arp: false,
                ping: false,
            }));
        }
    }

    /// It answered ARP or neighbour discovery, to a known request if there is a round trip.
    fn take_arp(&mut self, rtt: Option<Duration>, lladdr: Option<Mac>) {
        self.take_reply(GatewayReply {
            rtt,
            lladdr,
            at: Instant::now(),
            arp: true,
            ping: false,
        });
    }

    fn take_reply(&mut self, new: GatewayReply) {
        self.reply = Some(self.reply.map_or(new, |old| GatewayReply {
            rtt: old.rtt.or(new.rtt),
            lladdr: new.lladdr.or(old.lladdr),
            at: if new.ping { new.at } else { old.at },
            arp: old.arp || new.arp,
            ping: old.ping || new.ping,
        }));
        self.settle();
    }

    /// Until when a ping may be answered that may never be; `None` where nothing waits for that. One that answered late, to an unknown
    /// one of several requests, is probed once more.
    fn grace(&self) -> Option<Instant> {
        let is_known =
            |reply: &GatewayReply| reply.rtt.is_some() || self.is_redirected == Some(true);
        let reply = self.reply.filter(|_| self.obstacle.is_none())?;
        match (&self.ping, self.question.before) {
            _ if !is_known(&reply) => None,
            (None, _) => Some(reply.at),
            (Some(_), PastAnswer::Ping) => None,
            (Some(_), _) => Some(reply.at + GRACE),
        }
    }

    /// Ends it if no more answers are needed.
    fn settle(&mut self) {
        let is_over = self.grace().is_some_and(|until| Instant::now() >= until);
        let is_pinged = |reply: &GatewayReply| reply.ping && self.obstacle.is_none();
        let reply = self.reply.filter(|reply| is_over || is_pinged(reply));
        self.answer = self.answer.or(reply.map(ProbeAnswer::Reachable));
    }
}
