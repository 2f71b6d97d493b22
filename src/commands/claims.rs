//! Who claims what: everybody on this machine who has, or had, a MAC or an address on a link of the host.

use crate::model::{NetState, Problem};
use crate::observe::Pod;
use crate::plan::claims::{Claimant, contested};

/// Two claims on one MAC or address, among those of checkpoints, of living pods and of the host: a restore would bring
/// neither back.
pub(super) fn contested_claims<'a>(
    of_checkpoints: impl IntoIterator<Item = Claimant<'a>>,
    living: impl IntoIterator<Item = (&'a Pod, &'a NetState)>,
    host: &'a NetState,
) -> Vec<Problem> {
    let path = |(pod, state): (&'a Pod, &'a NetState)| (pod, pod.netns.path.display().to_string(), state);
    let living: Vec<_> = living.into_iter().map(path).collect();
    let mut claimants: Vec<Claimant<'_>> = of_checkpoints.into_iter().collect();
    claimants.extend(living.iter().map(|(pod, netns, state)| Claimant {
        pod: Some(&pod.info.id),
        netns,
        state,
    }));
    claimants.push(Claimant { pod: None, netns: "", state: host });
    contested(&claimants)
}
