//! The numbers of a window that matter most.

use maud::{Markup, html};

use super::super::style::Tone;
use super::super::text::{UNKNOWN, count, milliseconds, seconds};
use super::text::{self, milliseconds_or_dash};
use super::verdict::PodCounts;
use super::{Outages, ReportView};
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};

/// One number with its name and a note.
struct Figure {
    name: &'static str,
    value: String,
    note: Markup,
    tone: Option<Tone>,
}

pub(super) fn figures(view: &ReportView) -> Markup {
    let computed = &view.computed;
    let of_pods = || {
        [
            back(&computed.pods),
            rebuilt(&computed.pods),
            outage(&computed.outages),
        ]
    };
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

fn back(pods: &PodCounts) -> Figure {
    let note = match pods.unknown {
        0 => html! { "network and gateways" },
        unknown => html! { (unknown) " unknown" },
    };
    let tone = (pods.not_back > 0).then_some(Tone::Bad);
    Figure {
        name: "Pods back",
        value: text::back(pods),
        note,
        tone,
    }
}

fn rebuilt(pods: &PodCounts) -> Figure {
    let known = pods.total.saturating_sub(pods.rebuilt_unknown);
    let value = if known == 0 {
        UNKNOWN.to_owned()
    } else {
        pods.rebuilt.to_string()
    };
    let note = match known {
        0 => html! { "not checked" },
        known => html! { (known) " of " (pods.total) " checked" },
    };
    let tone = (pods.rebuilt > 0).then_some(Tone::Bad);
    Figure {
        name: "Pods rebuilt",
        value,
        note,
        tone,
    }
}

fn outage(outages: &Outages) -> Figure {
    let median = outages.median_ms;
    let median = median.map(|ms| {
        format!(
            "median {} of {}",
            milliseconds(ms),
            count(outages.pods.len(), "pod")
        )
    });
    let unanswered =
        (outages.unanswered > 0).then(|| format!("{} without an answer since", outages.unanswered));
    let notes: Vec<String> = median.into_iter().chain(unanswered).collect();
    let note = if notes.is_empty() {
        "no loss seen".to_owned()
    } else {
        notes.join("; ")
    };
    let value = milliseconds_or_dash(outages.worst_ms);
    Figure {
        name: "Longest outage",
        value,
        note: html! { (note) },
        tone: None,
    }
}

fn pause(view: &ReportView) -> Figure {
    let value = match &view.window.pause {
        Some(pause) if pause.paused.is_some() && pause.resumed.is_none() => {
            "not resumed".to_owned()
        }
        _ => milliseconds_or_dash(view.computed.pause_ms),
    };
    let (tone, note) = match (view.computed.pause_ms, &view.window.pause) {
        (Some(ms), _) => against_limits(ms),
        (None, Some(_)) => (None, html! { "duration unknown" }),
        (None, None) => (None, html! { "no unit found" }),
    };
    Figure {
        name: "kubelet paused",
        value,
        note,
        tone,
    }
}

/// A pause, compared with the control plane's limits.
fn against_limits(ms: u64) -> (Option<Tone>, Markup) {
    let part = |limit: u64| (ms / (limit * 10)).min(100);
    let (tone, limit, words) = match ms / 1000 {
        0..NOT_READY_AFTER => (
            None,
            NOT_READY_AFTER,
            format!(
                "{} % of the {} until NotReady",
                part(NOT_READY_AFTER),
                seconds(NOT_READY_AFTER)
            ),
        ),
        NOT_READY_AFTER..EVICTION_AFTER => (
            Some(Tone::Warning),
            EVICTION_AFTER,
            format!(
                "beyond {} (NotReady), below {} (eviction)",
                seconds(NOT_READY_AFTER),
                seconds(EVICTION_AFTER)
            ),
        ),
        _ => (
            Some(Tone::Bad),
            EVICTION_AFTER,
            format!("beyond {} (eviction)", seconds(EVICTION_AFTER)),
        ),
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
