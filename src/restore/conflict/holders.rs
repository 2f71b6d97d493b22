//! Finds the links of this machine that have a contested MAC, or an address that a pod is to get: reads every namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::inventory::discover;
use crate::inventory::observe::Host;
use crate::inventory::pods::{observe_claims, open_pods};
use crate::matching::{NetnsKey, Selection};
use crate::model::problem::ClaimHolder;
use crate::model::{Claim, IfName, Link, Mac, NetState, Parent};
use crate::restore::pods::pod::PodJob;

/// For pods whose MAC another link has, finds the pod of that link: a conflict names both sides.
pub(in crate::restore) fn find_mac_owners(pods: &mut [PodJob], host: &Host) {
    let contested: Vec<_> = pods
        .iter()
        .enumerate()
        .filter_map(|(at, pod)| Some((at, pod.contested(host)?)))
        .collect();
    if contested.is_empty() {
        return;
    }
    let mut owners = owners_of_macs(host);
    for (at, contested) in contested {
        let owner = owners.remove(&contested);
        pods[at].owner = owner.map(|owner| (contested.0, owner));
    }
}

/// Every macvlan of the machine by MAC and parent. Used only on a conflict.
fn owners_of_macs(host: &Host) -> BTreeMap<(Mac, IfName), ClaimHolder> {
    let mut owners = BTreeMap::new();
    for (link, claim) in host.state.claims_of_host() {
        if let Claim::Mac(parent, mac) = claim {
            owners.insert((mac, parent), of_host(&link.name));
        }
    }
    for (holder, state) in read_all(host, &BTreeSet::new()).unwrap_or_default() {
        for link in state.links {
            if let (Some(Parent::Host(parent)), Some(mac)) = (&link.parent, link.mac) {
                let owner = ClaimHolder {
                    link: Some(link.name),
                    ..holder.clone()
                };
                owners.insert((mac, parent.clone()), owner);
            }
        }
    }
    owners
}

/// The links that are up and have one of these addresses on these host links, each with its MAC. Namespaces `besides` are
/// not read.
///
/// # Errors
/// `/proc` or the mount table cannot be read.
pub(super) fn owners_of_addresses(
    host: &Host,
    besides: &BTreeSet<NetnsKey>,
    wanted: &BTreeSet<Claim>,
) -> io::Result<BTreeMap<Claim, (ClaimHolder, Option<Mac>)>> {
    let mut owners = BTreeMap::new();
    let is_it = |link: &Link, claim: &Claim| link.flags.up && wanted.contains(claim);
    for (link, claim) in host.state.claims_of_host() {
        if is_it(link, &claim) {
            owners.insert(claim, (of_host(&link.name), link.mac));
        }
    }
    for (holder, state) in read_all(host, besides)? {
        for (link, claim) in state.claims() {
            if is_it(link, &claim) {
                let owner = ClaimHolder {
                    link: Some(link.name.clone()),
                    ..holder.clone()
                };
                owners.insert(claim, (owner, link.mac));
            }
        }
    }
    Ok(owners)
}

fn of_host(link: &IfName) -> ClaimHolder {
    ClaimHolder {
        pod: None,
        netns: String::new(),
        link: Some(link.clone()),
    }
}

/// Every namespace of the machine with its links and addresses.
fn read_all(host: &Host, besides: &BTreeSet<NetnsKey>) -> io::Result<Vec<(ClaimHolder, NetState)>> {
    let (mut found, _) = discover::discover(&Selection::everything())?;
    found.retain(|one| !besides.contains(&one.netns.key()));
    let (mut pods, _) = open_pods(found, &mut Vec::new());
    let states = observe_claims(&mut pods, host);
    let all = pods.iter().zip(states);
    Ok(all
        .filter_map(|(pod, state)| {
            let holder = ClaimHolder {
                pod: Some(pod.info.id.clone()),
                netns: pod.netns.shown(),
                link: None,
            };
            // One that cannot be entered any more has ended.
            Some((holder, state.ok()?))
        })
        .collect())
}
