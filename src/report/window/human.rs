//! A window's report for the terminal.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Color};

use super::super::human::{new_table, or_dash};
use super::super::{Style, paint};
use super::text::{self, UNKNOWN, clock, duration, duration_or_dash, harmless};
use super::verdict::Tone;
use super::{ReportView, WindowView};
use crate::model::window::{EVICTION_AFTER, Hold, NOT_READY_AFTER, Phase, PhaseName, WindowPod};
use crate::model::{InterfaceView, Severity};

/// Everything about one window.
pub(in crate::report) fn report(view: &ReportView, style: Style, out: &mut dyn Write) -> io::Result<()> {
    head(view, style, out)?;
    if !view.window.phases.is_empty() {
        let mut table = new_table(style, &["PHASE", "BEGAN", "SINCE START", "LASTED", "RESULT"]);
        table.add_rows(view.window.phases.iter().map(|phase| phase_row(view, phase)));
        writeln!(out, "{table}")?;
    }
    if !view.window.pods.is_empty() {
        let mut table =
            new_table(style, &["POD", "BEFORE", "AFTER", "OUTAGE", "GATEWAYS", "STATE", "REBUILT"]);
        table.add_rows(view.pods().into_iter().map(pod_row));
        writeln!(out, "{table}")?;
    }
    for problem in &view.window.problems {
        let (word, tone) = severity(problem.severity);
        let pod = problem.pod.as_ref().map(|id| format!("pod {}: ", view.title_of(id))).unwrap_or_default();
        let object = Some(harmless(&problem.object)).filter(|object| !object.is_empty());
        let object = object.map(|object| format!("{object}: ")).unwrap_or_default();
        let word = paint(word, tone.sgr(), style);
        writeln!(out, "{word}: {}: {pod}{object}{}", problem.code, harmless(&problem.message))?;
    }
    Ok(())
}

/// How a problem is called, and how loud it is.
pub(super) fn severity(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Warning),
        Severity::Info => ("note", Tone::Calm),
    }
}

fn head(view: &ReportView, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let (window, computed) = (&view.window, &view.computed);
    let (title, tone) = (computed.verdict.title(), computed.verdict.tone());
    writeln!(out, "verdict    {}. {}", paint(title, tone.sgr(), style), computed.sentence)?;
    writeln!(out, "window     {}, opened by netfix {}", harmless(&window.id), harmless(&window.command))?;
    writeln!(out, "node       {}", window.node.hostname.as_deref().map_or(UNKNOWN.to_owned(), harmless))?;
    writeln!(out, "began      {}", clock(window, 0, text::DATE_AND_TIME))?;
    writeln!(out, "ended      {}", ended(view))?;
    if let Some(run) = &window.run {
        writeln!(out, "command    {}", text::argv(run))?;
        let phase = window.phases.iter().find(|phase| phase.name == PhaseName::Command);
        let after = phase.and_then(lasted).map(|ms| format!(" after {}", duration(ms))).unwrap_or_default();
        writeln!(out, "           {}{after}", text::run_end(run))?;
    }
    match &window.hold {
        Some(hold) => {
            writeln!(out, "kubelet    {}", pause(view, hold))?;
            writeln!(out, "           {}", limits(view, hold))?;
        }
        None => writeln!(out, "kubelet    none ran here")?,
    }
    if let Some(outages) = outages(view) {
        writeln!(out, "outage     {outages}")?;
    }
    if let Some(log) = &window.log {
        writeln!(out, "log        {}", harmless(log))?;
    }
    if let Some(page) = &computed.html {
        writeln!(out, "page       {}", harmless(page))?;
    }
    Ok(())
}

/// When and how the window ended.
pub(super) fn ended(view: &ReportView) -> String {
    let window = &view.window;
    let by = window.closed_by.as_deref().filter(|by| *by != window.command);
    let by = by.map(|by| format!(", by netfix {}", harmless(by))).unwrap_or_default();
    match (view.computed.open, window.ended) {
        (true, _) => "not yet".to_owned(),
        (false, None) => format!("not known{by}"),
        (false, Some(ended)) => {
            let exit = or_dash(window.exit);
            let at = clock(window, ended, text::DATE_AND_TIME);
            format!("{at}, after {}{by}, exit code {exit}", duration(ended))
        }
    }
}

/// From when to when the unit was stopped.
pub(super) fn pause(view: &ReportView, hold: &Hold) -> String {
    let unit = harmless(&hold.unit);
    let at = |ms: u64| clock(&view.window, ms, text::TIME);
    match (hold.paused, hold.resumed) {
        (Some(from), Some(to)) => {
            let length = duration(to.saturating_sub(from));
            format!("{unit} paused from {} to {} = {length}", at(from), at(to))
        }
        (Some(from), None) => format!("{unit} paused from {}, not resumed", at(from)),
        (None, Some(to)) => format!("{unit} was not seen stopped; running at {}", at(to)),
        (None, None) => format!("{unit} was not seen stopped"),
    }
}

/// How that compares with what the control plane waits for, and the deadline.
pub(super) fn limits(view: &ReportView, hold: &Hold) -> String {
    let against = |limit: u64, what: &str| {
        let ms = view.computed.pause_ms?;
        Some(format!("{} {limit} s ({what})", if ms < limit * 1000 { "below" } else { "BEYOND" }))
    };
    let not_ready = against(NOT_READY_AFTER, "node NotReady");
    let eviction = against(EVICTION_AFTER, "eviction");
    let deadline = humantime::format_duration(Duration::from_secs(hold.deadline));
    let deadline = match hold.armed {
        Some(armed) => format!("deadline of {deadline} armed at +{}", duration(armed)),
        None => format!("deadline of {deadline} not armed"),
    };
    let parts: Vec<String> = not_ready.into_iter().chain(eviction).chain([deadline]).collect();
    parts.join(", ")
}

/// The worst and the median outage; `None` when no pod lost anything.
pub(super) fn outages(view: &ReportView) -> Option<String> {
    let outages = &view.computed.outages;
    let unanswered = match outages.unanswered {
        0 => String::new(),
        count => format!("; {count} with no answer known after the loss"),
    };
    match (outages.pods.first(), outages.median_ms) {
        (Some(worst), Some(median)) => Some(format!(
            "worst {} ({}), median {}, of {} pods{unanswered}",
            duration(worst.ms),
            view.title_of(&worst.id),
            duration(median),
            outages.pods.len()
        )),
        _ if outages.unanswered > 0 => Some(format!("of no pod known{unanswered}")),
        _ => None,
    }
}

/// How long a phase lasted.
pub(super) fn lasted(phase: &Phase) -> Option<u64> {
    phase.to?.checked_sub(phase.from)
}

/// How a phase ended.
pub(super) fn result(view: &ReportView, phase: &Phase) -> (&'static str, Tone) {
    match (phase.to, phase.ok) {
        (None, _) if view.computed.at_work == Some(true) => ("under way", Tone::Calm),
        (None, _) => ("cut short", Tone::Bad),
        (Some(_), Some(true)) => ("ok", Tone::Good),
        (Some(_), Some(false)) => ("failed", Tone::Bad),
        (Some(_), None) => (UNKNOWN, Tone::Warning),
    }
}

fn color(tone: Tone) -> Color {
    match tone {
        Tone::Good => Color::Green,
        Tone::Calm => Color::Cyan,
        Tone::Warning => Color::Yellow,
        Tone::Bad => Color::Red,
    }
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn phase_row(view: &ReportView, phase: &Phase) -> Vec<Cell> {
    let (word, tone) = result(view, phase);
    vec![
        Cell::new(phase.name),
        Cell::new(clock(&view.window, phase.from, text::TIME)),
        right(format!("+{}", duration(phase.from))),
        right(duration_or_dash(lasted(phase))),
        Cell::new(word).fg(color(tone)),
    ]
}

/// A pod's interfaces, one a line.
fn interfaces(all: &[InterfaceView]) -> String {
    let lines: Vec<String> = all.iter().map(text::interface).collect();
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
}

/// A pod's interfaces at the end, where they are not what they were.
fn after(pod: &WindowPod) -> String {
    match &pod.after {
        None => UNKNOWN.to_owned(),
        Some(after) if *after == pod.before => "the same".to_owned(),
        Some(after) => interfaces(after),
    }
}

/// How loud a pod's state is, where it is known.
pub(super) fn tone_of_state(pod: &WindowPod) -> Option<Tone> {
    pod.state.map(|state| if state.is_good() { Tone::Good } else { Tone::Bad })
}

/// How long a pod was cut off, in words.
pub(super) fn outage(pod: &WindowPod) -> String {
    match (pod.lost, pod.answered) {
        (Some(_), None) if pod.gateways.iter().any(|gateway| gateway.reachable == Some(false)) => {
            "no answer".to_owned()
        }
        (Some(_), None) => "end not known".to_owned(),
        _ => duration_or_dash(pod.outage()),
    }
}

fn pod_row(pod: &WindowPod) -> Vec<Cell> {
    let gateways: Vec<String> = pod.gateways.iter().map(text::gateway).collect();
    let state = Cell::new(or_dash(pod.state));
    let state = if let Some(tone) = tone_of_state(pod) { state.fg(color(tone)) } else { state };
    let rebuilt = Cell::new(text::yes_or_no(pod.rebuilt));
    vec![
        Cell::new(pod.info.title()),
        Cell::new(interfaces(&pod.before)),
        Cell::new(after(pod)),
        right(outage(pod)),
        Cell::new(if gateways.is_empty() { UNKNOWN.to_owned() } else { gateways.join("\n") }),
        state,
        if pod.rebuilt == Some(true) { rebuilt.fg(Color::Red) } else { rebuilt },
    ]
}

/// Every window in one line.
pub(in crate::report) fn list(all: &[WindowView], style: Style, out: &mut dyn Write) -> io::Result<()> {
    if !all.is_empty() {
        let head = ["WINDOW", "BY", "BEGAN", "LASTED", "PODS BACK", "EXIT", "VERDICT"];
        let mut table = new_table(style, &head);
        table.add_rows(all.iter().map(window_row));
        writeln!(out, "{table}")?;
    }
    match all.len() {
        1 => writeln!(out, "1 window"),
        count => writeln!(out, "{count} windows"),
    }
}

fn window_row(view: &WindowView) -> Vec<Cell> {
    let id = Cell::new(harmless(&view.id));
    let Some(line) = &view.window else {
        let dashes = std::iter::repeat_with(|| Cell::new(UNKNOWN)).take(5);
        return [id].into_iter().chain(dashes).chain([Cell::new("cannot be read").fg(Color::Red)]).collect();
    };
    let pods = &line.pods;
    vec![
        id,
        Cell::new(harmless(&line.command)),
        Cell::new(harmless(&line.started)),
        right(duration_or_dash(line.ended)),
        right(text::back(pods)),
        right(or_dash(line.exit)),
        Cell::new(line.verdict.title()).fg(color(line.verdict.tone())),
    ]
}
