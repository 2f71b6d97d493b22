//! How a window went, in one sentence.

use super::outcome::{Ending, PodCounts, has_failed, is_still_paused};
use super::{nics, words};
use crate::model::Severity;
use crate::model::net::nic;
use crate::model::next::{NextStep, WindowNow};
use crate::model::window::{Phase, PhaseName, Rollback, SettingResult, Standing, Window};
use crate::report::messages::observed;
use crate::report::problems::programs_to_restart;
use crate::report::text::{count, escape, join, list_or_dash, milliseconds};

/// How it went, in one sentence.
pub(super) fn sentence(
    window: &Window,
    ending: Ending,
    (standing, now): (Standing, Option<&WindowNow>),
    pods: &PodCounts,
) -> String {
    let mut phases = window.phases.iter();
    let was_tried = phases.any(|phase| phase.name == PhaseName::Restore)
        || window.pods.iter().any(|pod| pod.rebuilt.is_some());
    let pods = match pods.total {
        0 => None,
        _ if window.is_ended_by_reboot() => Some("the boot made every pod anew".to_owned()),
        _ => (was_tried && ending != Ending::Open).then(|| pods.to_string()),
    };
    let run = window.run.as_ref().filter(|run| has_failed(run));
    let end = run.map(|run| words::run_end(window, PhaseName::Command, run));
    let run = end.map(|end| format!("COMMAND {end}"));
    let was_tried = window.rollback.is_some();
    let drivers = was_tried.then(|| nics::drivers(window)).flatten();
    // What is observed now counts, and not what was last written.
    let now = now.filter(|_| standing != Standing::Closed);
    let pause = match now {
        None => pause(window, standing),
        Some(now) if now.next == NextStep::Nothing => Some(observed::ended_by_reboot(now)),
        Some(now) => Some(join(observed::facts(now), "; ")),
    };
    let next = now.map(|now| format!(" {}.", observed::next(now)));
    let parts = [
        progress(window, ending),
        pods,
        (ending == Ending::HostAffected).then(|| host(window)),
        run,
        window.rollback.as_ref().map(|one| rollback(window, one)),
        drivers,
        programs_to_restart(&window.problems, Severity::Warning),
        pause.filter(|words| !words.is_empty()),
    ];
    let text = join(parts.into_iter().flatten(), "; ") + "." + &next.unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().into_iter();
    first.flat_map(char::to_uppercase).chain(letters).collect()
}

/// What of the host is not as it was.
fn host(window: &Window) -> String {
    let absent = nic::absent(window.nics.as_deref());
    let words = if absent.len() > 1 {
        ("NICs", "are")
    } else {
        ("NIC", "is")
    };
    let absent = (!absent.is_empty()).then(|| {
        format!(
            "the {} {} {} missing",
            words.0,
            list_or_dash(&absent),
            words.1
        )
    });
    let settings = window.settings.iter();
    let open = settings.filter(|one| one.pod.is_none() && one.result != SettingResult::Restored);
    let open = Some(open.count()).filter(|open| *open > 0);
    let open = open.map(|open| format!("{} of NICs not restored", count(open, "setting")));
    match (absent, open) {
        (None, None) => "the host is not as it was".to_owned(),
        (absent, open) => join(absent.into_iter().chain(open), "; "),
    }
}

/// Why the rollback ran, and how it ended.
fn rollback(window: &Window, rollback: &Rollback) -> String {
    let why = words::reason(rollback);
    let end = words::run_end(window, PhaseName::Rollback, &rollback.run);
    format!("{why}; the rollback {end}")
}

/// How far an incomplete window came.
fn progress(window: &Window, ending: Ending) -> Option<String> {
    let died = window.phases.iter().find(|phase| phase.to.is_none());
    let words = match (ending, died) {
        (_, Some(Phase { name, .. })) if window.is_ended_by_reboot() => {
            format!("ended by a reboot in phase {name}")
        }
        (_, None) if window.is_ended_by_reboot() => "ended by a reboot".to_owned(),
        (Ending::Open, Some(Phase { name, .. })) => format!("in phase {name}"),
        (Ending::Open, None) if !is_still_paused(window) => "between two phases".to_owned(),
        (_, Some(Phase { name, .. })) => format!("died in phase {name}"),
        (Ending::Interrupted, None) => "the record has no end".to_owned(),
        (Ending::Refused, None) => "nothing was changed".to_owned(),
        _ => return None,
    };
    Some(words)
}

/// The unit's pause, unless a restore followed as planned.
fn pause(window: &Window, standing: Standing) -> Option<String> {
    let pause = window.pause.as_ref()?;
    let unit = escape(&pause.unit);
    match (pause.paused, pause.resumed) {
        (Some(_), None) if window.is_ended_by_reboot() => {
            Some(format!("the reboot ended the pause of {unit}"))
        }
        (Some(_), None) if standing == Standing::Closed => {
            Some(format!("the unit {unit} was not seen running again"))
        }
        (Some(_), None) => Some(format!("the unit {unit} is paused")),
        (Some(from), Some(to)) if window.run.is_none() => {
            let length = milliseconds(to.saturating_sub(from));
            Some(format!("the unit {unit} was paused for {length}"))
        }
        _ => None,
    }
}
