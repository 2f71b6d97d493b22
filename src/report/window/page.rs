//! A window's report as one HTML page: it loads nothing else and needs no script.

use maud::{Markup, html};

use super::terminal::{clock_set, ended, limits, pause};
use super::view::ReportView;
use super::words::{self, clock, printed};
use super::{figures, kernel, nics, settings, tables};
use crate::model::Exit;
use crate::model::window::{PhaseName, Rollback, Window, WindowKind};
use crate::report::page::{document, sign};
use crate::report::text::{count, escape, expected_outage, join, milliseconds, or_dash, rehearsal};

const NICS: &str = "Driver and firmware before the window, and when netfix last read them";

const KERNEL: &str =
    "Lines about the recorded devices, from COMMAND to the end; marked: a known cause";

const SETTINGS: &str = "Settings that a NIC did not have any more after COMMAND";

/// The page, with the last lines of the window's log where there are any.
#[must_use]
pub fn page(view: &ReportView, log: Option<&[String]>) -> String {
    let window = &view.window;
    let node = window.node.hostname.as_deref().map(escape);
    let node = node.unwrap_or_else(|| "unknown node".to_owned());
    let main = html! {
        (header(view, &node))
        (figures::figures(view))
        @if !window.phases.is_empty() {
            section aria-labelledby="timeline" {
                h2 id="timeline" { "Timeline" }
                (tables::phases(view).sheet(Some("phases"), "Phases: clock times are UTC"))
            }
        }
        @if window.nics.as_ref().is_some_and(|nics| !nics.is_empty()) {
            section aria-labelledby="nics" {
                h2 id="nics" { "NICs" }
                (nics::table(window).sheet(Some("nics"), NICS))
            }
        }
        @if !window.settings.is_empty() {
            section aria-labelledby="settings" {
                h2 id="settings" { "Settings of NICs" }
                @for line in settings::lines(view) { p { (line) } }
                (settings::table(view).sheet(Some("settings"), SETTINGS))
            }
        }
        (pods(view))
        (problems(view))
        (kernel_lines(view))
        (facts(view))
        (last_lines(log))
        footer { "netfix " (env!("CARGO_PKG_VERSION")) ", from the record of window "
            span.mono { (window.id) } ". Clock times are UTC; durations use the monotonic clock." }
    };
    let title = view.computed.verdict.title();
    document(&format!("netfix {} on {node}: {title}", window.id), &main)
}

/// What the record is of.
fn kind(window: &Window) -> &'static str {
    match window.kind {
        None => "Maintenance window",
        Some(WindowKind::Unplanned) => "Restore by netfix guard",
        Some(WindowKind::Restore) => "Restore by netfix restore",
        Some(WindowKind::Accept) => "Loss accepted by netfix snapshot",
    }
}

fn header(view: &ReportView, node: &str) -> Markup {
    let (window, verdict) = (&view.window, view.computed.verdict);
    let date = clock(window, 0, "%-d %B %Y, %H:%M:%S");
    let until = window.ended.map(|ms| {
        let at = clock(window, ms, "%H:%M:%S");
        format!(" to {at} UTC, {}", milliseconds(ms))
    });
    html! {
        header {
            p.over { (kind(window)) }
            h1 { (node) }
            p.when { (date) (until.unwrap_or_else(|| " UTC".to_owned())) }
            @if let Some(run) = &window.run { p.command-line { code { (words::argv(run)) } } }
            div class={ "verdict " (verdict.tone().class()) } role="status" {
                (sign(verdict.tone()))
                div {
                    p.word { (verdict.title()) }
                    p.sentence { (view.computed.sentence) }
                    @if let Some(next) = next(view) { p.sentence { (next) } }
                }
            }
        }
    }
}

/// The next commands after a window that has left work.
fn next(view: &ReportView) -> Option<&'static str> {
    let is_incomplete = view.window.ended.is_some() && view.window.exit == Some(Exit::Partly as u8);
    is_incomplete.then_some(
        "Next: `netfix explain CODE` for each problem below; remove the cause; `netfix restore`; `netfix verify`",
    )
}

fn pods(view: &ReportView) -> Markup {
    if view.window.pods.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="pods" {
            h2 id="pods" { "Pods" }
            (tables::pods(view, true).sheet(Some("pods"), "Worst first, then by outage"))
        }
    }
}

fn problems(view: &ReportView) -> Markup {
    html! {
        section aria-labelledby="problems" {
            h2 id="problems" { "Problems" }
            @if view.window.problems.is_empty() { p { "None." } } @else {
                (tables::problems(view).sheet(Some("problems"), "docs/reference/problems.md explains the codes"))
            }
        }
    }
}

fn kernel_lines(view: &ReportView) -> Markup {
    html! {
        @if view.window.kernel.is_some() {
            section aria-labelledby="kernel" {
                h2 id="kernel" { "The kernel's log" }
                (kernel::table(view, true).sheet(Some("kernel"), KERNEL))
                @if let Some(left_out) = kernel::left_out(view, true) { p.small { (left_out) } }
            }
        }
    }
}

/// The other facts of the record.
fn facts(view: &ReportView) -> Markup {
    let window = &view.window;
    html! {
        section aria-labelledby="details" {
            h2 id="details" { "Details" }
            dl.facts {
                dt { "Window" } dd { span.mono { (window.id) } ", opened by netfix " (escape(&window.command)) }
                dt { "Began" } dd { (clock(window, 0, words::DATE_AND_TIME)) }
                dt { "Ended" } dd { (ended(view)) }
                @if let Some(note) = clock_set(window) { dt { "Clock" } dd { (note) } }
                @if let Some(figures) = &window.rehearsal { dt { "Rehearsal" } dd { (rehearsal(figures)) "; " (expected_outage(figures)) } }
                @if let Some(run) = &window.run {
                    dt { "Command" } dd { code { (words::argv(run)) } br; (words::run_end(window, PhaseName::Command, run)) }
                }
                @if let Some(one) = &window.rollback { (rollback(view, one)) }
                @match &window.pause {
                    Some(hold) => { dt { "kubelet" } dd { (pause(view, hold)) @for limit in limits(view, hold) { br; (limit) } } }
                    None => { dt { "kubelet" } dd { "not paused" } }
                }
                @if let Some(log) = &window.log { dt { "Log" } dd { span.mono { (escape(log)) } } }
                dt { "Boot" } dd { span.mono { (or_dash(window.node.boot_id.as_deref().map(escape))) } }
            }
        }
    }
}

fn rollback(view: &ReportView, rollback: &Rollback) -> Markup {
    let end = words::run_end(&view.window, PhaseName::Rollback, &rollback.run);
    html! {
        dt { "Rollback" }
        dd { code { (words::argv(&rollback.run)) } br; (end) br; (words::reason(rollback)) }
    }
}

fn last_lines(log: Option<&[String]>) -> Markup {
    let lines = log.unwrap_or_default();
    if lines.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="log" {
            h2 id="log" { "Log" }
            p.small { "The last " (count(lines.len(), "line")) " of netfix and COMMAND." }
            pre tabindex="0" { (join(lines.iter().map(|line| printed(line)), "\n")) }
        }
    }
}
