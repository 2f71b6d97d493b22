//! The decisions of `netfix guard`, one line each.

use std::time::Duration;

use crate::guard::decide::{GuardDecision, LeftAlone, Wanted};
use crate::model::text::{count, duration, escape, join};
use crate::model::{IfName, Loss};
use crate::report::text::bounded;

sentences! {
    GuardDecision {
        Well => "watching: nothing of the last snapshot is lost",
        NoSnapshot => "no snapshot of this boot to compare with. Run `netfix snapshot`",
        LeftToWindow { command } => "the window of `netfix {command}` is open: nothing to do until it is closed",
        WaitsFor { missing } => "pods are lost: waiting for {missing}" (missing = or_devices(missing)),
        Unsure => "could not observe everything: looking again",
        NoPod { selectors } => "no running network namespace matches {selectors}",
        LeftDeleted => "pods are lost on links that were deleted: left alone",
        LeftAlone(left) => "left alone: {lost}. Run `netfix check`, then `netfix restore`"
            (lost = join(bounded(left.iter().map(alone)), ", ")),
        Restore(wanted) if wanted.resumes => "completing the restore of a guard that is gone{attempt}" (attempt = attempt(wanted)),
        Restore(wanted) => "restoring the pods on {lost}{attempt}" (lost = or_devices(&wanted.lost), attempt = attempt(wanted)),
        Later { at: _, after, attempt } => "the loss repeats: attempt {attempt} follows in {after}"
            (after = duration(Duration::from_millis(*after))),
        GivesUp { attempts } => "the loss repeats after {attempts}: no more restores"
            (attempts = count(*attempts as usize, "restore")),
        GivenUp { attempts } => "the loss repeated after {attempts}: still no more restores"
            (attempts = count(*attempts as usize, "restore")),
    }
}

/// What is left alone, and why.
fn alone(left: &LeftAlone) -> String {
    let why = match (&left.loss, &left.pod) {
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
