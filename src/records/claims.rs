//! What several records, pods without one and the host claim, and what the pods get of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::slice;

use crate::inventory::observe::{Host, Pod};
use crate::inventory::pods::observe_claims;
use crate::matching::claims::{Claimant, contests};
use crate::model::{NetState, NodeIdentity, Problem};
use crate::records::contest;
use crate::records::matched::Matched;

/// Decides who gets what several of the records, of the pods without one and the host claim. What the host does not get, its
/// recorded state is without. Returns the findings of the host and of the pods without a record.
pub(super) fn settle_claims<'a>(
    matched: &mut [Matched],
    unmatched: impl Iterator<Item = (&'a Pod, &'a NetState)>,
    (host, recorded): (&Host, &mut NetState),
    node: &NodeIdentity,
    sources: contest::Sources<'_>,
) -> Vec<Problem> {
    let mut claimants = Vec::new();
    for one in matched.iter() {
        let netns = Path::new(&one.checkpoint.netns);
        let claims = one.claims();
        claimants.push(Claimant::pod(&one.info, &one.pod.identity, netns, &claims));
    }
    for (pod, state) in unmatched {
        let netns = &pod.netns.path;
        claimants.push(Claimant::pod(&pod.info, &pod.identity, netns, state).now(state));
    }
    let of_host = claimants.len();
    claimants.push(Claimant::host(recorded, &host.state));
    let contests = contests(&claimants);
    let holders: BTreeSet<usize> = contests
        .iter()
        .flat_map(|one| one.holders.clone())
        .collect();
    for at in holders {
        let pod = matched.get_mut(at).map(|one| slice::from_mut(&mut one.pod));
        let state = pod.and_then(|pod| observe_claims(pod, host).pop());
        // One that cannot be read is reported where it is restored.
        if let Some(Ok(state)) = state {
            claimants[at] = claimants[at].clone().now(&state);
        }
    }
    let (mut others, mut withheld) = (Vec::new(), BTreeSet::new());
    for ruling in contest::decide(&contests, &claimants, node, sources) {
        if let Some(one) = matched.get_mut(ruling.at) {
            one.contested.push(ruling.problem);
            one.withheld.extend(ruling.withheld);
        } else {
            others.push(ruling.problem);
            withheld.extend(ruling.withheld.filter(|_| ruling.at == of_host));
        }
    }
    if !withheld.is_empty() {
        *recorded = recorded.host_without(&withheld, &host.state);
    }
    others
}
