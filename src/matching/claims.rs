//! Claims of several pods to one MAC or address on one link of the host, where only one can have it. netfix does not choose.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use crate::model::address::Maker;
use crate::model::problem::{ConflictCause, Holder};
use crate::model::{Bytes, IfName, Indexed, LinkKind, Mac, NetState, Parent, PodId, Problem};

/// A pod or the host, with links on the host's links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimant<'a> {
    /// The pod; `None` for the host.
    pub pod: Option<&'a PodId>,
    /// A path of its namespace, for messages.
    pub netns: &'a Path,
    /// Its present or stored state.
    pub state: &'a NetState,
}

/// What only one pod on one link of the host can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Mac(IfName, Mac),
    Address(IfName, IpAddr),
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac(parent, mac) => write!(f, "MAC {mac} on {parent}"),
            Self::Address(parent, address) => write!(f, "{address} on {parent}"),
        }
    }
}

/// For every claim of several pods, or of a pod and the host, an error for each claimant that is a pod; it names the others.
pub(crate) fn contested<'a>(
    pods: impl Iterator<Item = Claimant<'a>>,
    host: &'a NetState,
) -> Vec<Problem> {
    let host = Claimant {
        pod: None,
        netns: Path::new(""),
        state: host,
    };
    let claimants: Vec<Claimant<'_>> = pods.chain([host]).collect();
    let mut holders: BTreeMap<Claim, Vec<usize>> = BTreeMap::new();
    for (at, claimant) in claimants.iter().enumerate() {
        for claim in claimant.claims() {
            let holders = holders.entry(claim).or_default();
            if !holders.contains(&at) {
                holders.push(at);
            }
        }
    }
    let contested = holders.iter().filter(|(_, holders)| holders.len() > 1);
    contested
        .flat_map(|(claim, holders)| errors(claim, holders, &claimants))
        .collect()
}

fn errors(claim: &Claim, holders: &[usize], claimants: &[Claimant<'_>]) -> Vec<Problem> {
    let error = |at: &usize| {
        let others = holders
            .iter()
            .filter(|other| *other != at)
            .map(|other| claimants[*other].holder());
        let others: Vec<Holder> = others.collect();
        let cause = match claim {
            Claim::Mac(..) => ConflictCause::MacClaimed { others },
            Claim::Address(..) => ConflictCause::AddressClaimed { others },
        };
        Some(cause.error(claim).of(claimants[*at].pod?))
    };
    holders.iter().filter_map(error).collect()
}

impl Claimant<'_> {
    fn holder(&self) -> Holder {
        Holder {
            pod: self.pod.cloned(),
            netns: Bytes::from(self.netns).to_string(),
            link: None,
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        let state = Indexed::new(self.state);
        for link in &self.state.links {
            let parent = match (&link.parent, self.pod) {
                (Some(Parent::Host(parent)), Some(_)) => parent,
                // The host's own macvlans, and the link itself.
                (Some(Parent::Own(parent)), None) if matches!(link.kind, LinkKind::Macvlan(_)) => {
                    parent
                }
                (_, None) => {
                    claims.extend(addresses(&state, &link.name, &link.name));
                    continue;
                }
                _ => continue,
            };
            let is_macvlan = matches!(link.kind, LinkKind::Macvlan(_));
            claims.extend(
                link.mac
                    .filter(|_| is_macvlan)
                    .map(|mac| Claim::Mac(parent.clone(), mac)),
            );
            claims.extend(addresses(&state, &link.name, parent));
        }
        claims
    }
}

/// The addresses of a link, without those that the kernel derives from the MAC.
fn addresses(state: &Indexed<'_>, dev: &IfName, parent: &IfName) -> Vec<Claim> {
    let addresses = state.addresses_of(dev).iter();
    let given = addresses.filter(|address| address.maker == Maker::Admin);
    given
        .map(|address| Claim::Address(parent.clone(), address.local))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::link::{Macvlan, MacvlanMode};
    use crate::model::{Address, Link};

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    fn pod(parent: &str, mac: u8, address: &str) -> NetState {
        let kind = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
        let mac = Some(Mac([2, 0, 0, 0, 0, mac]));
        let link = Link {
            mac,
            parent: Some(Parent::Host(name(parent))),
            ..Link::plain(name("eth0"), kind)
        };
        let addresses = vec![Address::plain(name("eth0"), address.parse().unwrap(), 24)];
        NetState {
            links: vec![link],
            addresses,
            ..NetState::default()
        }
    }

    fn told(pods: &[(&str, NetState)], host: &NetState) -> Vec<String> {
        let ids: Vec<PodId> = pods.iter().map(|(id, _)| PodId::from_text(id)).collect();
        let claimants = ids.iter().zip(pods).map(|(id, (_, state))| Claimant {
            pod: Some(id),
            netns: Path::new("/run/netns/x"),
            state,
        });
        let problems = contested(claimants, host);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_mac_for_two_is_told_to_both() {
        let pods = [
            ("a", pod("eth0", 1, "10.0.0.1")),
            ("b", pod("eth0", 1, "10.0.0.2")),
        ];
        let told = told(&pods, &NetState::default());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("mac-conflict: pod a: MAC 02:00:00:00:00:01 on eth0: pod b"),
            "{told:?}"
        );
        assert!(
            told[1].starts_with("mac-conflict: pod b:") && told[1].contains("pod a"),
            "{told:?}"
        );
    }

    #[test]
    fn one_address_for_a_pod_and_the_host_is_told_to_the_pod() {
        let host = Link::plain(name("eth0.3"), LinkKind::Physical);
        let addresses = vec![Address::plain(
            name("eth0.3"),
            "10.0.0.1".parse().unwrap(),
            24,
        )];
        let host = NetState {
            links: vec![host],
            addresses,
            ..NetState::default()
        };
        let told = told(&[("a", pod("eth0.3", 1, "10.0.0.1"))], &host);
        let expected = "address-conflict: pod a: 10.0.0.1 on eth0.3: the host has it as well; \
                        netfix does not choose between them";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn the_same_on_another_parent_is_no_conflict() {
        let pods = [
            ("a", pod("eth0.3", 1, "10.0.0.1")),
            ("b", pod("eth0.4", 1, "10.0.0.1")),
        ];
        assert!(told(&pods, &NetState::default()).is_empty());
    }
}
