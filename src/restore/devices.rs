//! Devices that pods had inside. They return with their driver, in the host's namespace.

use super::job::Job;
use crate::inventory::observe::Host;
use crate::inventory::visit;
use crate::model::{Hardware, NetState};

/// The devices that are gone from their pods. A pod that cannot be read is given up.
pub(super) fn lost(jobs: &mut [Job], host: &Host) -> Vec<Hardware> {
    let having = jobs.iter_mut();
    let mut having: Vec<&mut Job> = having
        .filter(|job| recognisable(&job.matched.claims()).next().is_some())
        .collect();
    let states = visit::visit(&mut having, |job| {
        job.matched.pod.observe_links_inside(host)
    });
    let mut lost = Vec::new();
    for (job, state) in having.into_iter().zip(states) {
        match state.and_then(|state| state) {
            Ok(now) => {
                let is_gone = |then: &&Hardware| !recognisable(&now).any(|now| now.is_same(then));
                let claims = job.matched.claims();
                lost.extend(recognisable(&claims).filter(is_gone).cloned());
            }
            Err(error) => job.give_up(&error),
        }
    }
    lost
}

/// The devices of a namespace that can be recognised.
fn recognisable(state: &NetState) -> impl Iterator<Item = &Hardware> {
    let hardware = state.links.iter().filter_map(|link| link.hardware.as_ref());
    hardware.filter(|hardware| hardware.is_known())
}
