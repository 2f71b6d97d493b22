//! The numbers of a window that matter most.

use maud::{Markup, html};

use super::outcome::{PodCounts, is_still_paused};
use super::view::{Outages, ReportView};
use super::words;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};
use crate::report::page::bar;
use crate::report::style::Tone;
use crate::report::text::{count, join, milliseconds, milliseconds_or_dash, or_dash, seconds};

pub(super) fn figures(view: &ReportView) -> Markup {
    let computed = &view.computed;
    html! {
        dl.figures {
            @if computed.pods.total > 0 {
                (back(&computed.pods))
                (rebuilt(&computed.pods))
                (outage(&computed.outages))
            }
            (pause(view))
        }
    }
}

/// One number with its name and a note.
fn figure(name: &str, value: &str, note: &Markup, tone: Option<Tone>) -> Markup {
    html! {
        div.figure {
            dt { (name) }
            dd class=(tone.map_or("", Tone::class)) { (value) }
            dd.note { (note) }
        }
    }
}

fn back(pods: &PodCounts) -> Markup {
    let note = match (pods.unknown, pods.not_shown) {
        (0, 0) => html! { "network and gateways" },
        (0, not_shown) => html! { (not_shown) " not shown by an answer" },
        (unknown, _) => html! { (unknown) " unknown" },
    };
    let tone = (pods.not_back > 0).then_some(Tone::Bad);
    figure("Pods back", &words::back(pods), &note, tone)
}

fn rebuilt(pods: &PodCounts) -> Markup {
    let known = pods.total.saturating_sub(pods.rebuilt_unknown);
    let value = or_dash((known > 0).then_some(pods.rebuilt));
    let note = match known {
        0 => html! { "not checked" },
        known => html! { (known) " of " (pods.total) " checked" },
    };
    let tone = (pods.rebuilt > 0).then_some(Tone::Bad);
    let note = html! { (note) (words::others(pods.restarted, pods.gone)) };
    figure("Pods rebuilt", &value, &note, tone)
}

fn outage(outages: &Outages) -> Markup {
    let pods = count(outages.pods.len(), "pod");
    let median = outages.median_ms;
    let median = median.map(|ms| format!("median {} of {pods}", milliseconds(ms)));
    let unanswered = Some(outages.unanswered).filter(|number| *number > 0);
    let unanswered = unanswered.map(|number| format!("unknown for {number}"));
    let note = match join(median.into_iter().chain(unanswered), "; ") {
        none if none.is_empty() => "no loss seen".to_owned(),
        notes => notes,
    };
    let longest = milliseconds_or_dash(outages.worst_ms);
    figure("Longest outage", &longest, &html! { (note) }, None)
}

fn pause(view: &ReportView) -> Markup {
    let value = if is_still_paused(&view.window) {
        "not resumed".to_owned()
    } else {
        milliseconds_or_dash(view.computed.pause_ms)
    };
    let (tone, note) = match (view.computed.pause_ms, &view.window.pause) {
        (Some(ms), _) => against_limits(ms),
        (None, Some(_)) => (None, html! { "duration unknown" }),
        (None, None) => (None, html! { "not paused" }),
    };
    figure("kubelet paused", &value, &note, tone)
}

/// A pause, compared with the control plane's limits.
fn against_limits(ms: u64) -> (Option<Tone>, Markup) {
    let part = |limit: u64| (ms / (limit * 10)).min(100);
    let [not_ready, eviction] = [NOT_READY_AFTER, EVICTION_AFTER].map(seconds);
    let (tone, limit) = match ms / 1000 {
        0..NOT_READY_AFTER => (None, NOT_READY_AFTER),
        NOT_READY_AFTER..EVICTION_AFTER => (Some(Tone::Warning), EVICTION_AFTER),
        _ => (Some(Tone::Bad), EVICTION_AFTER),
    };
    let words = match tone {
        None => format!("{} % of the {not_ready} until NotReady", part(limit)),
        Some(Tone::Warning) => {
            format!("beyond {not_ready} (NotReady), below {eviction} (eviction)")
        }
        Some(_) => format!("beyond {eviction} (eviction)"),
    };
    let class = tone.map_or("", Tone::class);
    let meter = html! { div.meter { (bar(0, ms, limit * 1000, class)) } (words) };
    (tone, meter)
}
