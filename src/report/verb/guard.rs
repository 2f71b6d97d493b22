//! `netfix guard` on the screen of `status`.

use crate::report::document::StatusView;
use crate::report::text::{self, Facts, bounded, count, escape, join, or_dash, others};
use crate::report::verb::status::unread_or;
use crate::situation::guard_now::{GuardNow, GuardState, IncompleteNow};
use crate::window::status::StatusPart;

/// What `netfix guard` does.
pub(super) fn state(status: &StatusView) -> String {
    let Some(guard) = &status.guard else {
        return unread_or(status, StatusPart::Guard, text::UNKNOWN);
    };
    let state = match guard.state {
        GuardState::Off => "not running".to_owned(),
        GuardState::Stopped => "not running, though enabled".to_owned(),
        GuardState::Held => format!("held until {}", or_dash(guard.hold.as_deref().map(escape))),
        GuardState::ReportOnly => format!(
            "reports only: {} would have been done",
            count(to_usize(guard.reported), "restore")
        ),
        GuardState::GivenUp => format!(
            "has given up on {}",
            join(guard.given_up.iter().map(|link| &link.name), ", ")
        ),
        GuardState::Watching => "watching the pods of the last restore".to_owned(),
        GuardState::Armed => "armed".to_owned(),
    };
    let last = guard.last.as_ref().map(|last| {
        let restores = count(to_usize(guard.restores), "restore");
        format!("; {restores}, the last at {}", escape(&last.at))
    });
    let incomplete = others([(still_lost(status, guard).count(), "not completed")]);
    format!("{state}{}{incomplete}", last.unwrap_or_default())
}

/// Which pods `netfix guard` could not complete, and what it decided last.
pub(super) fn details(status: &StatusView) -> Facts {
    let Some(guard) = &status.guard else {
        return Vec::new();
    };
    let pods = still_lost(status, guard);
    let pods = pods.map(|pod| format!("{}: {}", escape(&pod.title), escape(&pod.why)));
    // Without -v there is space for few.
    let deeds = guard.deeds.iter().rev();
    let deeds = deeds.map(|deed| format!("{} {}", escape(&deed.at), short(&deed.text)));
    let all = bounded(pods).into_iter().chain(deeds);
    all.map(|text| ("", text)).collect()
}

/// The pods that the guard could not complete and that are lost now: it may not have looked since.
fn still_lost<'a>(
    status: &'a StatusView,
    guard: &'a GuardNow,
) -> impl Iterator<Item = &'a IncompleteNow> {
    let lost = status.network.as_ref().map(|network| &network.which.pods);
    guard
        .incomplete
        .iter()
        .filter(move |one| lost.is_none_or(|lost| lost.iter().any(|pod| pod.title() == one.title)))
}

/// A decision on one line: `netfix report --list` has all of it.
fn short(text: &str) -> String {
    const MOST: usize = 120;
    let text = escape(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A count for people.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
