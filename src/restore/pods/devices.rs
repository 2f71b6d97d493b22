//! Devices that pods had inside. They return with their driver, in the host's namespace.

use crate::inventory::observe::Host;
use crate::inventory::visit;
use crate::model::{Hardware, NetState};
use crate::restore::pods::pod::PodJob;

/// The devices that are gone from their pods. A pod that cannot be read is given up.
pub(in crate::restore) fn lost(pods: &mut [PodJob], host: &Host) -> Vec<Hardware> {
    let mut having: Vec<&mut PodJob> = pods
        .iter_mut()
        .filter(|pod| recognisable(&pod.matched.claims()).next().is_some())
        .collect();
    let states = visit::visit(&mut having, |pod| {
        pod.matched.pod.observe_links_inside(host)
    });
    let mut lost = Vec::new();
    for (pod, state) in having.into_iter().zip(states) {
        match state.and_then(|state| state) {
            Ok(now) => {
                let claims = pod.matched.claims();
                let gone = recognisable(&claims)
                    .filter(|then| !recognisable(&now).any(|now| now.is_same(then)));
                lost.extend(gone.cloned());
            }
            Err(error) => pod.give_up(&error),
        }
    }
    lost
}

/// The devices of a namespace that can be recognised.
fn recognisable(state: &NetState) -> impl Iterator<Item = &Hardware> {
    let links = state.links.iter();
    links
        .filter_map(|link| link.hardware.as_ref())
        .filter(|hardware| hardware.is_known())
}
