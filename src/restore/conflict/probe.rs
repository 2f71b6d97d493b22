//! Before an address is added: does another machine, or another link of this one, have it already?
//!
//! One packet socket in the host's namespace sends the probes of all pods through the parents of their links: ARP probes (RFC
//! 5227) for IPv4, and the solicitations of duplicate address detection (RFC 4862) for IPv6 addresses that the kernel adds
//! without it. The answer is for the pod's MAC, which the parent accepts as long as the socket is open, so the probes need no
//! link of a pod: links are created meanwhile.
//!
//! A frame that a parent sends does not reach the macvlans on it. What those have is read from the kernel, and their frames do
//! not count: a tenant on this machine cannot claim the address of another pod.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem;
use std::net::IpAddr;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::wire::frame;
use crate::kernel::wire::packet::FrameListener;
use crate::kernel::words;
use crate::matching::NetnsKey;
use crate::model::problem::{ConflictCause, RestoreCause};
use crate::model::{Claim, ConflictProbe, Mac, Problem};
use crate::restore::conflict::holders;
use crate::restore::conflict::targets::ProbeTarget;
use crate::restore::pods::pod::PodJob;

/// `fast`: after each of the two rounds. An answer on an Ethernet comes within a few milliseconds. The second round is for
/// machines whose link has just got carrier: Linux drops what it sends before it has activated the link's queue.
const FAST_WAIT: Duration = Duration::from_millis(100);
/// RFC 5227, section 1.1.
const PROBE_WAIT: Duration = Duration::from_secs(1);
const PROBE_NUM: usize = 3;
const PROBE_MIN: Duration = Duration::from_secs(1);
const PROBE_MAX: Duration = Duration::from_secs(2);
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);

/// A probe of one address, for the pod at this place in the list of pods.
struct AddressProbe {
    pod: usize,
    target: ProbeTarget,
    /// The index of the host's link, where it exists and has carrier.
    parent: Option<u32>,
    /// Other MACs that claim the address.
    heard: BTreeSet<Mac>,
}

/// The probes of all pods of a turn, on one clock.
pub(in crate::restore) struct Search {
    mode: ConflictProbe,
    probes: Vec<AddressProbe>,
    flight: Option<io::Result<Flight>>,
}

/// Probes that are on their way.
struct Flight {
    listener: FrameListener,
    /// When to send again.
    rounds: VecDeque<Instant>,
    /// After the last round.
    wait: Duration,
    /// The end of that time, once the last round is sent.
    until: Instant,
    /// Places of the probes that could not be sent, and the last errno.
    failed: BTreeSet<usize>,
    error: Option<io::Error>,
}

impl Search {
    /// Takes over the targets of these pods on parents that exist; `None` where there are none: then nothing is sent and
    /// nothing is waited for.
    pub(in crate::restore) fn of(
        pods: &mut [&mut PodJob],
        host: &Host,
        mode: ConflictProbe,
    ) -> Option<Self> {
        let mut probes = Vec::new();
        for (pod, one) in pods.iter_mut().enumerate() {
            for target in mem::take(&mut one.targets) {
                if host.state.link(&target.parent).is_some() {
                    probes.push(AddressProbe {
                        pod,
                        target,
                        parent: None,
                        heard: BTreeSet::new(),
                    });
                }
            }
        }
        (!probes.is_empty()).then_some(Self {
            mode,
            probes,
            flight: None,
        })
    }

    pub(in crate::restore) fn is_started(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether every parent has carrier.
    pub(in crate::restore) fn has_carrier(&self, host: &Host) -> bool {
        self.probes.iter().all(|probe| {
            let parent = host.state.link(&probe.target.parent);
            parent.is_none_or(|parent| parent.flags.carrier)
        })
    }

    /// Begins, on the parents that have carrier.
    pub(in crate::restore) fn start(&mut self, host: &Host) {
        for probe in &mut self.probes {
            probe.parent = host
                .state
                .link(&probe.target.parent)
                .filter(|parent| parent.flags.up && parent.flags.carrier)
                .map(|parent| parent.index);
        }
        self.flight = Some(Flight::start(self.mode, &self.probes));
    }

    /// Takes the answers until the last probe had its time, and withholds what others have from the pods. What the namespaces
    /// `known` have was compared with all records before.
    pub(in crate::restore) fn finish(
        mut self,
        pods: &mut [&mut PodJob],
        host: &Host,
        known: &BTreeSet<NetnsKey>,
    ) -> Option<Problem> {
        let all = self.probes.len();
        let claims: BTreeSet<Claim> = self
            .probes
            .iter()
            .map(|probe| probe.target.claim_now())
            .collect();
        let flight = self.flight.take()?;
        let (owners, result) = thread::scope(|scope| {
            let reading = scope.spawn(|| holders::owners_of_addresses(host, known, &claims));
            let result = flight.and_then(|flight| flight.land(&mut self.probes));
            let owners = reading.join();
            (owners.unwrap_or_else(|panic| resume_unwind(panic)), result)
        });
        let (failed, error) = match (result, &owners) {
            (Ok((failed, error)), Ok(_)) => (failed, error),
            (Err(error), _) => (all, Some(error)),
            (_, Err(error)) => (all, Some(io::Error::from(error.kind()))),
        };
        let owners = owners.unwrap_or_default();
        for probe in self.probes {
            let claim = probe.target.claim_now();
            let mut heard = probe.heard.iter();
            let answered = heard.find(|mac| !pods[probe.pod].has_mac(**mac));
            let cause = match (owners.get(&claim), answered) {
                (Some((owner, mac)), _) => ConflictCause::AddressInUse {
                    owner: owner.clone(),
                    mac: *mac,
                },
                (None, Some(mac)) => ConflictCause::AddressAnswered {
                    mac: *mac,
                    link: probe.target.parent,
                },
                (None, None) => continue,
            };
            pods[probe.pod].withhold(probe.target.claim, cause);
        }
        let error = error.map(|error| words(&error))?;
        let cause = RestoreCause::NotProbed { failed, all, error };
        Some(cause.warning("conflict probe"))
    }
}

impl Flight {
    fn start(mode: ConflictProbe, probes: &[AddressProbe]) -> io::Result<Self> {
        let now = Instant::now();
        let mut flight = Self {
            listener: FrameListener::open()?,
            rounds: rounds(mode).into_iter().map(|after| now + after).collect(),
            wait: match mode {
                ConflictProbe::Rfc5227 => ANNOUNCE_WAIT,
                ConflictProbe::Fast | ConflictProbe::Off => FAST_WAIT,
            },
            until: now,
            failed: BTreeSet::new(),
            error: None,
        };
        for (at, probe) in probes.iter().enumerate() {
            let accept = |parent| {
                let mut macs = probe.target.reply_macs().into_iter();
                macs.try_for_each(|mac| flight.listener.accept(parent, mac))
            };
            let no_carrier = || Err(io::Error::from_raw_os_error(libc::ENETDOWN));
            let accepted = probe.parent.map_or_else(no_carrier, accept);
            flight.note(at, accepted);
        }
        if flight.rounds.front().is_some_and(|first| *first <= now) {
            flight.send(probes);
        }
        Ok(flight)
    }

    /// Sends one round, for the addresses that are not answered yet.
    fn send(&mut self, probes: &[AddressProbe]) {
        self.rounds.pop_front();
        for (at, probe) in probes.iter().enumerate() {
            let Some(parent) = probe.parent.filter(|_| probe.heard.is_empty()) else {
                continue;
            };
            let sender = self.listener.sender();
            let sent = sender.send(parent, &probe.target.frame());
            self.note(at, sent);
        }
        if self.rounds.is_empty() {
            self.until = Instant::now() + self.wait;
        }
    }

    fn note(&mut self, at: usize, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.insert(at);
            self.error = Some(error);
        }
    }

    /// Takes the answers of all rounds; returns how many probes could not be sent, with the last errno.
    fn land(mut self, probes: &mut [AddressProbe]) -> io::Result<(usize, Option<io::Error>)> {
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

    /// Takes the answers of all rounds.
    fn hear(&mut self, probes: &mut [AddressProbe]) -> io::Result<()> {
        let mut places: BTreeMap<(u32, IpAddr), Vec<usize>> = BTreeMap::new();
        for (at, probe) in probes.iter().enumerate() {
            if let Some(parent) = probe.parent {
                let place = (parent, probe.target.address);
                places.entry(place).or_default().push(at);
            }
        }
        loop {
            let next = self.rounds.front().copied();
            while let Some((index, frame)) = self.listener.receive(next.unwrap_or(self.until))? {
                let Some(claimed) = frame::claimed(&frame) else {
                    continue;
                };
                for at in places.get(&(index, claimed.address)).into_iter().flatten() {
                    probes[*at].hear(claimed.mac);
                }
            }
            if next.is_none() {
                return Ok(());
            }
            self.send(probes);
        }
    }
}

impl AddressProbe {
    /// Notes a MAC that claims the address. A few are enough, however many frames come.
    fn hear(&mut self, mac: Mac) {
        const MOST: usize = 8;
        if mac != self.target.mac && self.heard.len() < MOST {
            self.heard.insert(mac);
        }
    }
}

/// The times of all rounds, from the beginning.
fn rounds(mode: ConflictProbe) -> Vec<Duration> {
    match mode {
        ConflictProbe::Off => Vec::new(),
        ConflictProbe::Fast => vec![Duration::ZERO, FAST_WAIT],
        ConflictProbe::Rfc5227 => {
            let mut at = random(Duration::ZERO, PROBE_WAIT);
            let mut rounds = vec![at];
            for _ in 1..PROBE_NUM {
                at += random(PROBE_MIN, PROBE_MAX);
                rounds.push(at);
            }
            rounds
        }
    }
}

/// A random time, so that hosts that start together do not probe together.
fn random(from: Duration, to: Duration) -> Duration {
    // Each state has random keys.
    let number = RandomState::new().hash_one(0);
    let share = u32::try_from(number >> 32).unwrap_or_default();
    from + to
        .saturating_sub(from)
        .mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_the_intervals_of_rfc_5227() {
        for _ in 0..100 {
            let rounds = rounds(ConflictProbe::Rfc5227);
            assert_eq!(rounds.len(), PROBE_NUM);
            assert!(rounds[0] <= PROBE_WAIT, "{rounds:?}");
            for pair in rounds.windows(2) {
                let pause = pair[1].saturating_sub(pair[0]);
                assert!((PROBE_MIN..=PROBE_MAX).contains(&pause), "{rounds:?}");
            }
        }
        assert_eq!(
            super::rounds(ConflictProbe::Fast),
            [Duration::ZERO, FAST_WAIT]
        );
    }
}
