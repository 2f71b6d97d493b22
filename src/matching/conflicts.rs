//! Who claims what: each pod on this machine that has, or had, a MAC or an address on a link of the host.

use std::path::Path;

use crate::model::{NetState, PodId, Problem};
use crate::plan::claims::{Claimant, contested};

/// Two claims on one MAC or address, among those of checkpoints, of running pods and of the host: a restore would bring
/// neither back.
pub(crate) fn contested_claims<'a>(
    of_checkpoints: impl IntoIterator<Item = Claimant<'a>>,
    running: impl IntoIterator<Item = (&'a PodId, &'a Path, &'a NetState)>,
    host: &'a NetState,
) -> Vec<Problem> {
    let running = running
        .into_iter()
        .map(|(pod, path, state)| (pod, path.display().to_string(), state));
    let running: Vec<_> = running.collect();
    let mut claimants: Vec<Claimant<'_>> = of_checkpoints.into_iter().collect();
    claimants.extend(running.iter().map(|(pod, netns, state)| Claimant {
        pod: Some(pod),
        netns,
        state,
    }));
    claimants.push(Claimant {
        pod: None,
        netns: "",
        state: host,
    });
    contested(&claimants)
}
