//! What happened to each pod of a window: the verdicts in its record, and what an operator must look at.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::clock;
use crate::model::fate::{Fate, LastSeen};
use crate::model::problem::RebuildCause;
use crate::model::window::{KubeletPause, WindowPod};
use crate::model::{NetnsIdentity, PodId, Problem, Severity, State, Window};
use crate::records::stored::Stored;
use crate::runtime::Sandbox;
use crate::window::facts;
use crate::window::rebuild_check::{self, After, RebuildVerdict};

/// Records what happened to each pod; `torn` are those that their runtime was tearing down. Returns the problems.
pub(super) fn note(
    window: &mut Window,
    mut after: After,
    stored: &Stored,
    torn: &BTreeSet<PodId>,
) -> Vec<Problem> {
    let pause = window.pause.clone();
    let began = window.started_boottime;
    after.resumed = pause.as_ref().and_then(|pause| resumed(pause, began));
    let now = after.observed.saturating_sub(began);
    let mut problems = Vec::new();
    for pod in &mut window.pods {
        let extension = facts::extension_of(&pod.info.id, stored);
        let namespace = extension.map(|one| &one.identity);
        let then = pod.fingerprint_before.as_ref();
        let (verdict, sandbox) = rebuild_check::check(&pod.info, then, namespace, &after);
        pod.fingerprint_after = sandbox.map(Sandbox::fingerprint);
        let verdict = match verdict {
            RebuildVerdict::Same | RebuildVerdict::Changed(_) if torn.contains(&pod.info.id) => {
                RebuildVerdict::Gone
            }
            verdict => verdict,
        };
        let cause = note_verdict(pod, verdict, pause.as_ref(), (&after, now));
        // Of one that nothing describes it is already said that it lost its network.
        let is_said = pod.state == Some(State::NoCheckpoint) || pod.became_cut_off();
        let cause = cause.filter(|cause| !(is_said && *cause == RebuildCause::Unknown));
        let severity = if pod.unexpected {
            Severity::Error
        } else {
            Severity::Warning
        };
        let problem = cause.map(|cause| Problem::new(severity, pod.info.title(), cause));
        problems.extend(problem.map(|problem| problem.of(&pod.info.id)));
    }
    problems
}

fn note_verdict(
    pod: &mut WindowPod,
    verdict: RebuildVerdict,
    pause: Option<&KubeletPause>,
    (after, now): (&After, u64),
) -> Option<RebuildCause> {
    pod.fate = verdict.fate();
    pod.rebuilt = pod.fate.map(|fate| fate == Fate::Rebuilt);
    pod.gone = (pod.fate == Some(Fate::Gone)).then(|| pod.gone.unwrap_or(now));
    pod.container_changes = Vec::new();
    pod.unexpected = true;
    match verdict {
        RebuildVerdict::Same => {
            pod.unexpected = false;
            None
        }
        RebuildVerdict::Changed(containers) => {
            pod.unexpected = containers.iter().any(|one| one.excuse.is_none());
            pod.container_changes.clone_from(&containers);
            Some(RebuildCause::ContainersChanged { containers })
        }
        RebuildVerdict::Rebuilt(cause) => Some(cause),
        RebuildVerdict::Gone => {
            let gone = pod.gone.unwrap_or(now);
            let seen = last_seen(pod, gone, pause);
            pod.unexpected = seen != LastSeen::Whole;
            let noticed = moment(after.observed.saturating_sub(now.saturating_sub(gone)));
            let noticed = format!("{noticed:.0}");
            Some(RebuildCause::Gone { noticed, seen })
        }
        RebuildVerdict::NamespaceGone => Some(RebuildCause::NamespaceGone),
        // The runtime that does not answer is a separate problem.
        RebuildVerdict::Unknown if after.sandboxes.is_none() => None,
        RebuildVerdict::Unknown => Some(RebuildCause::Unknown),
    }
}

/// How netfix last saw a pod that went at this moment of the window, or before it.
fn last_seen(pod: &WindowPod, gone: u64, pause: Option<&KubeletPause>) -> LastSeen {
    let paused = pause.and_then(|pause| Some((pause.paused?, pause.resumed)));
    let is_paused = paused.is_some_and(|(from, to)| from <= gone && to.is_none_or(|to| gone < to));
    // A container that no kubelet knows ends by itself at any time.
    let info = &pod.info;
    let is_of_engine = matches!(info.source.as_str(), "docker" | "podman");
    let may_be_of_kubelet = !is_of_engine || info.uid.is_some() || info.namespace.is_some();
    // One that no restore has observed has lost its network with the link below it.
    let is_lost = pod.state.is_none() && pod.lost.is_some_and(|lost| lost <= gone);
    if pod.state.is_some_and(|state| !state.is_good()) {
        LastSeen::NotRestored
    } else if is_paused && may_be_of_kubelet {
        LastSeen::InPause
    } else if is_lost {
        LastSeen::NotRestored
    } else {
        LastSeen::Whole
    }
}

/// When kubelet ran again by the wall clock, in milliseconds since 1970; while it is paused, now.
fn resumed(pause: &KubeletPause, began: u64) -> Option<i64> {
    pause.paused?;
    let at = pause.resumed.map_or_else(clock::boottime, |at| began + at);
    Some(moment(at).as_millisecond())
}

/// A moment of this boot by the wall clock.
pub(super) fn moment(boottime: u64) -> Timestamp {
    let ago = i64::try_from(clock::boottime().saturating_sub(boottime)).unwrap_or_default();
    let now = Timestamp::now();
    now.checked_sub(SignedDuration::from_millis(ago))
        .unwrap_or(now)
}

/// Notes pods that are gone at this moment of the window, but those that are known to be rebuilt.
pub(super) fn note_gone(window: &mut Window, gone: impl Fn(&PodId) -> bool, at: u64) {
    let pods = window.pods.iter_mut().filter(|pod| gone(&pod.info.id));
    for pod in pods.filter(|pod| pod.fate != Some(Fate::Rebuilt)) {
        pod.gone.get_or_insert(at);
    }
}

/// The pods of which the namespace is none of these.
pub(crate) fn absent<'a>(
    stored: &Stored,
    present: impl Iterator<Item = &'a NetnsIdentity>,
) -> BTreeSet<PodId> {
    let present: Vec<_> = present.collect();
    let checkpoints = stored.checkpoints.iter();
    let absent = checkpoints.filter(|(_, checkpoint)| {
        let extension = checkpoint.netfix.as_ref();
        extension.is_some_and(|one| {
            rebuild_check::is_present(&one.identity, present.iter().copied()) == Some(false)
        })
    });
    absent.map(|(info, _)| info.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_went_after_its_link_and_before_a_restore_was_not_whole() {
        let text = include_str!("../../testdata/windows/well.json");
        let mut window: Window = serde_json::from_str(text).unwrap();
        let pod = &mut window.pods[0];
        let lost = pod.lost.unwrap();
        assert_eq!(
            last_seen(pod, lost + 900, None),
            LastSeen::Whole,
            "restored"
        );
        pod.state = None;
        assert_eq!(last_seen(pod, lost + 900, None), LastSeen::NotRestored);
        assert_eq!(
            last_seen(pod, lost - 900, None),
            LastSeen::Whole,
            "before the loss"
        );
        pod.lost = None;
        assert_eq!(last_seen(pod, lost + 900, None), LastSeen::Whole);
        pod.state = Some(State::Partial);
        assert_eq!(last_seen(pod, lost + 900, None), LastSeen::NotRestored);
    }
}
