//! The ifindex of a NIC that its driver has made anew: rules and sockets that name the NIC by its former one match again once it has
//! that one back.

use crate::model::problem::{KeptIndex, PlanCause};
use crate::model::{Indexed, Link, Problem, Severity};
use crate::plan::{Observed, Plan, Step};

/// The step that gives a device of the host its former ifindex back, or why it keeps the present one.
pub(in crate::plan) fn step(
    wanted: &Link,
    now: &Link,
    recorded: &Indexed<'_>,
    observed: &Observed<'_>,
    plan: &mut Plan,
) {
    let has_other = wanted.index != 0 && wanted.index != now.index;
    if !has_other || !wanted.is_device() || !now.is_device() {
        return;
    }
    let kept = observed
        .kept_indexes
        .and_then(|kept| kept.get(&wanted.index));
    // With its former ifindex, a device that no instance distinguishes would seem never to have been away.
    let instance = |link: &Link| link.hardware.as_ref()?.instance;
    if kept.is_none() && instance(wanted).zip(instance(now)).is_none() {
        return;
    }
    let kept = kept.cloned();
    let Some(why) = kept.or_else(|| obstacle(wanted, now, recorded, observed)) else {
        return plan.push(Step::Index {
            dev: now.name.clone(),
            index: wanted.index,
            now: now.index,
        });
    };
    let severity = match why {
        KeptIndex::Requested | KeptIndex::Owner(_) => Severity::Info,
        _ => Severity::Warning,
    };
    let (now, then) = (now.index, wanted.index);
    let cause = PlanCause::NicRenumbered { now, then, why };
    plan.problems
        .push(Problem::new(severity, &wanted.name, cause));
}

/// What the device would lose, or who has the ifindex.
fn obstacle(
    wanted: &Link,
    now: &Link,
    recorded: &Indexed<'_>,
    observed: &Observed<'_>,
) -> Option<KeptIndex> {
    let state = observed.state;
    if let Some(other) = state.links.iter().find(|link| link.index == wanted.index) {
        return Some(KeptIndex::Taken(other.name.clone()));
    }
    if now.sriov().is_some_and(|present| present.vfs > 0) {
        return Some(KeptIndex::Functions);
    }
    let known = recorded.addresses_of(&wanted.name);
    let is_new = |local| !known.iter().any(|one| one.local == local);
    let mut own = state
        .addresses
        .iter()
        .filter(|one| one.dev == now.name && !one.comes_by_itself());
    let new = own.find(|one| is_new(one.local))?;
    Some(KeptIndex::Address(new.local))
}
