//! The accounts of losses and of pods that a restore could not complete, as a restore begins and ends.

use super::decide::Wanted;
use super::pace;
use super::sight::Sight;
use crate::model::PodId;
use crate::model::window::{GuardRecord, IncompletePod};

/// A restore begins: another guard must know it, should this one be killed in it.
pub(crate) fn begins(record: &mut GuardRecord, wanted: &Wanted, now: u64) {
    for name in &wanted.losses {
        pace::begin(record.losses.entry(name.clone()).or_default(), now);
    }
    for (id, pod) in &mut record.incomplete {
        if wanted.has(id) {
            pace::begin(&mut pod.pace, now);
        }
    }
}

/// A restore of what was lost `since` has ended: with that, the losses that it saw are settled. A pod that it could not complete has its
/// own account from now on, with what was in the way.
pub(crate) fn ends(
    record: &mut GuardRecord,
    wanted: &Wanted,
    (since, [before, after]): (u64, [&Sight; 2]),
    why: impl Fn(&PodId) -> String,
) {
    let now_of = |sight: &Sight, name| sight.links.get(name).and_then(|link| link.now);
    for name in &wanted.lost {
        let Some(now) = now_of(after, name) else {
            continue;
        };
        let given = after.links.get(name).map(|link| link.recorded);
        let then = now_of(before, name);
        // One with a third number was lost again meanwhile.
        if then.is_none_or(|then| then == now) || given == Some(now) {
            record.settled.insert(name.clone(), now);
        }
    }
    for name in &wanted.losses {
        let pace = record.losses.entry(name.clone()).or_default();
        pace.last = Some(after.now);
        // A device that is gone was lost once more.
        let link = after.links.get(name);
        pace.in_vain = link.is_some_and(|link| !link.is_device && link.now.is_none());
    }
    for pod in after
        .pods
        .iter()
        .filter(|pod| pod.is_lost && wanted.has(&pod.id))
    {
        let lost = IncompletePod {
            since,
            ..IncompletePod::default()
        };
        let kept = record.incomplete.entry(pod.id.clone()).or_insert(lost);
        kept.title.clone_from(&pod.title);
        kept.why = why(&pod.id);
        kept.pace.attempts = kept.pace.attempts.max(1);
        kept.pace.last = Some(after.now);
    }
}
