//! Which of several claimants gets what only one can have, as far as libcni's results and the generations show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::cni;
use crate::kernel::Netns;
use crate::matching::NetnsKey;
use crate::matching::claims::{ClaimOwner, Claimant, Contest};
use crate::model::checkpoint::Extension;
use crate::model::pod::partial::Attachment;
use crate::model::problem::Title;
use crate::model::{Claim, NodeIdentity, NodeState, Problem};
use crate::store::{self, Store};

/// libcni's cache folder.
pub(crate) const CNI_CACHE: &str = "/var/lib/cni";

/// Where it is written who had something first.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub store: &'a Store,
    pub cni_cache: &'a Path,
}

/// What a contest means for one claimant.
pub(crate) struct Ruling {
    /// Its place in the list of claimants.
    pub at: usize,
    /// What it does not get.
    pub withheld: Option<Claim>,
    pub problem: Problem,
}

/// Decides contests. What cannot be read shows nothing.
pub(crate) fn decide(
    contests: &[Contest],
    claimants: &[Claimant],
    node: &NodeIdentity,
    sources: Sources<'_>,
) -> Vec<Ruling> {
    if contests.is_empty() {
        return Vec::new();
    }
    let results = cni_results(sources.cni_cache);
    let mut history = History::new(node, sources);
    let mut rulings = Vec::new();
    for contest in contests {
        let claim = &contest.claim;
        let owner = contest.owner(
            claimants,
            |at| is_given(claim, &claimants[at], &results),
            |among| history.oldest(claim, among, claimants),
        );
        for (at, problem) in contest.findings(claimants, owner) {
            let is_owner = owner.is_some_and(|(owner, _)| owner == at);
            rulings.push(Ruling {
                at,
                withheld: (!is_owner).then(|| claim.clone()),
                problem,
            });
        }
    }
    rulings
}

/// libcni's results by the namespace to which their path leads.
fn cni_results(folder: &Path) -> BTreeMap<NetnsKey, Vec<Attachment>> {
    let mut results: BTreeMap<NetnsKey, Vec<Attachment>> = BTreeMap::new();
    for (_, text) in store::cni_cache(folder).unwrap_or_default() {
        let Some(entry) = text.ok().and_then(|text| cni::parse(&text).ok()?) else {
            continue;
        };
        let mut namespaces = entry.paths.iter().map(|path| Netns::open(Path::new(path)));
        if let Some(Ok(netns)) = namespaces.next() {
            let of_netns = results.entry(netns.key()).or_default();
            of_netns.push(entry.attachment);
        }
    }
    results
}

fn is_given(
    claim: &Claim,
    claimant: &Claimant,
    results: &BTreeMap<NetnsKey, Vec<Attachment>>,
) -> bool {
    let Some((_, identity)) = &claimant.pod else {
        return false;
    };
    let Some(results) = results.get(&(identity.device, identity.inode)) else {
        return false;
    };
    results.iter().any(|one| {
        let is_on = |parent| one.parent.as_ref().is_none_or(|known| known == parent);
        match claim {
            Claim::Mac(parent, mac) => is_on(parent) && one.mac == Some(*mac),
            Claim::Address(parent, address) => {
                let mut addresses = one.addresses.iter();
                is_on(parent) && addresses.any(|known| known.addr() == *address)
            }
        }
    })
}

/// The generations, newest first, each read when it is needed.
struct History<'a> {
    node: &'a NodeIdentity,
    sources: Sources<'a>,
    unread: Vec<u64>,
    read: Vec<Past>,
}

/// One generation.
struct Past {
    number: u64,
    checkpoints: Vec<Extension>,
    host: Option<NodeState>,
    /// What the claimant at each place had.
    claims: BTreeMap<usize, BTreeSet<Claim>>,
}

impl<'a> History<'a> {
    fn new(node: &'a NodeIdentity, sources: Sources<'a>) -> Self {
        let generations = sources.store.generations().unwrap_or_default();
        Self {
            node,
            sources,
            unread: generations.iter().map(|one| one.number).collect(),
            read: Vec::new(),
        }
    }

    /// The one of these claimants that has had the claim for longest, in each generation since then: what was given up meanwhile is
    /// another's.
    fn oldest(
        &mut self,
        claim: &Claim,
        among: &[usize],
        claimants: &[Claimant],
    ) -> Option<ClaimOwner> {
        let (mut at, mut having) = (0, among.to_vec());
        loop {
            if at == self.read.len() {
                let number = self.unread.pop()?;
                self.read.extend(self.sources.past(number));
                continue;
            }
            let past = &mut self.read[at];
            having.retain(|one| past.has(claim, *one, &claimants[*one], self.node));
            match having[..] {
                [] => return None,
                [one] => {
                    let generation = past.number;
                    return Some((one, Title::Older { generation }));
                }
                _ => at += 1,
            }
        }
    }
}

impl Sources<'_> {
    /// A generation; `None` where a file of it cannot be read, or was not written by netfix: it may be about any pod.
    fn past(self, number: u64) -> Option<Past> {
        let store = self.store.generation(number).ok()?;
        let files = store.load_all().ok()?;
        Some(Past {
            number,
            host: store.load_node().ok()?,
            checkpoints: files
                .into_iter()
                .map(|(_, file)| file.ok()?.netfix)
                .collect::<Option<_>>()?,
            claims: BTreeMap::new(),
        })
    }
}

impl Past {
    fn has(&mut self, claim: &Claim, at: usize, claimant: &Claimant, node: &NodeIdentity) -> bool {
        let (checkpoints, host) = (&self.checkpoints, &self.host);
        let claims = self.claims.entry(at).or_insert_with(|| {
            let claims: Vec<_> = if let Some((info, identity)) = &claimant.pod {
                let own = checkpoints.iter();
                let own = own.filter(|one| one.is_about(node, identity, info));
                own.flat_map(|one| one.state.claims()).collect()
            } else {
                let own = host.iter().filter(|one| one.node == *node);
                own.flat_map(|one| one.state.claims_of_host()).collect()
            };
            claims.into_iter().map(|(_, claim)| claim).collect()
        });
        claims.contains(claim)
    }
}
