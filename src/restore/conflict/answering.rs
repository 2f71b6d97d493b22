//! Before a loss: what answers for the addresses of pods that have them? The network does where a router or a virtual network
//! answers for other machines (proxy ARP), and will do so after the loss. Such an answer shows no other owner.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::clock;
use crate::inventory::observe::Host;
use crate::model::problem::SnapshotCause;
use crate::model::{
    Address, AddressProxy, AnswerRecord, ConflictProbe, IfName, Mac, NetState, NodeState,
    ProbeRate, Problem,
};
use crate::records::stored::load_node;
use crate::restore::conflict::flight::{AddressProbe, FAST_WAIT, Flight};
use crate::restore::conflict::pace::{Pace, USUAL};
use crate::restore::conflict::targets::{self, ProbeTarget};
use crate::restore::host::own_addresses;
use crate::store::{Guard, Store};

/// Addresses to probe on a link, of one family: fewer frames than a switch with dynamic ARP inspection allows in a second.
const SAMPLE: usize = 12;

/// Probes for some of the addresses that the host and pods with these states have now, on each link of the host; returns the machines that
/// answered. `None` where nothing was probed, or not all could be.
pub(crate) fn look<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    host: &Host,
    mode: ConflictProbe,
    rate: Option<ProbeRate>,
) -> Option<Vec<AddressProxy>> {
    let mut own: BTreeSet<Mac> = host
        .state
        .links
        .iter()
        .filter_map(|link| link.mac)
        .collect();
    let mut targets: BTreeMap<(IfName, bool), Vec<ProbeTarget>> = BTreeMap::new();
    for target in own_addresses::present(&host.state) {
        let place = (target.parent.clone(), target.address.is_ipv4());
        targets.entry(place).or_default().push(target);
    }
    for state in pods {
        own.extend(state.links.iter().filter_map(|link| link.mac));
        for target in targets::present(state) {
            let place = (target.parent.clone(), target.address.is_ipv4());
            targets.entry(place).or_default().push(target);
        }
    }
    let sampled = targets.into_values().flat_map(sample);
    let mut probes: Vec<_> = sampled
        .map(|target| AddressProbe::new(target, BTreeSet::new()))
        .collect();
    if probes.is_empty() || mode == ConflictProbe::Off {
        return None;
    }
    let (pace, now) = (Pace::in_no_hurry(rate), Instant::now());
    let flight = Flight::start(pace, &mut probes, host, now).ok()?;
    let (failed, _) = flight.land(&mut probes).ok()?;
    (failed == 0).then(|| answered(&probes, &own))
}

/// Probes like [`look`], and records what answered beside what `node` knows of this boot, with the `answers` of gateways. Nothing is
/// sent where nothing can be recorded: without `node`, and while another command has the lock.
pub(crate) fn record<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    host: &Host,
    node: Option<&NodeState>,
    answers: Vec<AnswerRecord>,
    store: &Store,
) -> Vec<Problem> {
    let Some(node) = node.filter(|_| store.holder().is_none()) else {
        return Vec::new();
    };
    let found = look(pods, host, ConflictProbe::default(), None).unwrap_or_default();
    let mut problems = reported(&found);
    let mut known = node.answers.clone();
    if known.take(answers.clone(), &clock::hour_ago())
        || known_with(&node.proxies, &found) != node.proxies
    {
        // A command that reads does not wait for the lock.
        let store = store.clone().patient(Duration::ZERO, |_| {});
        let guard = store.lock("verify").map_err(|error| error.problem());
        let saved = guard.and_then(|guard| save(&guard, answers, &found));
        problems.extend(saved.err().map(Problem::demoted));
    }
    problems
}

/// Adds what answered to what is stored, where there is a file of this boot.
pub(crate) fn save(
    guard: &Guard,
    answers: Vec<AnswerRecord>,
    proxies: &[AddressProxy],
) -> Result<(), Problem> {
    let mut problems = Vec::new();
    let stored = load_node(guard.store(), &mut problems)?;
    // That of a generation stays where it is.
    let Some(mut node) = stored.filter(|_| problems.is_empty()) else {
        return Ok(());
    };
    let has_new = node.answers.take(answers, &clock::hour_ago());
    let known = known_with(&node.proxies, proxies);
    if !has_new && known == node.proxies {
        return Ok(());
    }
    node.proxies = known;
    let saved = guard.save_node(&node);
    saved.map_err(|error| error.problem().demoted())
}

/// What was known, with what was found now.
fn known_with(known: &[AddressProxy], found: &[AddressProxy]) -> Vec<AddressProxy> {
    let mut all = known.to_vec();
    for new in found {
        let is_same = |old: &&mut AddressProxy| old.is_same(new);
        match all.iter_mut().find(is_same) {
            Some(old) => {
                // A probe of one address alone cannot show that it is the network.
                old.all |= new.all;
                let added = new.addresses.iter();
                let added = added.filter(|address| !old.addresses.contains(address));
                old.addresses.extend(added.copied().collect::<Vec<_>>());
            }
            None => all.push(new.clone()),
        }
    }
    all
}

/// The problems about what answers.
pub(crate) fn reported(proxies: &[AddressProxy]) -> Vec<Problem> {
    let problem = |proxy: &AddressProxy| {
        let (link, addresses) = (proxy.link.to_string(), proxy.addresses.clone());
        match proxy.mac {
            None if proxy.all => SnapshotCause::SameMacAnswers { addresses }.info(link),
            None => SnapshotCause::SameMacAnswers { addresses }.warning(link),
            Some(mac) if proxy.all => {
                let addresses = addresses.len();
                SnapshotCause::NetworkAnswers { mac, addresses }.info(link)
            }
            Some(mac) => SnapshotCause::AnotherAnswers { mac, addresses }.warning(link),
        }
    };
    proxies.iter().map(problem).collect()
}

/// How many probes and announcements a restore of pods with these states sends within a second, where that is more than the usual
/// rate.
pub(crate) fn burst<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    node: Option<&NodeState>,
    mode: ConflictProbe,
    rate: Option<ProbeRate>,
) -> Option<usize> {
    let (addresses, pace) = expected(pods, node, rate);
    let each = if mode == ConflictProbe::Off { 1 } else { 3 };
    (pace.most() == usize::MAX && each * addresses > USUAL.most()).then_some(each * addresses)
}

/// How long the last of pods with these states waits for the probe of its addresses.
pub(crate) fn expected_wait<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    node: Option<&NodeState>,
    mode: ConflictProbe,
    rate: Option<ProbeRate>,
) -> Duration {
    let (addresses, pace) = expected(pods, node, rate);
    if mode == ConflictProbe::Off || addresses == 0 {
        return Duration::ZERO;
    }
    2 * FAST_WAIT + pace.last_turn(addresses)
}

/// How many addresses a restore of pods with these states probes, and at which pace.
fn expected<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    node: Option<&NodeState>,
    rate: Option<ProbeRate>,
) -> (usize, Pace) {
    let (mut addresses, mut is_leased, mut parents) = (0, false, BTreeSet::new());
    for state in pods {
        let targets = targets::present(state);
        addresses += targets.len();
        is_leased |= state.addresses.iter().any(Address::is_leased);
        parents.extend(targets.into_iter().map(|target| target.parent));
    }
    let of_host = node.iter().flat_map(|node| &node.state.addresses);
    let mut leased = of_host.filter(|one| one.is_leased());
    is_leased |= leased.any(|one| parents.contains(&one.dev));
    (addresses, Pace::new(rate, addresses, is_leased))
}

/// A few of the targets, from everywhere among them.
fn sample(targets: Vec<ProbeTarget>) -> impl Iterator<Item = ProbeTarget> {
    let step = targets.len().div_ceil(SAMPLE).max(1);
    targets.into_iter().step_by(step)
}

fn answered(probes: &[AddressProbe], own: &BTreeSet<Mac>) -> Vec<AddressProxy> {
    let mut sampled: BTreeMap<_, usize> = BTreeMap::new();
    let mut answers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for AddressProbe { target, heard, .. } in probes {
        let place = (&target.parent, target.address.is_ipv4());
        *sampled.entry(place).or_default() += 1;
        for mac in heard {
            let mac = Some(*mac).filter(|mac| *mac != target.mac);
            if mac.is_none_or(|mac| !own.contains(&mac)) {
                let addresses = answers.entry((place, mac)).or_default();
                addresses.push(target.address);
            }
        }
    }
    let proxies = answers.into_iter().map(|((place, mac), addresses)| {
        let all = addresses.len() > 1 && sampled.get(&place) == Some(&addresses.len());
        AddressProxy {
            link: place.0.clone(),
            mac,
            addresses,
            all,
        }
    });
    proxies.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_probe_finds_is_added_to_what_is_known() {
        let proxy = |link: &str, mac: Option<Mac>, addresses: &[&str], all| AddressProxy {
            link: link.parse().unwrap(),
            mac,
            addresses: addresses.iter().map(|one| one.parse().unwrap()).collect(),
            all,
        };
        let known = [
            proxy("eth0", None, &["10.3.0.1", "10.3.0.2"], true),
            proxy("eth1", None, &["10.4.0.1"], false),
        ];
        let other = Some("02:00:00:00:00:01".parse().unwrap());
        let found = [
            proxy("eth0", None, &["10.3.0.3", "10.3.0.1"], false),
            proxy("eth0", None, &["fd00::1"], false),
            proxy("eth0", other, &["10.3.0.1"], false),
        ];
        let all = ["10.3.0.1", "10.3.0.2", "10.3.0.3"];
        let expected = [
            proxy("eth0", None, &all, true),
            known[1].clone(),
            found[1].clone(),
            found[2].clone(),
        ];
        assert_eq!(known_with(&known, &found), expected);
        assert_eq!(known_with(&expected, &found), expected);
    }
}
