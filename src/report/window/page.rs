//! A window's report as one page for a browser: nothing else is loaded, and no script is needed to read it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::human::{ended, limits, pause};
use super::text::{self, UNKNOWN, clock, duration, harmless, printed};
use super::verdict::Tone;
use super::{ReportView, chart, histogram, tables};
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};

const STYLE: &str = include_str!("page.css");
/// Nothing is loaded and nothing is run, whatever stands on the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page, with the last lines of the window's log where there are any.
#[must_use]
pub fn page(view: &ReportView, log: Option<&[String]>) -> String {
    let window = &view.window;
    let node = window.node.hostname.as_deref().map_or_else(|| "an unnamed node".to_owned(), harmless);
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
                    (figures(view))
                    @if !window.phases.is_empty() {
                        section aria-labelledby="timeline" {
                            h2 id="timeline" { "Timeline" }
                            div.card.scroll { (chart::timeline(view)) }
                            (tables::phases(view))
                        }
                    }
                    (pods(view))
                    (problems(view))
                    (facts(view))
                    (last_lines(log))
                    footer { "Made by netfix " (env!("CARGO_PKG_VERSION")) " from the record of window "
                        span.mono { (window.id) } ". Clock times are UTC; lengths are by a clock that nobody sets." }
                }
            }
        }
    };
    page.into_string()
}

fn header(view: &ReportView, node: &str) -> Markup {
    let (window, verdict) = (&view.window, view.computed.verdict);
    let date = clock(window, 0, "%-d %B %Y, %H:%M:%S");
    let until =
        view.lasted().map(|ms| format!(" to {} UTC, {}", clock(window, ms, "%H:%M:%S"), duration(ms)));
    html! {
        header {
            p.over { "Maintenance window" }
            h1 { (node) }
            p.when { (date) (until.unwrap_or_else(|| " UTC".to_owned())) }
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

/// A sign that says the same as its colour.
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

/// The few numbers that everybody asks for first.
fn figures(view: &ReportView) -> Markup {
    let computed = &view.computed;
    let (pods, outages) = (&computed.pods, &computed.outages);
    let figure = |name: &str, value: Markup, note: Markup, tone: Option<Tone>| {
        html! {
            div.figure {
                dt { (name) }
                dd class=(tone.map_or("", Tone::class)) { (value) }
                dd.note { (note) }
            }
        }
    };
    let rebuilt_known = pods.total - pods.rebuilt_unknown.min(pods.total);
    let median =
        outages.median_ms.map(|ms| format!("median {} of {} pods", duration(ms), outages.pods.len()));
    let unanswered = (outages.unanswered > 0).then(|| format!("{} without an answer", outages.unanswered));
    let notes: Vec<String> = median.into_iter().chain(unanswered).collect();
    html! {
        dl.figures {
            @if pods.total > 0 {
                (figure("Pods back",
                    html! { (pods.back) span.of { " of " (pods.total) } },
                    html! { (if pods.unknown > 0 { format!("nobody looked at {}", pods.unknown) } else { "network and gateways".to_owned() }) },
                    (pods.not_back > 0).then_some(Tone::Bad)))
                (figure("Pods rebuilt",
                    html! { @if rebuilt_known == 0 { (UNKNOWN) } @else { (pods.rebuilt) } },
                    html! { @if rebuilt_known < pods.total { "known of " (rebuilt_known) " pods" } @else { "same sandboxes and containers" } },
                    (pods.rebuilt > 0).then_some(Tone::Bad)))
                (figure("Longest outage",
                    html! { (text::duration_or_dash(outages.worst_ms)) },
                    html! { (if notes.is_empty() { "no loss was seen".to_owned() } else { notes.join(", ") }) },
                    None))
            }
            (figure("kubelet paused", html! { (paused(view)) }, meter(view), late(view)))
        }
    }
}

fn paused(view: &ReportView) -> String {
    match &view.window.hold {
        Some(hold) if hold.paused.is_some() && hold.resumed.is_none() => "not resumed".to_owned(),
        _ => text::duration_or_dash(view.computed.pause_ms),
    }
}

/// Whether the pause was long enough for the control plane to act.
fn late(view: &ReportView) -> Option<Tone> {
    let ms = view.computed.pause_ms?;
    if ms >= EVICTION_AFTER * 1000 {
        return Some(Tone::Bad);
    }
    (ms >= NOT_READY_AFTER * 1000).then_some(Tone::Warning)
}

/// The pause against what the control plane waits for.
fn meter(view: &ReportView) -> Markup {
    let Some(ms) = view.computed.pause_ms else {
        return html! { @if view.window.hold.is_none() { "no kubelet ran here" } @else { "no length is known" } };
    };
    let (limit, what) = if ms < NOT_READY_AFTER * 1000 {
        (NOT_READY_AFTER, "NotReady")
    } else {
        (EVICTION_AFTER, "eviction")
    };
    let percent = (ms / (limit * 10)).min(100);
    let class = late(view).map_or("", Tone::class);
    html! {
        svg.meter viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
            rect.all width="100" height="4" {}
            rect class={ "part " (class) } width=(percent.max(1)) height="4" {}
        }
        (percent) " % of the " (limit) " s before " (what)
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

/// Everything else that the record says.
fn facts(view: &ReportView) -> Markup {
    let window = &view.window;
    html! {
        section aria-labelledby="details" {
            h2 id="details" { "Details" }
            dl.facts {
                dt { "Window" } dd { span.mono { (window.id) } ", opened by netfix " (harmless(&window.command)) }
                dt { "Began" } dd { (clock(window, 0, text::DATE_AND_TIME)) }
                dt { "Ended" } dd { (ended(view)) }
                @if let Some(run) = &window.run {
                    dt { "Command" } dd { code { (text::argv(run)) } br; (text::run_end(run)) }
                }
                @match &window.hold {
                    Some(hold) => { dt { "kubelet" } dd { (pause(view, hold)) br; (limits(view, hold)) } }
                    None => { dt { "kubelet" } dd { "none ran here" } }
                }
                @if let Some(log) = &window.log { dt { "Log" } dd { span.mono { (harmless(log)) } } }
                dt { "Boot" } dd { span.mono { (window.node.boot_id.as_deref().map_or(UNKNOWN.to_owned(), harmless)) } }
            }
        }
    }
}

fn last_lines(log: Option<&[String]>) -> Markup {
    let lines: Vec<String> = log.unwrap_or_default().iter().map(|line| printed(line)).collect();
    if lines.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="log" {
            h2 id="log" { "Log" }
            p.small { "The last " (lines.len()) " lines: netfix's talk, and what the command printed." }
            pre tabindex="0" { (lines.join("\n")) }
        }
    }
}
