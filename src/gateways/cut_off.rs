//! The pods that reach nothing, of those without a good record.

use crate::gateways::answers::{ProbeLimits, Reachability};
use crate::gateways::recorded::Recorded;
use crate::gateways::survey::VerifiedPod;
use crate::inventory::Inventory;
use crate::inventory::visit::{confirm, visit};
use crate::model::{CutOff, HostSide, Problem, Severity};
use crate::plan::cut_off;

/// Notes which of the pods of this inventory reach nothing; returns the problem of each. One that did so at its snapshot is a warning.
pub(super) fn find(
    inventory: &mut Inventory,
    recorded: &Recorded<'_>,
    pods: &mut [VerifiedPod],
    limits: ProbeLimits<'_>,
) -> Vec<Problem> {
    if !limits.names_cut_off {
        return Vec::new();
    }
    let side = HostSide::new(&inventory.host.state);
    let mut found = Vec::new();
    for (at, (pod, seen)) in inventory.pods.iter().zip(pods.iter()).enumerate() {
        let record = recorded.about(&inventory.node, pod);
        let is_known = record.is_some_and(|record| !record.own.cut_off)
            || seen.answers.state == Reachability::Reachable;
        let what = cut_off(&seen.observed, &side);
        found.extend(
            what.filter(|_| !is_known)
                .map(|what| (at, record.is_some(), what)),
        );
    }
    let mut look = || {
        found.retain_mut(|(at, _, what)| {
            let now = observe(inventory, *at);
            now.map(|now| *what = now).is_some()
        });
        // A snapshot has confirmed the others.
        found.iter().any(|(_, is_recorded, _)| !is_recorded)
    };
    if look() {
        confirm(look);
    }
    let problem = |(at, is_recorded, what): (usize, bool, CutOff)| {
        pods[at].answers.state = Reachability::CutOff;
        let severity = if is_recorded {
            Severity::Warning
        } else {
            Severity::Error
        };
        Problem {
            severity,
            ..what.problem().of(&pods[at].pod.info.id)
        }
    };
    found.into_iter().map(problem).collect()
}

/// One pod with all that decides.
fn observe(inventory: &mut Inventory, at: usize) -> Option<CutOff> {
    let Inventory { host, pods, .. } = inventory;
    host.refresh().ok()?;
    let states = visit(&mut pods[at..=at], |pod| pod.observe_inside(host));
    let state = states.into_iter().next()?.ok()?.ok()?;
    cut_off(&state, &HostSide::new(&host.state))
}
