//! Before an address is added: does another machine, or another link of this one, have it already?
//!
//! One packet socket in the host's namespace sends the probes of all pods through the parents of their links: ARP probes (RFC
//! 5227) for IPv4, and the solicitations of duplicate address detection (RFC 4862) for IPv6 addresses that the kernel adds
//! without it. The answer is for the pod's MAC, which the parent accepts as long as the socket is open, so the probes need no
//! link of a pod: links are created meanwhile.
//!
//! A frame that a parent sends does not reach the macvlans on it. What those have is read from the kernel, and their frames do
//! not count: a tenant on this machine cannot claim the address of another pod.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

use crate::inventory::observe::Host;
use crate::kernel::words;
use crate::matching::NetnsKey;
use crate::model::problem::{ConflictCause, RestoreCause};
use crate::model::{AddressProxy, Claim, IfName, Mac, Problem};
use crate::restore::conflict::flight::{AddressProbe, Flight};
use crate::restore::conflict::holders;
use crate::restore::conflict::pace::Pace;
use crate::restore::conflict::targets::ProbeTarget;
use crate::side_by_side;

/// How a restore probes.
#[derive(Clone, Copy)]
pub(in crate::restore) struct Probing<'a> {
    pub pace: Pace,
    /// Machines that answered for addresses while the pods had them.
    pub proxies: &'a [AddressProxy],
}

/// The probes of addresses on one clock, each `O`'s.
pub(in crate::restore) struct Search<O> {
    pace: Pace,
    owners: Vec<O>,
    probes: Vec<AddressProbe>,
    flight: Option<io::Result<Flight>>,
}

/// An address that another one has.
pub(in crate::restore) struct Conflict<O> {
    pub of: O,
    pub target: ProbeTarget,
    pub cause: ConflictCause,
}

impl<O> Search<O> {
    /// Of the targets on links that exist; `None` where there are none: then nothing is sent and nothing is waited for.
    pub(in crate::restore) fn of(
        targets: impl IntoIterator<Item = (O, ProbeTarget)>,
        host: &Host,
        probing: Probing<'_>,
    ) -> Option<Self> {
        let targets = targets.into_iter();
        let targets = targets.filter(|(_, target)| host.state.link(&target.parent).is_some());
        let probe = |target: ProbeTarget| {
            let proxies = probing.proxies.iter();
            let proxies = proxies.filter(|proxy| target.is_answered_by(proxy));
            let macs = proxies.map(|proxy| proxy.mac.unwrap_or(target.mac));
            // The other machines of a virtual router have its MAC too.
            let is_shared = |mac: &Mac| *mac == target.mac && mac.is_of_virtual_router();
            let macs = macs.filter(|mac| !is_shared(mac)).collect();
            AddressProbe::new(target, macs)
        };
        let (owners, probes): (Vec<O>, Vec<_>) =
            targets.map(|(of, target)| (of, probe(target))).unzip();
        (!probes.is_empty()).then_some(Self {
            pace: probing.pace,
            owners,
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

    /// Begins. Parents that have no carrier yet are waited for, until a moment after `awaited`.
    pub(in crate::restore) fn start(&mut self, host: &Host, awaited: Instant) {
        let flight = Flight::start(self.pace, &mut self.probes, host, awaited);
        self.flight = Some(flight);
    }

    /// Takes the answers until the last probe had its time; returns the addresses that others have. What the namespaces `known`
    /// have was compared with all records before; a MAC that `is_own` is another link of the same owner.
    pub(in crate::restore) fn finish(
        mut self,
        host: &Host,
        known: &BTreeSet<NetnsKey>,
        is_own: impl Fn(&O, Mac) -> bool,
    ) -> (Vec<Conflict<O>>, Vec<Problem>) {
        let all = self.probes.len();
        let claims: BTreeSet<Claim> = self
            .probes
            .iter()
            .map(|probe| probe.target.claim_now())
            .collect();
        let Some(flight) = self.flight.take() else {
            return (Vec::new(), Vec::new());
        };
        let (owners, result) = side_by_side::both(
            || holders::owners_of_addresses(host, known, &claims),
            || flight.and_then(|flight| flight.land(&mut self.probes)),
        );
        let (failed, error) = match (result, &owners) {
            (Ok((failed, error)), Ok(_)) => (failed, error),
            (Err(error), _) => (all, Some(error)),
            (_, Err(error)) => (all, Some(io::Error::from(error.kind()))),
        };
        let owners = owners.unwrap_or_default();
        let answers = AnswerCount::count(&self.probes);
        // A network may send frames back to where they came from.
        let own: BTreeSet<Mac> = host
            .state
            .links
            .iter()
            .filter_map(|link| link.mac)
            .collect();
        let mut conflicts = Vec::new();
        for (of, probe) in self.owners.into_iter().zip(self.probes) {
            let AddressProbe { target, heard, .. } = probe;
            let mut heard = heard.into_iter();
            let is_ours = |mac: &Mac| own.contains(mac) || is_own(&of, *mac);
            let answered = heard.find(|mac| *mac == target.mac || !is_ours(mac));
            let cause = match (owners.get(&target.claim_now()), answered) {
                (Some((owner, mac)), _) => ConflictCause::AddressInUse {
                    owner: owner.clone(),
                    mac: *mac,
                },
                (None, Some(mac)) => answers.cause(mac, &target),
                (None, None) => continue,
            };
            conflicts.push(Conflict { of, target, cause });
        }
        let error = error.map(|error| words(&error));
        let failed = error.map(|error| {
            let cause = RestoreCause::NotProbed { failed, all, error };
            cause.warning("conflict probe")
        });
        let notes = answers.of_proxies().chain(failed).collect();
        (conflicts, notes)
    }
}

/// The MACs that answered on a link of the host, for addresses of one family; `None`: those of the addresses' own links.
type ByMac = BTreeMap<(IfName, bool, Option<Mac>), usize>;

/// For how many addresses each MAC answered.
#[derive(Default)]
struct AnswerCount {
    /// The addresses that were probed.
    probed: BTreeMap<(IfName, bool), usize>,
    heard: ByMac,
    by_proxy: ByMac,
}

impl AnswerCount {
    fn count(probes: &[AddressProbe]) -> Self {
        let mut all = Self::default();
        for probe in probes {
            let (link, is_ipv4) = (&probe.target.parent, probe.target.address.is_ipv4());
            *all.probed.entry((link.clone(), is_ipv4)).or_default() += 1;
            for (macs, counts) in [
                (&probe.heard, &mut all.heard),
                (&probe.by_proxy, &mut all.by_proxy),
            ] {
                for mac in macs {
                    let mac = Some(*mac).filter(|mac| *mac != probe.target.mac);
                    *counts.entry((link.clone(), is_ipv4, mac)).or_default() += 1;
                }
            }
        }
        all
    }

    /// A machine that answers for every address may be a router that answers for others.
    fn cause(&self, mac: Mac, target: &ProbeTarget) -> ConflictCause {
        let (link, is_ipv4) = (target.parent.clone(), target.address.is_ipv4());
        let count = self.heard.get(&(link.clone(), is_ipv4, Some(mac))).copied();
        let probed = self.probed.get(&(link.clone(), is_ipv4)).copied();
        match count {
            _ if mac == target.mac => ConflictCause::SameMacAnswered { mac, link },
            Some(count) if count > 1 && Some(count) == probed => ConflictCause::AllAnswered {
                mac,
                link,
                addresses: count,
            },
            _ => ConflictCause::AddressAnswered { mac, link },
        }
    }

    /// What answered as it did while the pods had their addresses.
    fn of_proxies(&self) -> impl Iterator<Item = Problem> {
        self.by_proxy.iter().map(|((link, _, mac), count)| {
            let cause = RestoreCause::AnsweredByProxy {
                mac: *mac,
                probes: *count,
            };
            cause.info(link.to_string())
        })
    }
}
