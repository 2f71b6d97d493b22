//! Claims of several pods to one MAC or address on one link of the host, where only one can have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::model::problem::{ClaimHolder, ConflictCause, Others, Title};
use crate::model::{Bytes, Claim, IfName, NetState, NetnsIdentity, PodInfo, Problem};

/// A pod or the host, with links on the host's links.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    /// The pod and its namespace; `None` for the host.
    pub pod: Option<(PodInfo, NetnsIdentity)>,
    /// A path of its namespace, for messages.
    pub netns: String,
    pub claims: BTreeSet<Claim>,
    /// What links of its namespace that are up have now.
    pub in_use: BTreeSet<Claim>,
    /// What it cannot be without: the only addresses of a family that a link of the host has.
    vital: BTreeSet<Claim>,
}

/// A claim that several claimants have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contest {
    pub claim: Claim,
    /// Their places in the list of claimants.
    pub holders: Vec<usize>,
}

/// The claimant that gets the object, and why.
pub(crate) type ClaimOwner = (usize, Title);

impl Claimant {
    /// A pod that claims this state, which is its present or its recorded one.
    pub(crate) fn pod(
        info: &PodInfo,
        identity: &NetnsIdentity,
        netns: &Path,
        state: &NetState,
    ) -> Self {
        Self {
            pod: Some((info.clone(), identity.clone())),
            netns: Bytes::from(netns).to_string(),
            claims: state.claims().into_iter().map(|(_, claim)| claim).collect(),
            in_use: BTreeSet::new(),
            vital: BTreeSet::new(),
        }
    }

    /// The same pod with the state that it has now.
    pub(crate) fn now(self, state: &NetState) -> Self {
        let up = state.claims().into_iter().filter(|(link, _)| link.flags.up);
        Self {
            in_use: up.map(|(_, claim)| claim).collect(),
            ..self
        }
    }

    /// The host, with what it claims by its recorded state and has now: the addresses of its links, and the MACs of its macvlans.
    pub(crate) fn host(recorded: &NetState, now: &NetState) -> Self {
        let of = |state: &NetState| {
            let claims = state.claims_of_host().into_iter();
            claims.map(|(_, claim)| claim).collect()
        };
        Self {
            pod: None,
            netns: String::new(),
            claims: of(recorded),
            in_use: of(now),
            vital: only_addresses(recorded),
        }
    }

    fn holder(&self) -> ClaimHolder {
        ClaimHolder {
            pod: self.pod.as_ref().map(|(info, _)| info.id.clone()),
            netns: self.netns.clone(),
            link: None,
        }
    }
}

/// The addresses of the host's links that have no other one of their family.
fn only_addresses(host: &NetState) -> BTreeSet<Claim> {
    let mut of_links: BTreeMap<(&IfName, bool), Vec<Claim>> = BTreeMap::new();
    for (link, claim) in host.claims_of_host() {
        if let Claim::Address(_, address) = &claim {
            let family = (&link.name, address.is_ipv4());
            of_links.entry(family).or_default().push(claim);
        }
    }
    let alone = of_links.into_values().filter(|claims| claims.len() == 1);
    alone.flatten().collect()
}

/// Every claim of several claimants.
pub(crate) fn contests(claimants: &[Claimant]) -> Vec<Contest> {
    let mut all: BTreeMap<&Claim, Vec<usize>> = BTreeMap::new();
    for (at, claimant) in claimants.iter().enumerate() {
        for claim in &claimant.claims {
            all.entry(claim).or_default().push(at);
        }
    }
    all.into_iter()
        .filter(|(_, holders)| holders.len() > 1)
        .map(|(claim, holders)| Contest {
            claim: claim.clone(),
            holders,
        })
        .collect()
}

impl Contest {
    /// Decides it: what one uses now is never taken away, nor the host's only address; then the result of a CNI plugin counts, then
    /// the older claim. Where nothing shows who had it first, the host has it; `None` without the host: no claimant gets it.
    ///
    /// `is_given` is whether a CNI result gives a claimant the object, `oldest` finds the one of several that had it first.
    pub(crate) fn owner(
        &self,
        claimants: &[Claimant],
        is_given: impl Fn(usize) -> bool,
        oldest: impl FnOnce(&[usize]) -> Option<ClaimOwner>,
    ) -> Option<ClaimOwner> {
        let among = |places: &[usize], is_it: &dyn Fn(&usize) -> bool| -> Vec<usize> {
            places.iter().copied().filter(is_it).collect()
        };
        let is_host = |at: &usize| claimants[*at].pod.is_none();
        let users = among(&self.holders, &|at| {
            claimants[*at].in_use.contains(&self.claim)
        });
        let candidates = match users[..] {
            [user] if is_host(&user) => return Some((user, Title::Host)),
            [user] => return Some((user, Title::InUse)),
            [] => &self.holders,
            _ => &users,
        };
        let is_vital = |at: &usize| claimants[*at].vital.contains(&self.claim);
        if let Some(host) = candidates.iter().copied().find(is_vital) {
            return Some((host, Title::Host));
        }
        match among(candidates, &|at| is_given(*at))[..] {
            [one] => Some((one, Title::CniResult)),
            _ => oldest(candidates).or_else(|| {
                let host = candidates.iter().copied().find(is_host);
                host.map(|host| (host, Title::Host))
            }),
        }
    }

    /// Each holder with its finding; a host that has it has none.
    pub(crate) fn findings<'a>(
        &'a self,
        claimants: &'a [Claimant],
        owner: Option<ClaimOwner>,
    ) -> impl Iterator<Item = (usize, Problem)> + 'a {
        let all = self.holders.iter().map(|at| claimants[*at].holder());
        let all: Arc<[ClaimHolder]> = all.collect();
        let holders = self.holders.iter().enumerate();
        holders.filter_map(move |(but, at)| {
            let all = all.clone();
            let others = Others { all, but };
            Some((*at, self.finding(*at, others, claimants, owner)?))
        })
    }

    fn finding(
        &self,
        at: usize,
        others: Others,
        claimants: &[Claimant],
        owner: Option<ClaimOwner>,
    ) -> Option<Problem> {
        let is_mac = matches!(self.claim, Claim::Mac(..));
        let problem = match (owner, is_mac) {
            (None, true) => ConflictCause::MacClaimed { others }.error(&self.claim),
            (None, false) => ConflictCause::AddressClaimed { others }.error(&self.claim),
            (Some((owner, _)), true) if owner == at => {
                ConflictCause::MacKept { others }.info(&self.claim)
            }
            (Some((owner, _)), false) if owner == at => {
                ConflictCause::AddressKept { others }.info(&self.claim)
            }
            (Some((owner, title)), true) => {
                let owner = claimants[owner].holder();
                ConflictCause::MacOfAnother { owner, title }.error(&self.claim)
            }
            (Some((owner, title)), false) => {
                let owner = claimants[owner].holder();
                ConflictCause::AddressOfAnother { owner, title }.error(&self.claim)
            }
        };
        match &claimants[at].pod {
            Some((info, _)) => Some(problem.of(&info.id)),
            None => owner
                .is_some_and(|(owner, _)| owner != at)
                .then_some(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::{LinkKind, Macvlan, MacvlanMode};
    use crate::model::{Address, Link, Mac, Parent, PodId};

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

    fn claimants(pods: &[(&str, NetState)]) -> Vec<Claimant> {
        let netns = NetnsIdentity {
            cookie: Some(1),
            device: 4,
            inode: 5,
            made: None,
            holder: None,
        };
        let claimant = |(id, state): &(&str, NetState)| {
            let info = PodInfo::nameless(&PodId::from_text(id));
            Claimant::pod(&info, &netns, Path::new("/run/netns/x"), state)
        };
        pods.iter().map(claimant).collect()
    }

    #[test]
    fn the_same_on_another_parent_is_no_conflict() {
        let pods = [
            ("a", pod("eth0.3", 1, "10.0.0.1")),
            ("b", pod("eth0.4", 1, "10.0.0.1")),
        ];
        assert!(contests(&claimants(&pods)).is_empty());
    }

    /// The owner of the only contest of three pods.
    fn owner(users: &[usize], given: &[usize]) -> Option<ClaimOwner> {
        let state = |mac| pod("eth0", mac, "10.0.0.1");
        let mut all = claimants(&[("a", state(1)), ("b", state(2)), ("c", state(3))]);
        for at in users {
            all[*at] = all[*at].clone().now(&state(1));
        }
        let [contest] = &contests(&all)[..] else {
            panic!("not one contest");
        };
        let oldest = |among: &[usize]| Some((*among.last()?, Title::Older { generation: 7 }));
        contest.owner(&all, |at| given.contains(&at), oldest)
    }

    #[test]
    fn what_is_in_use_comes_before_a_cni_result_and_that_before_an_older_claim() {
        assert_eq!(owner(&[1], &[0]), Some((1, Title::InUse)));
        assert_eq!(owner(&[0, 1], &[1, 2]), Some((1, Title::CniResult)));
        assert_eq!(owner(&[], &[0]), Some((0, Title::CniResult)));
        let older = |at| Some((at, Title::Older { generation: 7 }));
        assert_eq!(owner(&[0, 1], &[]), older(1));
        assert_eq!(owner(&[], &[0, 1]), older(2));
    }
}
