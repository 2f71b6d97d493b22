//! What happened to the containers of a sandbox that is the same as before.

use crate::model::fate::{Container, ContainerChange, Excuse, PodFingerprint};
use crate::runtime::Sandbox;

/// The containers that were restarted or ended; `resumed` is when kubelet ran again, in milliseconds since 1970.
pub(super) fn changes(
    then: &PodFingerprint,
    now: &Sandbox,
    resumed: Option<i64>,
) -> Vec<ContainerChange> {
    let then = then.containers.iter();
    then.filter_map(|then| change(then, now, resumed)).collect()
}

fn change(then: &Container, now: &Sandbox, resumed: Option<i64>) -> Option<ContainerChange> {
    // kubelet makes a new container for each restart; Docker starts the same one again and counts that.
    let itself = now.containers.iter().find(|one| one.id == then.id);
    // One that kubelet keeps from before a restart is not the next one.
    let is_newer = |last: &&Container| last.id == then.id || last.restarts >= then.restarts;
    let last = now.last_container(&then.name).filter(is_newer);
    let restarts = last.map_or(0, |last| restarts(then, last));
    let has_ended = !then.ended && last.is_none_or(|last| last.ended);
    if restarts == 0 && !has_ended {
        return None;
    }
    let exit = itself.and_then(|one| one.exit);
    Some(ContainerChange {
        name: then.name.clone(),
        id: then.id.clone(),
        restarts,
        exit,
        excuse: excuse(then, itself, resumed)
            .or_else(|| (restarts == 0 && exit == Some(0)).then_some(Excuse::Completed)),
    })
}

/// How often it was restarted, at least once where another container has its name.
fn restarts(then: &Container, last: &Container) -> u32 {
    let before = then.restarts.unwrap_or_default();
    let counted = last.restarts.unwrap_or_default().saturating_sub(before);
    counted.max(u32::from(last.id != then.id))
}

/// Why its first end in the window is no failure of that.
fn excuse(then: &Container, itself: Option<&Container>, resumed: Option<i64>) -> Option<Excuse> {
    let finished = itself.and_then(|one| one.finished);
    if then.restarts.is_some_and(|count| count > 0) {
        Some(Excuse::RestartedBefore)
    } else if then.ended {
        Some(Excuse::NotRunningBefore)
    } else if finished
        .zip(resumed)
        .is_some_and(|(end, resumed)| end < resumed)
    {
        Some(Excuse::EndedInPause)
    } else {
        None
    }
}
