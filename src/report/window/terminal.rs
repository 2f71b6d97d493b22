//! A window's report for the terminal.

use std::io::{self, Write};

use super::super::problems::{lines, titles, word};
use super::super::style::{Style, Tone};
use super::super::table::{self, Cell, Column, KEPT, WIDE};
use super::super::text::{
    UNKNOWN, count, escape, fact, list_or_dash, milliseconds, or_dash, seconds,
};
use super::text::{self, clock, milliseconds_or_dash};
use super::verdict::{PodOutcome, command_lasted};
use super::{ReportView, WindowView};
use crate::model::window::{
    EVICTION_AFTER, KubeletPause, NOT_READY_AFTER, Phase, PhaseName, WindowPod,
};

/// Everything about one window but its verdict.
pub(in crate::report) fn report(
    view: &ReportView,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    facts(view, out)?;
    let rows: Vec<(&ReportView, &Phase)> = view.window.phases.iter().map(|p| (view, p)).collect();
    table::write(&phases(), &rows, style, out)?;
    let mut rows = view.pods();
    if !style.lists_all() {
        rows.retain(|pod| PodOutcome::of(&view.window, pod) != PodOutcome::Back);
    }
    table::write(&pods(), &rows, style, out)?;
    let problems: Vec<_> = view.window.problems.iter().collect();
    let titles = titles(view.window.pods.iter().map(|pod| &pod.info));
    for line in lines(&problems, &titles, style) {
        let (word, tone) = word(line.severity);
        writeln!(out, "{}: {}", style.paint(word, tone), line.text)?;
    }
    Ok(())
}

/// How the window went.
pub(in crate::report) fn verdict(
    view: &ReportView,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let verdict = view.computed.verdict;
    let word = style.paint(verdict.title(), verdict.tone());
    writeln!(out, "{word}: {}", view.computed.sentence)
}

fn facts(view: &ReportView, out: &mut dyn Write) -> io::Result<()> {
    let (window, computed) = (&view.window, &view.computed);
    let by = escape(&window.command);
    fact(
        out,
        "window",
        &format!("{}, opened by netfix {by}", escape(&window.id)),
    )?;
    fact(
        out,
        "node",
        &or_dash(window.node.hostname.as_deref().map(escape)),
    )?;
    fact(out, "began", &clock(window, 0, text::DATE_AND_TIME))?;
    fact(out, "ended", &ended(view))?;
    if let Some(run) = &window.run {
        fact(out, "command", &text::argv(run))?;
        fact(out, "", &text::run_end(run, command_lasted(&view.window)))?;
    }
    match &window.pause {
        Some(hold) => {
            fact(out, "kubelet", &pause(view, hold))?;
            for limit in limits(view, hold) {
                fact(out, "", &limit)?;
            }
        }
        None => fact(out, "kubelet", "not paused: no unit found")?,
    }
    for (at, line) in outages(view).iter().enumerate() {
        fact(out, if at == 0 { "outage" } else { "" }, line)?;
    }
    if let Some(log) = &window.log {
        fact(out, "log", &escape(log))?;
    }
    computed
        .html
        .as_ref()
        .map_or(Ok(()), |page| fact(out, "page", &escape(page)))
}

/// When and how the window ended.
pub(super) fn ended(view: &ReportView) -> String {
    let window = &view.window;
    let by = window
        .closed_by
        .as_deref()
        .filter(|by| *by != window.command)
        .map(|by| format!(", by netfix {}", escape(by)))
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
        (Some(from), None) => format!("{unit} paused at {}, not resumed", at(from)),
        (None, Some(to)) => format!("{unit} not seen stopped; running at {}", at(to)),
        (None, None) => format!("{unit} not seen stopped"),
    }
}

/// The pause beside what the control plane waits for, and the deadline.
pub(super) fn limits(view: &ReportView, hold: &KubeletPause) -> Vec<String> {
    let against = |ms: u64| {
        let side = |limit: u64| if ms < limit * 1000 { "below" } else { "BEYOND" };
        format!(
            "{} {} (node NotReady), {} {} (eviction)",
            side(NOT_READY_AFTER),
            seconds(NOT_READY_AFTER),
            side(EVICTION_AFTER),
            seconds(EVICTION_AFTER)
        )
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
        (Some(_), Some(false)) if phase.name == PhaseName::Command => ("failed", Tone::Bad),
        (Some(_), Some(false)) => ("incomplete", Tone::Bad),
        (Some(_), None) => (UNKNOWN, Tone::Warning),
    }
}

fn phases<'a>() -> [Column<(&'a ReportView, &'a Phase)>; 5] {
    [
        Column::new("PHASE", KEPT, |row| Cell::from(row.1.name)),
        Column::new("BEGAN", 2, |(view, phase)| {
            Cell::from(clock(&view.window, phase.from, text::TIME))
        }),
        Column::right("SINCE START", 1, |row| {
            Cell::from(format!("+{}", milliseconds(row.1.from)))
        }),
        Column::right("LASTED", KEPT, |row| {
            Cell::from(milliseconds_or_dash(lasted(row.1)))
        }),
        Column::new("RESULT", KEPT, |(view, phase)| {
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

fn pods<'a>() -> [Column<&'a WindowPod>; 8] {
    [
        Column::new("POD", KEPT, |pod| Cell::from(pod.info.title())),
        Column::new("BEFORE", 4, |pod| Cell::from(interfaces(&pod.before))),
        Column::new("AFTER", 3, |pod| match &pod.after {
            None => Cell::from(UNKNOWN),
            Some(after) if *after == pod.before => Cell::from("same"),
            Some(after) => Cell::from(interfaces(after)),
        }),
        Column::right("OUTAGE", 1, |pod| Cell::from(outage(pod))),
        Column::new("GATEWAYS", 5, |pod| {
            let gateways: Vec<String> = pod.gateways.iter().map(text::gateway).collect();
            Cell::from(list_or_dash(&gateways))
        }),
        Column::new("ID", WIDE, |pod| Cell::from(&pod.info.id)),
        Column::new("STATE", KEPT, |pod| {
            Cell::toned(or_dash(pod.state), tone_of_state(pod))
        }),
        Column::new("REBUILT", KEPT, |pod| {
            let is_bad = pod.rebuilt == Some(true);
            Cell::toned(text::yes_or_no(pod.rebuilt), is_bad.then_some(Tone::Bad))
        }),
    ]
}

/// A pod's interfaces.
fn interfaces(all: &[crate::model::Interface]) -> String {
    let texts: Vec<String> = all.iter().map(text::interface).collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(", ")
    }
}

/// Every window in one line.
pub(in crate::report) fn list(
    all: &[WindowView],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    fn of<T: ToString>(row: &WindowView, value: impl Fn(&super::WindowLine) -> T) -> Cell {
        Cell::from(or_dash(row.window.as_ref().map(value)))
    }
    let columns = [
        Column::new("WINDOW", KEPT, |row: &WindowView| Cell::from(&row.id)),
        Column::new("BY", 4, |row| of(row, |line| line.command.clone())),
        Column::new("BEGAN", 5, |row| of(row, |line| line.started.clone())),
        Column::right("LASTED", 3, |row| {
            of(row, |line| milliseconds_or_dash(line.ended))
        }),
        Column::right("PODS BACK", 1, |row| of(row, |line| text::back(&line.pods))),
        Column::right("EXIT", 2, |row| of(row, |line| or_dash(line.exit))),
        Column::new("VERDICT", KEPT, |row| match &row.window {
            None => Cell::toned("cannot be read", Some(Tone::Bad)),
            Some(line) => Cell::toned(line.verdict.title(), Some(line.verdict.tone())),
        }),
    ];
    table::write(&columns, all, style, out)
}
