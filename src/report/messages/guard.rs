//! The decisions of `netfix guard`, one line each.

use std::time::Duration;

use crate::guard::decide::{GuardDecision, LeftAlone, Tried, Wanted};
use crate::model::text::{count, duration, escape, join};
use crate::model::{IfName, Loss};
use crate::report::text::bounded;

sentences! {
    GuardDecision {
        Well => "watching: nothing to restore",
        NoSnapshot => "no snapshot of this boot to compare with. Run `netfix snapshot`",
        LeftToWindow { command } => "the window of `netfix {command}` is open: nothing to do until it is closed",
        Held { until, lost: 0 } => "held until {until}: nothing is restored",
        Held { until, lost } => "held until {until}: nothing is restored; lost: {pods}" (pods = count(*lost, "pod")),
        WaitsFor { missing } => "the network is lost: waiting for {missing}" (missing = or_devices(missing)),
        Unsure => "could not observe everything: looking again",
        NoPod { selectors } => "no running network namespace matches {selectors}",
        LeftDeleted => "pods are lost on links that were deleted: left alone",
        LeftAlone(left) => "left alone: {lost}. Run `netfix check`, then `netfix restore`"
            (lost = join(bounded(left.iter().map(alone)), ", ")),
        WouldRestore(wanted) => "would restore {pods} on {lost}" (pods = pods(wanted), lost = or_devices(&wanted.lost)),
        Restore(wanted) if wanted.resumes => "completing the restore of a guard that is gone{attempt}" (attempt = attempt(wanted)),
        Restore(wanted) if wanted.is_retry() => "restoring {pods} again{attempt}"
            (pods = join(bounded(wanted.again.iter().map(|title| escape(title))), ", "), attempt = attempt(wanted)),
        Restore(wanted) => "restoring the pods on {lost}{attempt}" (lost = or_devices(&wanted.lost), attempt = attempt(wanted)),
        Later { at: _, after, attempt } => "the loss repeats: attempt {attempt} is due in {after}"
            (after = duration(Duration::from_millis(*after))),
        GivenUp { links, attempts } => "{links} was lost again after {attempts} in a row: no more restores of the pods on it"
            (links = join(links, ", "), attempts = count(*attempts as usize, "restore")),
    }
}

/// What is left alone, and why.
fn alone(left: &LeftAlone) -> String {
    let why = match (&left.loss, &left.pod) {
        _ if left.is_removed => "its runtime has it no more".to_owned(),
        _ if left.tried.is_some() => left.tried.iter().map(tried).collect(),
        (None, _) => "its checkpoint cannot be read".to_owned(),
        (Some(Loss { link, what }), Some(_)) => {
            format!("{link} {what}; the host's links under it stayed")
        }
        (Some(Loss { link, what }), None) => {
            format!("{link} {what}; the guard restores it only with pods")
        }
    };
    let whose = left.pod.as_deref().unwrap_or("the host");
    format!("{} ({})", escape(whose), escape(&why))
}

/// What was in the way of a restore, and when the next one follows.
fn tried(Tried { why, pause }: &Tried) -> String {
    let pause = duration(Duration::from_millis(*pause));
    match why.as_str() {
        "" => format!("not complete after a restore; tried again after {pause}"),
        why => format!("{why}; tried again after {pause}"),
    }
}

/// The pods that would be restored.
fn pods(wanted: &Wanted) -> String {
    let number = wanted.pods.as_ref().map(|pods| count(pods.len(), "pod"));
    number.unwrap_or_else(|| "all pods".to_owned())
}

/// A device inside a pod is no link of the host.
fn or_devices(links: &[IfName]) -> String {
    if links.is_empty() {
        "devices of pods".to_owned()
    } else {
        join(links, ", ")
    }
}

fn attempt(wanted: &Wanted) -> String {
    match wanted.attempt {
        1 => String::new(),
        number => format!(" (attempt {number} in a row)"),
    }
}
