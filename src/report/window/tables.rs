//! The page's tables and lists.

use maud::{Markup, html};

use super::super::layout::head;
use super::super::problems::word;
use super::super::text::{UNKNOWN, escape, milliseconds, or_dash};
use super::ReportView;
use super::terminal::{lasted, outage, result, tone_of_state};
use super::text::{self, Answered, clock, milliseconds_or_dash};
use super::verdict::PodOutcome;
use crate::model::window::{Phase, PodFingerprint, WindowPod};
use crate::model::{Interface, Problem};

/// The phases.
pub(super) fn phases(view: &ReportView) -> Markup {
    let row = |phase: &Phase| {
        let (word, tone) = result(view, phase);
        html! {
            tr {
                th scope="row" { (phase.name) }
                td.number { (clock(&view.window, phase.from, text::TIME)) }
                td.number { "+" (milliseconds(phase.from)) }
                td.number { (milliseconds_or_dash(lasted(phase))) }
                td { span class={ "badge " (tone.class()) } { (word) } }
            }
        }
    };
    html! {
        div.sheet {
            table.phases {
                caption { "Phases: clock times are UTC" }
                (head(&["Phase", "Began", "Since start", "Lasted", "Result"], 1..4))
                tbody { @for phase in &view.window.phases { (row(phase)) } }
            }
        }
    }
}

/// Every pod before and after.
pub(super) fn pods(view: &ReportView) -> Markup {
    html! {
        div.sheet {
            table.pods {
                caption { "Worst first, then by outage" }
                (head(&["Pod", "Before", "After", "Outage", "Gateways", "State", "Rebuilt"], 3..4))
                tbody { @for pod in view.pods() { (pod_row(view, pod)) } }
            }
        }
    }
}

fn pod_row(view: &ReportView, pod: &WindowPod) -> Markup {
    let info = &pod.info;
    let outcome = PodOutcome::of(&view.window, pod);
    html! {
        tr class=[(outcome != PodOutcome::Back).then(|| outcome.tone().class())] {
            th scope="row" {
                (info.title())
                div.small.mono { (info.id) }
            }
            td.before { (interfaces(&pod.before)) }
            td {
                @match &pod.after {
                    None => (UNKNOWN),
                    Some(after) if *after == pod.before => span.same { "same" },
                    Some(after) => (interfaces(after)),
                }
            }
            td.number { (outage(pod)) }
            td { (answers(&text::answers(pod))) }
            td {
                @if let (Some(state), Some(tone)) = (pod.state, tone_of_state(pod)) {
                    span class={ "badge " (tone.class()) } { (state) }
                } @else { (UNKNOWN) }
            }
            td {
                @if pod.rebuilt == Some(true) {
                    span.badge.bad { "yes" }
                    @if let Some(words) = change(pod) { div.small.change { (words) } }
                } @else { (text::yes_or_no(pod.rebuilt)) }
            }
        }
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

fn interfaces(all: &[Interface]) -> Markup {
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

/// Errors, warnings and notes.
pub(super) fn problems(view: &ReportView) -> Markup {
    let row = |problem: &Problem| {
        let (word, tone) = word(problem.severity);
        html! {
            tr {
                td { span class={ "badge " (tone.class()) } { (word) } }
                th.mono scope="row" { (problem.code()) }
                td { (or_dash(problem.pod.as_ref().map(|id| view.title_of(id)))) }
                td {
                    @if !problem.object.is_empty() { span.object { (escape(&problem.object.text())) } ": " }
                    (escape(&problem.message()))
                }
            }
        }
    };
    html! {
        div.sheet {
            table.problems {
                caption { "docs/problems.md explains the codes" }
                (head(&["Severity", "Code", "Pod", "What"], 0..0))
                tbody { @for problem in &view.window.problems { (row(problem)) } }
            }
        }
    }
}
