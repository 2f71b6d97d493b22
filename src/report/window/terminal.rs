//! A window's report for the terminal.

use super::super::problems::{self, word};
use super::super::style::{Style, Tone};
use super::super::table::{self, Cell, Column, KEPT, WIDE};
use super::super::text::{
    Facts, UNKNOWN, count, escape, join, list_or_dash, milliseconds, or_dash, seconds,
};
use super::text::{self, clock, milliseconds_or_dash};
use super::verdict::{self, PodOutcome};
use super::{ReportView, WindowLine, WindowView, nics};
use crate::model::window::{
    EVICTION_AFTER, KubeletPause, NOT_READY_AFTER, Phase, PhaseName, REBOOT, WindowPod,
};

/// Everything about one window but its verdict.
pub(in crate::report) fn report(view: &ReportView, style: Style) -> String {
    let window = &view.window;
    let rows: Vec<(&ReportView, &Phase)> = window.phases.iter().map(|p| (view, p)).collect();
    let phases = table::text(&phases(), &rows, style);
    let nics = nics::table(window, style);
    let mut rows = view.pods();
    if !style.lists_all() {
        rows.retain(|pod| PodOutcome::of(window, pod) != PodOutcome::Back);
    }
    let pods = table::text(&pods(), &rows, style);
    let infos = window.pods.iter().map(|pod| &pod.info);
    let problems = problems::text(window.problems.iter(), infos, word, style);
    super::super::text::facts(facts(view)) + &phases + &nics + &pods + &problems
}

/// How the window went.
pub(in crate::report) fn verdict(view: &ReportView, style: Style) -> String {
    let verdict = view.computed.verdict;
    let word = style.paint(verdict.title(), verdict.tone());
    format!("{word}: {}", view.computed.sentence)
}

fn facts(view: &ReportView) -> Facts {
    let window = &view.window;
    let (id, by) = (escape(&window.id), escape(&window.command));
    let node = window.node.hostname.as_deref().map(escape);
    let mut facts = vec![
        ("window", format!("{id}, opened by netfix {by}")),
        ("node", or_dash(node)),
        ("began", clock(window, 0, text::DATE_AND_TIME)),
        ("ended", ended(view)),
    ];
    if let Some(run) = &window.run {
        facts.push(("command", text::argv(run)));
        let lasted = verdict::lasted(window, PhaseName::Command);
        facts.push(("", text::run_end(run, lasted)));
        // Of a record of an earlier netfix.
        let unknown = window.nics.is_none().then(|| UNKNOWN.to_owned());
        facts.extend(unknown.map(|unknown| ("NICs", unknown)));
    }
    if let Some(rollback) = &window.rollback {
        facts.push(("rollback", text::argv(&rollback.run)));
        let lasted = verdict::lasted(window, PhaseName::Rollback);
        facts.push(("", text::run_end(&rollback.run, lasted)));
        facts.push(("", text::reason(rollback)));
    }
    match &window.pause {
        Some(hold) => {
            facts.push(("kubelet", pause(view, hold)));
            facts.extend(limits(view, hold).into_iter().map(|limit| ("", limit)));
        }
        None => facts.push(("kubelet", "not paused: no unit found".to_owned())),
    }
    facts.extend(["outage", ""].into_iter().zip(outages(view)));
    let page = view.computed.html.as_ref();
    facts.extend(window.log.as_ref().map(|log| ("log", escape(log))));
    facts.extend(page.map(|page| ("page", escape(page))));
    facts
}

/// When and how the window ended.
pub(super) fn ended(view: &ReportView) -> String {
    let window = &view.window;
    let by = window
        .closed_by
        .as_deref()
        .filter(|by| *by != window.command)
        .map(|by| match by {
            REBOOT => ", by a reboot".to_owned(),
            by => format!(", by netfix {}", escape(by)),
        })
        .unwrap_or_default();
    match (view.computed.open, window.ended) {
        (true, _) => "still open".to_owned(),
        (false, None) => format!("{UNKNOWN}{by}"),
        (false, Some(ended)) => {
            let exit = or_dash(window.exit);
            let at = clock(window, ended, text::DATE_AND_TIME);
            format!("{at}, after {}{by}, exit {exit}", milliseconds(ended))
        }
    }
}

/// From when to when the unit was stopped.
pub(super) fn pause(view: &ReportView, hold: &KubeletPause) -> String {
    let unit = escape(&hold.unit);
    let at = |ms: u64| clock(&view.window, ms, text::TIME);
    match (hold.paused, hold.resumed) {
        (Some(from), Some(to)) => {
            let length = milliseconds(to.saturating_sub(from));
            format!("{unit} paused for {length} ({} to {})", at(from), at(to))
        }
        (Some(from), None) if view.window.closed_by.as_deref() == Some(REBOOT) => {
            format!("{unit} paused at {}; the reboot ended the pause", at(from))
        }
        (Some(from), None) => format!("{unit} paused at {}, not resumed", at(from)),
        (None, Some(to)) => format!("{unit} not seen stopped; running at {}", at(to)),
        (None, None) => format!("{unit} not seen stopped"),
    }
}

/// The pause beside what the control plane waits for, and the deadline.
pub(super) fn limits(view: &ReportView, hold: &KubeletPause) -> Vec<String> {
    let against = |ms: u64| {
        let side = |limit: u64| if ms < limit * 1000 { "below" } else { "BEYOND" };
        let limits = [NOT_READY_AFTER, EVICTION_AFTER];
        let [not_ready, eviction] = limits.map(|s| format!("{} {}", side(s), seconds(s)));
        format!("{not_ready} (node NotReady), {eviction} (eviction)")
    };
    let deadline = seconds(hold.deadline);
    let deadline = match hold.armed {
        Some(armed) => format!("deadline {deadline}, armed after {}", milliseconds(armed)),
        None => format!("deadline {deadline}, not armed"),
    };
    let pause = view.computed.pause_ms.map(against);
    pause.into_iter().chain([deadline]).collect()
}

/// The longest and the median outage, and the pods of which no end is known; nothing when no pod lost anything.
pub(super) fn outages(view: &ReportView) -> Vec<String> {
    let outages = &view.computed.outages;
    let known = outages.pods.first().zip(outages.median_ms);
    let known = known.map(|(longest, median)| {
        let (length, median) = (milliseconds(longest.ms), milliseconds(median));
        let title = escape(&view.title_of(&longest.id));
        let of = count(outages.pods.len(), "pod");
        format!("median {median} of {of}, longest {length} ({title})")
    });
    let unanswered = match outages.unanswered {
        0 => None,
        lost => Some(format!("{} lost, no answer since", count(lost, "pod"))),
    };
    known.into_iter().chain(unanswered).collect()
}

/// How long a phase lasted.
pub(super) fn lasted(phase: &Phase) -> Option<u64> {
    phase.to?.checked_sub(phase.from)
}

/// How a phase ended.
pub(super) fn result(view: &ReportView, phase: &Phase) -> (&'static str, Tone) {
    match (phase.to, phase.ok) {
        (None, _) if view.computed.at_work == Some(true) => ("running", Tone::Calm),
        (None, _) => ("cut short", Tone::Bad),
        (Some(_), Some(true)) => ("ok", Tone::Good),
        // COMMAND failed; of a phase of netfix some work is left.
        (Some(_), Some(false)) if is_of_user(phase) => ("failed", Tone::Bad),
        (Some(_), Some(false)) => ("incomplete", Tone::Bad),
        (Some(_), None) => (UNKNOWN, Tone::Warning),
    }
}

/// Whether a command of the user runs in it.
fn is_of_user(phase: &Phase) -> bool {
    matches!(phase.name, PhaseName::Command | PhaseName::Rollback)
}

type PhaseColumn<'a> = Column<(&'a ReportView, &'a Phase)>;

fn phases<'a>() -> [PhaseColumn<'a>; 5] {
    [
        PhaseColumn::new("PHASE", KEPT, |row| row.1.name),
        PhaseColumn::new("BEGAN", 2, |(view, phase)| {
            clock(&view.window, phase.from, text::TIME)
        }),
        PhaseColumn::right("SINCE START", 1, |row| {
            format!("+{}", milliseconds(row.1.from))
        }),
        PhaseColumn::right("LASTED", KEPT, |row| milliseconds_or_dash(lasted(row.1))),
        PhaseColumn::new("RESULT", KEPT, |(view, phase)| {
            let (word, tone) = result(view, phase);
            Cell::toned(word, Some(tone))
        }),
    ]
}

/// How good or bad a pod's state is, where it is known.
pub(super) fn tone_of_state(pod: &WindowPod) -> Option<Tone> {
    pod.state.map(super::super::pods::tone)
}

/// How long a pod was cut off, in words.
pub(super) fn outage(pod: &WindowPod) -> String {
    let is_silent = || {
        pod.gateways
            .iter()
            .any(|gateway| gateway.reachable == Some(false))
    };
    match (pod.lost, pod.answered) {
        (Some(_), None) if is_silent() => "no answer".to_owned(),
        (Some(_), None) => "end unknown".to_owned(),
        _ => milliseconds_or_dash(pod.outage()),
    }
}

type PodColumn<'a> = Column<&'a WindowPod>;

fn pods<'a>() -> [PodColumn<'a>; 8] {
    [
        PodColumn::new("POD", KEPT, |pod| pod.info.title()),
        PodColumn::new("BEFORE", 4, |pod| interfaces(&pod.before)),
        PodColumn::new("AFTER", 3, |pod| match &pod.after {
            None => UNKNOWN.to_owned(),
            Some(after) if *after == pod.before => "same".to_owned(),
            Some(after) => interfaces(after),
        }),
        PodColumn::right("OUTAGE", 1, |pod| outage(pod)),
        PodColumn::new("GATEWAYS", 5, |pod| {
            let answers = text::answers(pod).into_iter();
            list_or_dash(answers.map(|one| format!("{} {}", one.object, one.answer)))
        }),
        PodColumn::new("ID", WIDE, |pod| pod.info.id.to_string()),
        PodColumn::new("STATE", KEPT, |pod| {
            Cell::toned(or_dash(pod.state), tone_of_state(pod))
        }),
        PodColumn::new("REBUILT", KEPT, |pod| {
            let is_bad = pod.rebuilt == Some(true);
            Cell::toned(text::yes_or_no(pod.rebuilt), is_bad.then_some(Tone::Bad))
        }),
    ]
}

/// A pod's interfaces.
fn interfaces(all: &[crate::model::Interface]) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    join(all.iter().map(text::interface), ", ")
}

type WindowColumn = Column<WindowView>;

/// Every window in one line.
pub(in crate::report) fn list(all: &[WindowView], style: Style) -> String {
    fn of<T: ToString>(row: &WindowView, value: impl Fn(&WindowLine) -> T) -> String {
        or_dash(row.window.as_ref().map(value))
    }
    let columns = [
        WindowColumn::new("WINDOW", KEPT, |row| row.id.clone()),
        WindowColumn::new("BY", 4, |row| of(row, |line| line.command.clone())),
        WindowColumn::new("BEGAN", 5, |row| of(row, |line| line.started.clone())),
        WindowColumn::right("LASTED", 3, |row| {
            of(row, |line| milliseconds_or_dash(line.ended))
        }),
        WindowColumn::right("PODS BACK", 1, |row| of(row, |line| text::back(&line.pods))),
        WindowColumn::right("EXIT", 2, |row| of(row, |line| or_dash(line.exit))),
        WindowColumn::new("VERDICT", KEPT, |row| match &row.window {
            None => Cell::toned("cannot be read", Some(Tone::Bad)),
            Some(line) => Cell::toned(line.verdict.title(), Some(line.verdict.tone())),
        }),
    ];
    table::text(&columns, all, style)
}
