//! The few numbers of a window that everybody asks for first.

use maud::{Markup, html};

use super::text::{self, UNKNOWN, duration, duration_or_dash};
use super::verdict::{Tally, Tone};
use super::{Outages, ReportView};
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};

/// One number, with what it is and what it means.
struct Figure {
    name: &'static str,
    value: String,
    note: Markup,
    tone: Option<Tone>,
}

pub(super) fn figures(view: &ReportView) -> Markup {
    let computed = &view.computed;
    let of_pods = || [back(&computed.pods), rebuilt(&computed.pods), outage(&computed.outages)];
    let of_pods = (computed.pods.total > 0).then(of_pods);
    html! {
        dl.figures {
            @for figure in of_pods.into_iter().flatten().chain([pause(view)]) {
                div.figure {
                    dt { (figure.name) }
                    dd class=(figure.tone.map_or("", Tone::class)) { (figure.value) }
                    dd.note { (figure.note) }
                }
            }
        }
    }
}

fn back(pods: &Tally) -> Figure {
    let note = match pods.unknown {
        0 => html! { "network and gateways" },
        count => html! { "not known of " (count) },
    };
    let tone = (pods.not_back > 0).then_some(Tone::Bad);
    Figure { name: "Pods back", value: text::back(pods), note, tone }
}

fn rebuilt(pods: &Tally) -> Figure {
    let known = pods.total.saturating_sub(pods.rebuilt_unknown);
    let value = if known == 0 { UNKNOWN.to_owned() } else { pods.rebuilt.to_string() };
    let note = match known {
        0 => html! { "not known" },
        known if known < pods.total => html! { "known of " (known) " pods" },
        _ => html! { "by sandboxes and containers" },
    };
    let tone = (pods.rebuilt > 0).then_some(Tone::Bad);
    Figure { name: "Pods rebuilt", value, note, tone }
}

fn outage(outages: &Outages) -> Figure {
    let median = outages.median_ms;
    let median = median.map(|ms| format!("median {} of {} pods", duration(ms), outages.pods.len()));
    let unanswered = (outages.unanswered > 0).then(|| format!("no end known of {}", outages.unanswered));
    let notes: Vec<String> = median.into_iter().chain(unanswered).collect();
    let note = if notes.is_empty() { "no loss was seen".to_owned() } else { notes.join("; ") };
    let value = duration_or_dash(outages.worst_ms);
    Figure { name: "Longest outage", value, note: html! { (note) }, tone: None }
}

fn pause(view: &ReportView) -> Figure {
    let value = match &view.window.hold {
        Some(hold) if hold.paused.is_some() && hold.resumed.is_none() => "not resumed".to_owned(),
        _ => duration_or_dash(view.computed.pause_ms),
    };
    let (tone, note) = match (view.computed.pause_ms, &view.window.hold) {
        (Some(ms), _) => against_limits(ms),
        (None, Some(_)) => (None, html! { "no length is known" }),
        (None, None) => (None, html! { "none ran here" }),
    };
    Figure { name: "kubelet paused", value, note, tone }
}

/// A pause against what the control plane waits for.
fn against_limits(ms: u64) -> (Option<Tone>, Markup) {
    let part = |limit: u64| (ms / (limit * 10)).min(100);
    let (tone, limit, words) = match ms / 1000 {
        0..NOT_READY_AFTER => (
            None,
            NOT_READY_AFTER,
            format!("{} % of the {NOT_READY_AFTER} s until NotReady", part(NOT_READY_AFTER)),
        ),
        NOT_READY_AFTER..EVICTION_AFTER => (
            Some(Tone::Warning),
            EVICTION_AFTER,
            format!("beyond {NOT_READY_AFTER} s (NotReady), below {EVICTION_AFTER} s (eviction)"),
        ),
        _ => (Some(Tone::Bad), EVICTION_AFTER, format!("beyond {EVICTION_AFTER} s (eviction)")),
    };
    let class = tone.map_or("", Tone::class);
    let meter = html! {
        svg.meter viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"
            xmlns="http://www.w3.org/2000/svg" {
            rect.all width="100" height="4" {}
            rect class={ "part " (class) } width=(part(limit).max(1)) height="4" {}
        }
        (words)
    };
    (tone, meter)
}
