//! A window's report as one HTML page: it loads nothing else and needs no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::style::Tone;
use super::super::text::{count, escape, join, milliseconds, or_dash};
use super::terminal::{ended, limits, pause};
use super::text::{self, clock, printed};
use super::verdict::lasted;
use super::{ReportView, chart, figures, histogram, nics, tables};
use crate::model::window::{PhaseName, Rollback};

const STYLE: &str = include_str!("page.css");
/// The page loads and runs nothing, even if a text on it contains markup.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page, with the last lines of the window's log where there are any.
#[must_use]
pub fn page(view: &ReportView, log: Option<&[String]>) -> String {
    let window = &view.window;
    let node = window.node.hostname.as_deref().map(escape);
    let node = node.unwrap_or_else(|| "unknown node".to_owned());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "netfix " (window.id) " on " (node) ": " (view.computed.verdict.title()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (header(view, &node))
                    (figures::figures(view))
                    @if !window.phases.is_empty() {
                        section aria-labelledby="timeline" {
                            h2 id="timeline" { "Timeline" }
                            div.card.scroll { (chart::timeline(view)) }
                            (tables::phases(view))
                        }
                    }
                    (nics::section(view))
                    (pods(view))
                    (problems(view))
                    (facts(view))
                    (last_lines(log))
                    footer { "netfix " (env!("CARGO_PKG_VERSION")) ", from the record of window "
                        span.mono { (window.id) } ". Clock times are UTC; durations use the monotonic clock." }
                }
            }
        }
    };
    page.into_string()
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
            p.over { "Maintenance window" }
            h1 { (node) }
            p.when { (date) (until.unwrap_or_else(|| " UTC".to_owned())) }
            @if let Some(run) = &window.run { p.command-line { code { (text::argv(run)) } } }
            div class={ "verdict " (verdict.tone().class()) } role="status" {
                (sign(verdict.tone()))
                div {
                    p.word { (verdict.title()) }
                    p.sentence { (view.computed.sentence) }
                }
            }
        }
    }
}

/// A sign with the same meaning as the colour.
fn sign(tone: Tone) -> Markup {
    let path = match tone {
        Tone::Good => "M7 12.5l3.5 3.5L17 9",
        Tone::Calm => "M12 7v5.5l3.5 2",
        Tone::Warning => "M12 6.5v7M12 16.6v.4",
        Tone::Bad => "M8 8l8 8M16 8l-8 8",
    };
    html! {
        svg.sign viewBox="0 0 24 24" width="32" height="32" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
            circle cx="12" cy="12" r="11" {}
            path d=(path) {}
        }
    }
}

fn pods(view: &ReportView) -> Markup {
    if view.window.pods.is_empty() {
        return html! {};
    }
    let spread = histogram::histogram(view);
    html! {
        section aria-labelledby="pods" {
            h2 id="pods" { "Pods" }
            @if !spread.0.is_empty() {
                h3 { "Number of pods by length of their outage" }
                div.card.scroll { (spread) }
            }
            (tables::pods(view))
        }
    }
}

fn problems(view: &ReportView) -> Markup {
    html! {
        section aria-labelledby="problems" {
            h2 id="problems" { "Problems" }
            @if view.window.problems.is_empty() { p { "None." } } @else { (tables::problems(view)) }
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
                dt { "Began" } dd { (clock(window, 0, text::DATE_AND_TIME)) }
                dt { "Ended" } dd { (ended(view)) }
                @if let Some(run) = &window.run {
                    dt { "Command" } dd { code { (text::argv(run)) } br; (text::run_end(run, lasted(window, PhaseName::Command))) }
                }
                @if let Some(one) = &window.rollback { (rollback(view, one)) }
                @match &window.pause {
                    Some(hold) => { dt { "kubelet" } dd { (pause(view, hold)) @for limit in limits(view, hold) { br; (limit) } } }
                    None => { dt { "kubelet" } dd { "not paused: no unit found" } }
                }
                @if let Some(log) = &window.log { dt { "Log" } dd { span.mono { (escape(log)) } } }
                dt { "Boot" } dd { span.mono { (or_dash(window.node.boot_id.as_deref().map(escape))) } }
            }
        }
    }
}

fn rollback(view: &ReportView, rollback: &Rollback) -> Markup {
    let end = text::run_end(&rollback.run, lasted(&view.window, PhaseName::Rollback));
    html! {
        dt { "Rollback" }
        dd { code { (text::argv(&rollback.run)) } br; (end) br; (text::reason(rollback)) }
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
