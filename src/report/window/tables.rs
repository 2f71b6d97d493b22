//! The tables of a window's report, for the terminal and the page.

use maud::html;

use super::outcome::PodOutcome;
use super::view::ReportView;
use super::words::{self, clock, lasted};
use crate::model::fate::{Fate, PodFingerprint};
use crate::model::window::{Phase, PhaseName, WindowPod};
use crate::model::{Interface, State};
use crate::report::answered::{Answered, answers};
use crate::report::page::bar;
use crate::report::problems::{Group, together, word};
use crate::report::style::Tone;
use crate::report::table::{Cell, KEPT, Medium, NUMBER, Table, WIDE};
use crate::report::text::{
    UNKNOWN, bounded, escape, join, list_or_dash, milliseconds, milliseconds_or_dash, natural,
    or_dash,
};

/// The phases.
pub(super) fn phases(view: &ReportView) -> Table<'_, &Phase> {
    Table::new(&view.window.phases)
        .column("Phase", KEPT, |phase| phase.name)
        .heads_rows()
        .column("Began", 2, |phase| {
            clock(&view.window, phase.from, words::TIME)
        })
        .class(NUMBER)
        .right("Since start", 1, |phase| {
            format!("+{}", milliseconds(phase.from))
        })
        .class(NUMBER)
        .right("Lasted", KEPT, |phase| milliseconds_or_dash(lasted(phase)))
        .class(NUMBER)
        .column("Timeline", KEPT, |phase| {
            let span = view.span();
            let class = match result(view, phase) {
                (_, Tone::Bad) => "bad",
                _ if is_of_user(phase) => "command",
                _ => "",
            };
            Cell::from("").on_page(bar(phase.from, phase.to.unwrap_or(span), span, class))
        })
        .only_on(Medium::Page)
        .class("timeline")
        .column("Result", KEPT, |phase| {
            let (word, tone) = result(view, phase);
            Cell::badge(word, tone)
        })
}

/// Pods before and after: all, or only those that are not back or to which something happened.
pub(super) fn pods(view: &ReportView, with_good: bool) -> Table<'_, &WindowPod> {
    let mut rows = view.pods();
    let is_good = |pod: &WindowPod| {
        PodOutcome::of(pod) == PodOutcome::Back && matches!(pod.fate(), None | Some(Fate::Same))
    };
    rows.retain(|pod| with_good || !is_good(pod));
    Table::new(rows)
        .column("Pod", KEPT, |pod| {
            let title = pod.info.title();
            let page = html! { (title) div.small.mono { (pod.info.id) } };
            Cell::from(title).on_page(page)
        })
        .heads_rows()
        .column("Before", 4, |pod| interfaces(&pod.before))
        .class("before")
        .column("After", 3, |pod| match &pod.after {
            None => Cell::from(UNKNOWN),
            Some(after) if *after == pod.before => {
                Cell::from("same").on_page(html! { span.same { "same" } })
            }
            Some(after) => interfaces(after),
        })
        .right("Outage", 1, move |pod| outage_cell(view, pod))
        .class(NUMBER)
        .column("Gateways", 5, |pod| gateways(pod))
        .column("ID", WIDE, |pod| pod.info.id.to_string())
        .column("State", KEPT, |pod| match pod.state {
            _ if pod.is_gone() => Cell::badge(State::Gone, Tone::Warning),
            Some(state) => Cell::badge(state, Tone::of(state)),
            None => Cell::from(UNKNOWN),
        })
        .column("Rebuilt", KEPT, |pod| rebuilt(view, pod))
        .marked(|pod| {
            let outcome = PodOutcome::of(pod);
            (outcome != PodOutcome::Back).then(|| outcome.tone())
        })
}

/// Errors, warnings and notes, for the page, equal ones of several pods in one row: a terminal has lines.
pub(super) fn problems(view: &ReportView) -> Table<'_, Group<'_>> {
    let pods = view.window.pods.iter();
    let titles = pods.map(|pod| (&pod.info.id, view.title_of(&pod.info.id)));
    let titles = titles.collect();
    Table::new(together(view.window.problems.iter(), &titles))
        .column("Severity", KEPT, |group| {
            let (word, tone) = word(group.problem);
            Cell::badge(word, tone)
        })
        .column("Code", KEPT, |group| group.problem.code())
        .heads_rows()
        .class("mono")
        .column("Pod", KEPT, |group| {
            let mut names: Vec<String> = group.pods.iter().map(|id| view.title_of(id)).collect();
            names.sort_by(|a, b| natural(a, b));
            or_dash(Some(join(bounded(names), ", ")).filter(|names| !names.is_empty()))
        })
        .column("What", KEPT, |group| {
            let page = html! {
                @if !group.object.is_empty() { span.object { (group.object) } ": " }
                (group.message)
            };
            Cell::from(group.message.clone()).on_page(page)
        })
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

/// How long a pod was cut off, in words; since when, if it is not back.
pub(super) fn outage(view: &ReportView, pod: &WindowPod) -> String {
    match (pod.lost, pod.answered) {
        (Some(_), None) if pod.is_gone() => UNKNOWN.to_owned(),
        (Some(lost), None) => match PodOutcome::of(pod) {
            PodOutcome::NotBack => format!("since {}", clock(&view.window, lost, words::SECOND)),
            _ => "end unknown".to_owned(),
        },
        _ => milliseconds_or_dash(pod.outage()),
    }
}

/// On a page with a bar, which is as long as the column for the longest outage and for one without an end.
fn outage_cell(view: &ReportView, pod: &WindowPod) -> Cell {
    let words = outage(view, pod);
    let longest = view.computed.outages.worst_ms.unwrap_or_default();
    let class = match (pod.answered, PodOutcome::of(pod)) {
        (Some(_), PodOutcome::Back) => "outage",
        _ => "bad",
    };
    let length = pod.outage().unwrap_or(longest.max(1));
    let page = html! {
        (words)
        @if pod.lost.is_some() { (bar(0, length, longest.max(1), class)) }
    };
    Cell::from(words).on_page(page)
}

/// A pod's interfaces.
fn interfaces(all: &[Interface]) -> Cell {
    let text = if all.is_empty() {
        "none".to_owned()
    } else {
        let name_and_addresses = |one: &Interface| {
            let addresses = one.addresses.iter().map(ToString::to_string);
            join([one.name.to_string()].into_iter().chain(addresses), " ")
        };
        join(all.iter().map(name_and_addresses), ", ")
    };
    Cell::from(text).on_page(html! {
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
    })
}

/// What its gateways and targets answered.
fn gateways(pod: &WindowPod) -> Cell {
    let all: Vec<Answered<'_>> = answers(&pod.gateways, &pod.targets).collect();
    let texts = all
        .iter()
        .map(|one| format!("{} {}", one.object, one.words()));
    let class = |reachable| match reachable {
        Some(true) => "rtt",
        Some(false) => "rtt bad",
        None => "rtt warning",
    };
    Cell::from(list_or_dash(texts)).on_page(html! {
        @if all.is_empty() { (UNKNOWN) }
        @for one in &all {
            div.gateway {
                span.address { (escape(&one.object)) }
                span class=(class(one.reachable)) { (one.words()) }
            }
        }
    })
}

/// Whether it was rebuilt, or what else happened to it.
fn rebuilt(view: &ReportView, pod: &WindowPod) -> Cell {
    let (word, tone) = match pod.fate() {
        None => return Cell::from(UNKNOWN),
        Some(Fate::Same) => return Cell::from("no"),
        Some(Fate::Rebuilt) => ("yes", Tone::Bad),
        Some(Fate::Restarted) => ("restarted", Tone::Warning),
        Some(Fate::Ended) => ("ended", Tone::Warning),
        Some(Fate::Gone) => ("gone", Tone::Warning),
    };
    let tone = if pod.unexpected { Tone::Bad } else { tone };
    Cell::toned(word, Some(tone)).on_page(html! {
        span class={ "badge " (tone.class()) } { (word) }
        @if let Some(words) = change(view, pod) { div.small.change { (words) } }
    })
}

/// What shows that a pod was rebuilt, or what happened to it.
fn change(view: &ReportView, pod: &WindowPod) -> Option<String> {
    if let Some(gone) = pod.gone {
        return Some(format!(
            "noticed at {}",
            clock(&view.window, gone, words::TIME)
        ));
    }
    if !pod.container_changes.is_empty() {
        let names = pod.container_changes.iter().map(|one| escape(&one.name));
        return Some(format!("container {}", join(names, ", ")));
    }
    let before = pod.fingerprint_before.as_ref()?;
    let after = pod.fingerprint_after.as_ref()?;
    let short = |fingerprint: &PodFingerprint| {
        escape(&fingerprint.sandbox.chars().take(8).collect::<String>())
    };
    (before.sandbox != after.sandbox)
        .then(|| format!("sandbox {} became {}", short(before), short(after)))
}
