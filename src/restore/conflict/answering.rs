//! Before a loss: what answers for the addresses of pods that have them? The network does where a router or a virtual network
//! answers for other machines (proxy ARP), and will do so after the loss. Such an answer shows no other owner.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::inventory::observe::Host;
use crate::model::{AddressProxy, ConflictProbe, IfName, Mac, NetState, ProbeRate};
use crate::restore::conflict::flight::{AddressProbe, Flight};
use crate::restore::conflict::pace::Pace;
use crate::restore::conflict::targets::{self, ProbeTarget};
use crate::restore::host::own_addresses;

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
    let flight = Flight::start(mode, pace, &mut probes, host, now).ok()?;
    let (failed, _) = flight.land(&mut probes).ok()?;
    (failed == 0).then(|| answered(&probes, &own))
}

/// How many probes and announcements a restore of pods with these states sends within a second, where that is more than the usual
/// rate.
pub(crate) fn burst<'a>(
    pods: impl Iterator<Item = &'a NetState>,
    mode: ConflictProbe,
    rate: Option<ProbeRate>,
) -> Option<usize> {
    let addresses: usize = pods.map(|state| targets::present(state).len()).sum();
    let is_paced = Pace::new(rate, addresses).most() < usize::MAX;
    let each = if mode == ConflictProbe::Off { 1 } else { 3 };
    (addresses > 0 && !is_paced).then_some(each * addresses)
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
