//! The tables of a window's report, for the terminal and the page.

use maud::{Markup, html};

use super::outcome::PodOutcome;
use super::view::ReportView;
use super::words::{self, Answered, clock};
use crate::model::window::{Phase, PhaseName, PodFingerprint, WindowPod};
use crate::model::{Interface, Problem};
use crate::report::problems::word;
use crate::report::style::Tone;
use crate::report::table::{Cell, Column, KEPT, NUMBER, Table, WIDE};
use crate::report::text::{
    UNKNOWN, escape, join, list_or_dash, milliseconds, milliseconds_or_dash, or_dash,
};

type PhaseColumn<'a> = Column<'a, &'a Phase>;
type PodColumn<'a> = Column<'a, &'a WindowPod>;
type ProblemColumn<'a> = Column<'a, &'a Problem>;

/// The phases.
pub(super) fn phases(view: &ReportView) -> Table<'_, &Phase> {
    let columns = [
        PhaseColumn::new("Phase", KEPT, |phase| phase.name).heads_rows(),
        PhaseColumn::new("Began", 2, |phase| {
            clock(&view.window, phase.from, words::TIME)
        })
        .class(NUMBER),
        PhaseColumn::right("Since start", 1, |phase| {
            format!("+{}", milliseconds(phase.from))
        })
        .class(NUMBER),
        PhaseColumn::right("Lasted", KEPT, |phase| milliseconds_or_dash(lasted(phase)))
            .class(NUMBER),
        PhaseColumn::new("Result", KEPT, |phase| {
            let (word, tone) = result(view, phase);
            Cell::toned(word, Some(tone))
        })
        .badges(),
    ];
    Table::new(columns, &view.window.phases)
}

/// Pods before and after: all, or only those that are not back.
pub(super) fn pods(view: &ReportView, with_good: bool) -> Table<'_, &WindowPod> {
    let outcome = |pod: &WindowPod| PodOutcome::of(&view.window, pod);
    let columns = [
        PodColumn::new("Pod", KEPT, |pod| pod.info.title())
            .heads_rows()
            .content(|pod| html! { (pod.info.title()) div.small.mono { (pod.info.id) } }),
        PodColumn::new("Before", 4, |pod| interfaces(&pod.before))
            .class("before")
            .content(|pod| interface_list(&pod.before)),
        PodColumn::new("After", 3, |pod| match &pod.after {
            None => UNKNOWN.to_owned(),
            Some(after) if *after == pod.before => "same".to_owned(),
            Some(after) => interfaces(after),
        })
        .content(|pod| match &pod.after {
            None => html! { (UNKNOWN) },
            Some(after) if *after == pod.before => html! { span.same { "same" } },
            Some(after) => interface_list(after),
        }),
        PodColumn::right("Outage", 1, |pod| outage(pod)).class(NUMBER),
        PodColumn::new("Gateways", 5, |pod| {
            let answers = words::answers(pod).into_iter();
            list_or_dash(answers.map(|one| format!("{} {}", one.object, one.answer)))
        })
        .content(|pod| answers(&words::answers(pod))),
        PodColumn::new("ID", WIDE, |pod| pod.info.id.to_string()),
        PodColumn::new("State", KEPT, |pod| {
            Cell::toned(or_dash(pod.state), pod.state.map(Tone::of))
        })
        .badges(),
        PodColumn::new("Rebuilt", KEPT, |pod| {
            let is_bad = pod.rebuilt == Some(true);
            Cell::toned(words::yes_or_no(pod.rebuilt), is_bad.then_some(Tone::Bad))
        })
        .content(|pod| rebuilt(pod)),
    ];
    let mut rows = view.pods();
    rows.retain(|pod| with_good || outcome(pod) != PodOutcome::Back);
    Table::new(columns, rows).marked(move |pod| {
        let outcome = outcome(pod);
        (outcome != PodOutcome::Back).then(|| outcome.tone())
    })
}

/// Errors, warnings and notes, for the page: a terminal has lines.
pub(super) fn problems(view: &ReportView) -> Table<'_, &Problem> {
    let columns = [
        ProblemColumn::new("Severity", KEPT, |problem| {
            let (word, tone) = word(problem.severity);
            Cell::toned(word, Some(tone))
        })
        .badges(),
        ProblemColumn::new("Code", KEPT, |problem| problem.code())
            .heads_rows()
            .class("mono"),
        ProblemColumn::new("Pod", KEPT, |problem| {
            or_dash(problem.pod.as_ref().map(|id| view.title_of(id)))
        }),
        ProblemColumn::new("What", KEPT, |problem| problem.message()).content(|problem| {
            html! {
                @if !problem.object.is_empty() { span.object { (escape(&problem.object.text())) } ": " }
                (escape(&problem.message()))
            }
        }),
    ];
    Table::new(columns, &view.window.problems)
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

/// A pod's interfaces.
fn interfaces(all: &[Interface]) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    join(all.iter().map(words::interface), ", ")
}

fn rebuilt(pod: &WindowPod) -> Markup {
    html! {
        @if pod.rebuilt == Some(true) {
            span.badge.bad { "yes" }
            @if let Some(words) = change(pod) { div.small.change { (words) } }
        } @else { (words::yes_or_no(pod.rebuilt)) }
    }
}

/// What shows that a pod was rebuilt.
fn change(pod: &WindowPod) -> Option<String> {
    let before = pod.fingerprint_before.as_ref()?;
    let after = pod.fingerprint_after.as_ref()?;
    let short = |fingerprint: &PodFingerprint| {
        escape(&fingerprint.sandbox.chars().take(8).collect::<String>())
    };
    if before.sandbox != after.sandbox {
        return Some(format!("sandbox {} became {}", short(before), short(after)));
    }
    let is_restarted = before.containers != after.containers;
    is_restarted.then(|| "containers restarted".to_owned())
}

fn interface_list(all: &[Interface]) -> Markup {
    html! {
        @if all.is_empty() { "none" }
        @for interface in all {
            div.interface {
                span {
                    span.device { (interface.name) } " "
                    span.small {
                        (escape(&interface.kind))
                        @if let Some(parent) = &interface.parent { " on " (parent) }
                        @if let Some(mac) = &interface.mac { " " span.mono { (mac) } }
                    }
                }
                span.addresses { @for address in &interface.addresses { span.address { (address) } " " } }
            }
        }
    }
}

fn answers(all: &[Answered]) -> Markup {
    let class = |one: &Answered| match one.reachable {
        Some(true) => "rtt",
        Some(false) => "rtt bad",
        None => "rtt warning",
    };
    html! {
        @if all.is_empty() { (UNKNOWN) }
        @for one in all {
            div.gateway { span.address { (one.object) } span class=(class(one)) { (one.answer) } }
        }
    }
}
