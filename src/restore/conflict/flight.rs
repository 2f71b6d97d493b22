//! Probes that are on their way: one packet socket in the host's namespace sends those of all addresses through the host's links,
//! on one clock, and receives what others send about these addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::wire::frame::{self, Heard};
use crate::kernel::wire::packet::FrameListener;
use crate::model::Mac;
use crate::restore::conflict::pace::Pace;
use crate::restore::conflict::targets::ProbeTarget;

/// After each of the two probes. An answer on an Ethernet comes within a few milliseconds. The second probe is for
/// machines whose link has just got carrier: Linux drops what it sends before it has activated the link's queue.
pub(super) const FAST_WAIT: Duration = Duration::from_millis(100);

/// How long a probe waits for its link. Carrier spreads from the NIC to the links on it by separate events, and a driver may reset
/// the NIC once more.
const READY_WAIT: Duration = Duration::from_secs(2);
/// How often a link is queried that is not ready.
const READY_INTERVAL: Duration = Duration::from_millis(20);

/// The probe of one address.
pub(super) struct AddressProbe {
    pub target: ProbeTarget,
    /// MACs that answer for the address although they do not have it.
    proxies: BTreeSet<Mac>,
    /// The index of the host's link, where it exists.
    parent: Option<u32>,
    /// Whether that link was not ready when it was last seen.
    is_idle: bool,
    /// How many probes were sent.
    sent: usize,
    /// MACs that have the address. That of the target is one of them where another machine has the same.
    pub heard: BTreeSet<Mac>,
    /// Those of `proxies` that answered.
    pub by_proxy: BTreeSet<Mac>,
    /// Other MACs that probe for the address.
    probing: BTreeSet<Mac>,
}

impl AddressProbe {
    pub(super) fn new(target: ProbeTarget, proxies: BTreeSet<Mac>) -> Self {
        Self {
            target,
            proxies,
            parent: None,
            is_idle: false,
            sent: 0,
            heard: BTreeSet::new(),
            by_proxy: BTreeSet::new(),
            probing: BTreeSet::new(),
        }
    }

    /// Notes what another machine sends about the address; returns whether it is one that probes for it for the first time. A few
    /// MACs are enough, however many frames come.
    fn hear(&mut self, heard: Heard) -> bool {
        const MOST: usize = 8;
        let macs = match heard.mac {
            // A network that sends frames back to where they came from.
            mac if mac == self.target.mac && heard.is_probe => return false,
            _ if heard.is_probe => &mut self.probing,
            mac if self.proxies.contains(&mac) => &mut self.by_proxy,
            _ => &mut self.heard,
        };
        macs.len() < MOST && macs.insert(heard.mac) && heard.is_probe
    }
}

/// Probes that are on their way.
pub(super) struct Flight {
    listener: FrameListener,
    /// How many probes of each address are sent: one where two do not fit into a second. That is sent when the time of the second one
    /// has come: the links have had carrier for as long then.
    usual: usize,
    pace: Pace,
    /// When to send which probe.
    due: BTreeSet<(Instant, usize)>,
    /// The end of the time for answers, as far as it is known.
    until: Instant,
    /// Until when probes wait for links that are not ready.
    patience: Instant,
    /// Places of the probes that could not be sent, and the last errno.
    failed: BTreeSet<usize>,
    error: Option<io::Error>,
}

impl Flight {
    /// Begins. Links without carrier get it within a moment after `awaited`, the end of the wait for it, or not at all.
    pub(super) fn start(
        pace: Pace,
        probes: &mut [AddressProbe],
        host: &Host,
        awaited: Instant,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let is_tight = 2 * probes.len() > pace.most();
        let first = if is_tight { now + FAST_WAIT } else { now };
        let mut flight = Self {
            listener: FrameListener::open()?,
            usual: if is_tight { 1 } else { 2 },
            pace,
            due: (0..probes.len()).map(|at| (first, at)).collect(),
            until: now,
            patience: awaited + READY_WAIT,
            failed: BTreeSet::new(),
            error: None,
        };
        for (at, probe) in probes.iter_mut().enumerate() {
            let parent = host.state.link(&probe.target.parent);
            probe.parent = parent.map(|parent| parent.index);
            probe.is_idle = parent.is_some_and(|one| !one.flags.up || !one.flags.carrier);
            let accept = |parent| {
                let mut macs = probe.target.reply_macs().into_iter();
                macs.try_for_each(|mac| flight.listener.accept(parent, mac))
            };
            let missing = || Err(io::Error::from_raw_os_error(libc::ENODEV));
            let accepted = probe.parent.map_or_else(missing, accept);
            flight.note(at, accepted);
        }
        flight.send(probes);
        Ok(flight)
    }

    /// Sends what is due, for the addresses that are not answered yet, through links that are ready.
    fn send(&mut self, probes: &mut [AddressProbe]) {
        while let Some((when, at)) = self.due.first().copied() {
            if when > Instant::now() {
                return;
            }
            self.due.pop_first();
            let probe = &mut probes[at];
            let Some(parent) = probe.parent.filter(|_| probe.heard.is_empty()) else {
                continue;
            };
            let is_ready = !probe.is_idle || self.listener.is_running(&probe.target.parent);
            let sender = self.listener.sender();
            let sent = if is_ready {
                (self.pace).send(|| sender.send(parent, &probe.target.frame()))
            } else {
                Ok(Err(io::Error::from_raw_os_error(libc::ENETDOWN)))
            };
            let sent = match sent {
                Ok(sent) => sent,
                Err(free) => {
                    self.due.insert((free, at));
                    continue;
                }
            };
            let now = Instant::now();
            probe.is_idle = matches!(&sent, Err(error) if is_down(error));
            if probe.is_idle && now < self.patience {
                self.due.insert((now + READY_INTERVAL, at));
                continue;
            }
            probe.sent += 1;
            self.until = now + FAST_WAIT;
            if probe.sent < self.usual {
                self.due.insert((self.until, at));
            }
            self.note(at, sent);
        }
    }

    fn note(&mut self, at: usize, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.insert(at);
            self.error = Some(error);
        }
    }

    /// Takes the answers of all probes; returns how many could not be sent, with the last errno.
    pub(super) fn land(
        mut self,
        probes: &mut [AddressProbe],
    ) -> io::Result<(usize, Option<io::Error>)> {
        let heard = self.hear(probes);
        let Self {
            listener,
            failed,
            error,
            ..
        } = self;
        // Its close costs an RCU grace period, for which no pod waits.
        thread::spawn(move || drop(listener));
        heard.map(|()| (failed.len(), error))
    }

    /// Takes the answers until the last probe had its time.
    fn hear(&mut self, probes: &mut [AddressProbe]) -> io::Result<()> {
        let mut places: BTreeMap<(u32, IpAddr), Vec<usize>> = BTreeMap::new();
        for (at, probe) in probes.iter().enumerate() {
            if let Some(parent) = probe.parent {
                let place = (parent, probe.target.address);
                places.entry(place).or_default().push(at);
            }
        }
        loop {
            self.send(probes);
            let next = self.due.first().map(|(when, _)| *when);
            let received = self.listener.receive(next.unwrap_or(self.until))?;
            let Some((index, frame)) = received else {
                if next.is_none() {
                    return Ok(());
                }
                continue;
            };
            let Some(heard) = frame::heard(&frame) else {
                continue;
            };
            for at in places.get(&(index, heard.address)).into_iter().flatten() {
                if probes[*at].hear(heard) {
                    self.probe_again(*at, &probes[*at]);
                }
            }
        }
    }

    /// Another machine probes for the address: it has it only if it answers a probe that comes after that, or announces it. A probe
    /// that is still to come is that one; otherwise one more is sent.
    fn probe_again(&mut self, at: usize, probe: &AddressProbe) {
        let is_due = self.due.iter().any(|(_, due)| *due == at);
        if !is_due && probe.sent == self.usual {
            self.due.insert((Instant::now(), at));
        }
    }
}

/// Whether the link was not up, or has no carrier.
fn is_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENETDOWN)
}
