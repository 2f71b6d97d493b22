//! How a window went, in one sentence.

use super::outcome::{Ending, PodCounts, has_failed, is_still_paused, names_dead_indexes};
use super::{nics, words};
use crate::model::Severity;
use crate::model::net::nic;
use crate::model::next::{NextStep, WindowNow};
use crate::model::window::{Phase, PhaseName, Rollback, SettingResult, Shown, Standing, Window};
use crate::report::messages::observed;
use crate::report::problems::programs_to_restart;
use crate::report::text::{
    count, escape, join, list_or_dash, milliseconds, others, pod_noun, verb,
};

/// How it went, in one sentence.
pub(super) fn sentence(
    window: &Window,
    ending: Ending,
    (standing, now): (Standing, Option<&WindowNow>),
    counts: &PodCounts,
) -> String {
    let mut phases = window.phases.iter();
    let was_tried = phases.any(|phase| phase.name == PhaseName::Restore)
        || window.pods.iter().any(|pod| pod.rebuilt.is_some());
    let pods = match counts.total {
        _ if window.is_accept() => Some(given_up(window)),
        0 => match ending {
            Ending::Well if window.host.is_none() => None,
            Ending::Well => Some("no pod was running; the host is as it was".to_owned()),
            Ending::Restored => Some(format!(
                "no pod was running; the host is as it was, not shown {WHY_NOT_SHOWN}"
            )),
            Ending::NothingLost => Some("no pod was running".to_owned()),
            _ => None,
        },
        _ if window.is_ended_by_reboot() => Some("the boot made every pod anew".to_owned()),
        _ => (was_tried && ending != Ending::Open).then(|| pods(window, ending, counts)),
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

/// Whose losses a person gave up.
fn given_up(window: &Window) -> String {
    let total = window.pods.len();
    let pods = (total > 0).then(|| count(total, "pod"));
    let host = window.problems.iter().any(|one| one.pod.is_none());
    let host = host.then(|| "the host".to_owned());
    let who = join(pods.into_iter().chain(host), " and ");
    format!("{who}: what is there now is the good state")
}

/// How many pods are back, and what else happened to pods.
fn pods(window: &Window, ending: Ending, counts: &PodCounts) -> String {
    let PodCounts {
        total,
        back,
        not_shown: _,
        not_back,
        rebuilt,
        gone,
        restarted,
        unexpected: _,
        unknown,
        rebuilt_unknown,
        unselected,
        unselected_lost,
        unselected_unknown,
    } = *counts;
    let pods = count(total, pod_noun(unselected > 0));
    if window.is_bare_restore() {
        let left = others([(not_back, "not back"), (unknown, "unknown")]);
        let pods = count(total, "pod");
        return format!(
            "{back} of {pods} restored{left}; no gateway was asked: `netfix verify` does"
        );
    }
    let is_known = unknown < total;
    let back = match ending {
        _ if !is_known => format!("cannot determine whether {pods} came back"),
        Ending::NothingLost => format!("{back} of {pods} unchanged"),
        _ => format!("{back} of {pods} back{}", not_shown(window, counts)),
    };
    let unknown = if is_known { unknown } else { 0 };
    let not_back = others([(not_back, "not back"), (unknown, "unknown")]);
    let fates = words::others(restarted, gone);
    let checked = total.saturating_sub(rebuilt_unknown);
    let rebuilt = match (rebuilt, checked) {
        (_, 0) if window.is_unplanned() => {
            "; the guard's watch for rebuilt pods has not ended".to_owned()
        }
        (_, 0) => "; cannot determine whether a pod was rebuilt".to_owned(),
        (0, _) => format!("; no pod was rebuilt ({checked} of {total} checked)"),
        (_, _) => format!("; {rebuilt} rebuilt ({checked} of {total} checked)"),
    };
    let at_risk = count(unselected, "pod");
    let unselected = match (unselected, unselected_lost, unselected_unknown) {
        (0, _, _) => String::new(),
        (_, 0, 0) => format!("; not selected: {at_risk} at risk, none has lost anything"),
        (_, lost, unknown) => {
            let lost = others([(lost, "lost something"), (unknown, "unknown")]);
            format!("; not selected: {at_risk} at risk{lost}")
        }
    };
    [back, not_back, fates, rebuilt, unselected].concat()
}

/// Behind what no answer has shown.
const WHY_NOT_SHOWN: &str = "(nothing answered before)";

/// The pods and the host of which no answer has shown that their network is as it was.
fn not_shown(window: &Window, counts: &PodCounts) -> String {
    let pods = (counts.not_shown > 0).then(|| counts.not_shown.to_string());
    let host = (window.host_shown == Some(Shown::Never)).then(|| "the host".to_owned());
    match join(pods.into_iter().chain(host), " and ") {
        none if none.is_empty() => none,
        who => format!(", {who} not shown {WHY_NOT_SHOWN}"),
    }
}

/// What of the host is not as it was.
fn host(window: &Window) -> String {
    let absent = nic::absent(window.nics.as_deref());
    let absent = (!absent.is_empty()).then(|| {
        let number = absent.len();
        let (noun, is) = (verb(number, "NIC", "NICs"), verb(number, "is", "are"));
        format!("the {noun} {} {is} missing", list_or_dash(&absent))
    });
    let is_silent = window.host_shown == Some(Shown::NotAgain);
    let silent = is_silent.then(|| "a gateway of the host does not answer any more".to_owned());
    let settings = window.settings.iter();
    let open = settings.filter(|one| one.pod.is_none() && one.result != SettingResult::Restored);
    let open = Some(open.count()).filter(|open| *open > 0);
    let open = open.map(|open| format!("{} of NICs not restored", count(open, "setting")));
    let is_named = names_dead_indexes(window);
    let named = is_named.then(|| "rules or programs of the host name a former ifindex".to_owned());
    let parts = absent.into_iter().chain(silent).chain(open).chain(named);
    match join(parts, "; ") {
        none if none.is_empty() => "the host is not as it was".to_owned(),
        parts => parts,
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
        (Ending::NothingLost, None) => "COMMAND reloaded no driver".to_owned(),
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
