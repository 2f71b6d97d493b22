//! The host's own addresses: which of them are probed before they are added, and what other machines have.
//!
//! While the NIC is gone, a virtual address (kube-vip, keepalived) moves to another node, and any address can be given away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::model::net::address::in_adding_order;
use crate::model::problem::ConflictCause;
use crate::model::{Address, Claim, ConflictProbe, IfName, Link, NetState, Parent, Problem};
use crate::plan::{HostLinks, Plan, Step};
use crate::restore::conflict::targets::{ProbeTarget, is_probed_by_kernel};

/// An address on a link of the host, by the link's present name.
type HostPlace = (IfName, IpAddr);

/// The host's own addresses in a restore.
pub(in crate::restore) struct OwnAddresses {
    mode: ConflictProbe,
    /// Those that are missing and not probed yet.
    targets: Vec<(HostPlace, ProbeTarget)>,
    /// Those whose probe is under way.
    probing: Vec<(HostPlace, ProbeTarget)>,
    /// Those that were probed, and that no other machine has.
    free: BTreeSet<HostPlace>,
    /// Those that another machine or namespace has.
    withheld: BTreeSet<HostPlace>,
    conflicts: Vec<Problem>,
}

impl OwnAddresses {
    pub(super) fn new(mode: ConflictProbe) -> Self {
        Self {
            mode,
            targets: Vec::new(),
            probing: Vec::new(),
            free: BTreeSet::new(),
            withheld: BTreeSet::new(),
            conflicts: Vec::new(),
        }
    }

    /// Finds the addresses to probe among those that a plan adds; `recorded` is the host's good state.
    pub(super) fn find_targets(
        &mut self,
        plan: &Plan,
        recorded: &NetState,
        now: &NetState,
        links: &HostLinks,
    ) {
        self.targets.clear();
        if self.mode == ConflictProbe::Off {
            return;
        }
        let is_usable = |one: &&Address| !one.has_failed_detection();
        let present: BTreeSet<IpAddr> = now
            .addresses
            .iter()
            .filter(is_usable)
            .map(|one| one.local)
            .collect();
        for link in recorded.links.iter().filter(|link| is_probed(link)) {
            let name = links.name_now(&link.name);
            let added = plan.steps.iter().flat_map(Step::added_addresses);
            for address in added.filter(|one| one.dev == name) {
                let place = (name.clone(), address.local);
                let is_known = self.free.contains(&place) || self.is_left_out(&name, address.local);
                if is_known || present.contains(&address.local) {
                    continue;
                }
                let target = target(link, address, now);
                self.targets
                    .extend(target.map(|target| (place.clone(), target)));
            }
        }
    }

    /// Whether an address is to be probed.
    pub(super) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// How many are to be probed.
    pub(in crate::restore) fn count(&self) -> usize {
        self.targets.len()
    }

    /// Begins the probe of those that can be probed now, or when a link that `is_awaited` has carrier.
    pub(in crate::restore) fn take_probes(
        &mut self,
        now: &NetState,
        is_awaited: impl Fn(&IfName) -> bool,
    ) -> Vec<ProbeTarget> {
        let is_ready = |target: &ProbeTarget| {
            let link = now.link(&target.parent);
            let is_coming = |link: &Link| link.flags.carrier || is_awaited(&link.name);
            link.is_some_and(|link| link.flags.up && is_coming(link))
        };
        let ready = self.targets.extract_if(.., |(_, target)| is_ready(target));
        let before = self.probing.len();
        self.probing.extend(ready);
        let begun = self.probing[before..].iter();
        begun.map(|(_, target)| target.clone()).collect()
    }

    pub(super) fn is_probing(&self) -> bool {
        !self.probing.is_empty()
    }

    /// Whether it is not to be added: another machine has it, or may have it.
    pub(super) fn is_left_out(&self, dev: &IfName, address: IpAddr) -> bool {
        let place = (dev.clone(), address);
        let mut open = self.targets.iter().chain(&self.probing);
        self.withheld.contains(&place) || open.any(|(target, _)| *target == place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.withheld.is_empty() && self.targets.is_empty() && self.probing.is_empty()
    }

    /// Ends the probe that is under way, with the addresses that others have. One that a link of the host has by now is its manager's
    /// doing.
    pub(super) fn end_probes(
        &mut self,
        conflicts: Vec<(ProbeTarget, ConflictCause)>,
        recorded: &NetState,
        links: &HostLinks,
    ) {
        let conflicts = conflicts
            .into_iter()
            .filter(|(_, cause)| !is_of_host(cause));
        let mut causes: BTreeMap<_, _> = conflicts
            .map(|(target, cause)| (target.claim, cause))
            .collect();
        for (place, target) in self.probing.drain(..) {
            if let Some(cause) = causes.remove(&target.claim) {
                let problem = conflict(&place, cause, recorded, links);
                self.conflicts.push(problem);
                self.withheld.insert(place);
            } else {
                self.free.insert(place);
            }
        }
    }

    /// What cannot be probed is added without a probe.
    pub(super) fn give_up(&mut self) {
        let left = self.targets.drain(..).map(|(place, _)| place);
        self.free.extend(left);
    }

    pub(super) fn conflicts(self) -> Vec<Problem> {
        self.conflicts
    }
}

fn is_of_host(cause: &ConflictCause) -> bool {
    matches!(cause, ConflictCause::AddressInUse { owner, .. } if owner.pod.is_none())
}

/// Whether other machines answer probes on a link, by its record.
fn is_probed(link: &Link) -> bool {
    let has_neighbours = !link.flags.noarp && link.kind.name() != "vxlan";
    link.flags.up && link.flags.carrier && has_neighbours
}

/// The addresses that the host with this state has and that a restore would probe.
pub(in crate::restore) fn present(state: &NetState) -> Vec<ProbeTarget> {
    let links = state.links.iter().filter(|link| is_probed(link));
    let addresses = links.flat_map(|link| {
        let addresses = state.addresses_of(&link.name);
        addresses.map(move |address| (link, address))
    });
    addresses
        .filter(|(_, address)| !address.has_failed_detection())
        .filter_map(|(link, address)| target(link, address, state))
        .collect()
}

/// How an address of this link, as it was recorded, is probed; `None` for one that other machines may have too, or for which the
/// kernel probes itself.
fn target(link: &Link, address: &Address, now: &NetState) -> Option<ProbeTarget> {
    let link_now = now.link(&address.dev)?;
    // A frame to other machines leaves through the parent of a macvlan.
    let through = |link: &Link| match &link.parent {
        Some(Parent::Own(parent)) if link.kind.is_macvlan() => parent.clone(),
        _ => link.name.clone(),
    };
    let mut present = now.addresses.iter();
    let failed = present.any(|one| one.is_same(address) && one.has_failed_detection());
    if is_probed_by_kernel(link, address) && !failed {
        return None;
    }
    Some(ProbeTarget {
        claim: Claim::of_address(address, &through(link))?,
        parent: through(link_now),
        mac: link_now.mac?,
        address: address.local,
    })
}

/// The conflict as a problem. A virtual address that has moved is in order; without its first address the host is not reachable.
fn conflict(
    (dev, local): &HostPlace,
    cause: ConflictCause,
    recorded: &NetState,
    links: &HostLinks,
) -> Problem {
    let of_link = |one: &&Address| links.name_now(&one.dev) == *dev;
    let all = in_adding_order(recorded.addresses.iter().filter(of_link));
    let family = all.filter(|one| one.local.is_ipv4() == local.is_ipv4() && !one.is_shared());
    let own: Vec<&Address> = family.filter(|one| !one.comes_by_itself()).collect();
    let address = own.iter().find(|one| one.local == *local);
    let object = address.map_or_else(
        || format!("{local} dev {dev}"),
        |one| {
            let dev = dev.clone();
            Address {
                dev,
                ..(**one).clone()
            }
            .to_string()
        },
    );
    let object = format!("address {object}");
    let is_fixed = |one: &&&Address| one.is_owned() && !one.is_of_one_host();
    let first = own.iter().find(is_fixed).or_else(|| own.first());
    let is_first = first.is_some_and(|first| first.local == *local);
    match cause {
        ConflictCause::AddressAnswered { mac, link }
        | ConflictCause::SameMacAnswered { mac, link }
        | ConflictCause::AllAnswered { mac, link, .. } => {
            if is_first && !mac.is_of_virtual_router() {
                ConflictCause::HostAddressTaken { mac, link }.error(object)
            } else {
                ConflictCause::HostAddressMoved { mac, link }.warning(object)
            }
        }
        other => other.error(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::ClaimHolder;
    use crate::model::{Mac, PodId};

    const EIGHTEEN: Option<u8> = Some(18);

    fn address(text: &str, len: u8, protocol: Option<u8>) -> Address {
        Address {
            protocol,
            ..Address::plain("eth0".parse().unwrap(), text.parse().unwrap(), len)
        }
    }

    /// Whether another machine must not have the address.
    fn is_first(local: &str, recorded: Vec<Address>) -> bool {
        let recorded = NetState {
            addresses: recorded,
            ..NetState::default()
        };
        let place: HostPlace = ("eth0".parse().unwrap(), local.parse().unwrap());
        let cause = ConflictCause::AddressAnswered {
            mac: Mac([2, 0, 0, 0, 0, 1]),
            link: "eth0".parse().unwrap(),
        };
        conflict(&place, cause, &recorded, &HostLinks::default()).is_error()
    }

    #[test]
    fn only_the_first_address_of_a_link_does_not_move() {
        let both = || vec![address("10.0.0.5", 32, None), address("10.0.0.2", 24, None)];
        assert!(is_first("10.0.0.2", both()));
        assert!(!is_first("10.0.0.5", both()));
        let of_keepalived = || {
            let virtual_address = address("10.0.0.5", 24, EIGHTEEN);
            vec![virtual_address, address("10.0.0.2", 24, None)]
        };
        assert!(is_first("10.0.0.2", of_keepalived()));
        assert!(!is_first("10.0.0.5", of_keepalived()));
        // The kernel lists IPv6 addresses newest first.
        let ipv6 = || vec![address("fd00::5", 64, None), address("fd00::2", 64, None)];
        assert!(is_first("fd00::2", ipv6()) && !is_first("fd00::5", ipv6()));
        // In some clouds a host has nothing else.
        assert!(is_first("10.0.0.5", vec![address("10.0.0.5", 32, None)]));
    }

    #[test]
    fn what_a_link_of_the_host_has_meanwhile_is_no_conflict() {
        let place: HostPlace = ("eth0".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let target = ProbeTarget {
            claim: Claim::Address(place.0.clone(), place.1),
            parent: place.0.clone(),
            mac: Mac([2, 0, 0, 0, 0, 1]),
            address: place.1,
        };
        for (pod, is_conflict) in [(None, false), (Some(PodId::from_text("web")), true)] {
            let mut own = OwnAddresses::new(ConflictProbe::Fast);
            own.probing.push((place.clone(), target.clone()));
            let owner = ClaimHolder {
                pod,
                netns: String::new(),
                link: Some(place.0.clone()),
            };
            let conflicts = vec![(
                target.clone(),
                ConflictCause::AddressInUse { owner, mac: None },
            )];
            own.end_probes(conflicts, &NetState::default(), &HostLinks::default());
            assert_eq!(own.is_left_out(&place.0, place.1), is_conflict);
            assert_eq!(own.conflicts().len(), usize::from(is_conflict));
        }
    }
}
