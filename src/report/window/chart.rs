//! The window on one time axis, as SVG: phases, kubelet's pause, and below them the outage of each pod.

use maud::{Markup, html};

use super::outcome::PodOutcome;
use super::scale::{Px, Scale, mark, step};
use super::tables::{outage, result};
use super::terminal::outages;
use super::view::ReportView;
use super::words::lasted;
use crate::model::window::{
    EVICTION_AFTER, KubeletPause, NOT_READY_AFTER, Phase, PhaseName, WindowPod,
};
use crate::report::style::Tone;
use crate::report::table::terminal::cut;
use crate::report::text::{join, milliseconds, milliseconds_or_dash, part, seconds};

/// The drawing's width; one unit is one pixel on a wide screen.
const WIDTH: u64 = 1080;
/// Names are left of this; right of the plot is room for a duration.
const LEFT: u64 = 218;
const PLOT: u64 = WIDTH - LEFT - 96;
/// Heights: the labels above, a phase, the pods' heading, a pod, the marks below.
const TOP: u64 = 60;
const ROW: u64 = 26;
const HEADING: u64 = 42;
const LANE: u64 = 21;
const BOTTOM: u64 = 26;
/// The number of pods that have a lane.
pub(super) const LANES: usize = 30;
/// The longest name in columns of a terminal; longer names are cut.
const NAME: usize = 28;

/// The data and the scale of the drawing.
struct Chart<'a> {
    view: &'a ReportView,
    scale: Scale,
    lanes: Vec<&'a WindowPod>,
}

/// The drawing.
pub(super) fn timeline(view: &ReportView) -> Markup {
    let scale = Scale {
        left: LEFT,
        length: PLOT,
        first: 0,
        last: view.span().max(1),
    };
    let chart = Chart {
        view,
        scale,
        lanes: lanes(view),
    };
    let height = chart.bottom() + BOTTOM;
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-labelledby="chart-title chart-desc"
            xmlns="http://www.w3.org/2000/svg" {
            title id="chart-title" { "Timeline of the window" }
            desc id="chart-desc" { (chart.description()) }
            defs {
                pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.hatch-ground width="6" height="6" {}
                    rect.hatch-line width="2.5" height="6" {}
                }
            }
            (chart.pause())
            (chart.axis())
            @for (row, phase) in (0..).zip(&view.window.phases) { (chart.phase(phase, TOP + row * ROW)) }
            @if !chart.lanes.is_empty() { (chart.pods()) }
            (chart.limits())
        }
    }
}

/// The pods that have a lane: those with the longest outages.
fn lanes(view: &ReportView) -> Vec<&WindowPod> {
    let pods = view.window.pods.iter();
    let mut pods: Vec<&WindowPod> = pods.filter(|pod| pod.lost.is_some()).collect();
    pods.sort_by_key(|pod| std::cmp::Reverse((pod.outage().is_none(), pod.outage())));
    pods.truncate(LANES);
    pods
}

impl Chart<'_> {
    fn phases_end(&self) -> u64 {
        TOP + self.view.window.phases.len() as u64 * ROW
    }

    fn bottom(&self) -> u64 {
        let end = self.phases_end();
        match self.lanes.len() as u64 {
            0 => end,
            lanes => end + HEADING + lanes * LANE,
        }
    }

    fn description(&self) -> String {
        let phase = |phase: &Phase| {
            let lasted = lasted(phase).map_or_else(|| "no end known".to_owned(), milliseconds);
            format!("{} {lasted}", phase.name)
        };
        let phases = join(self.view.window.phases.iter().map(phase), ", ");
        let pause = self.view.computed.pause_ms;
        let pause = pause.map(|ms| format!("; kubelet paused for {}", milliseconds(ms)));
        let outages = outages(self.view).into_iter();
        let outages = outages.map(|line| format!("; outage {line}"));
        let others = join(pause.into_iter().chain(outages), "");
        format!("Phases: {phases}{others}.")
    }

    fn axis(&self) -> Markup {
        let step = step(self.scale.last, 10);
        let marks = (0..=self.scale.last / step).map(|number| number * step);
        let (top, bottom) = (TOP - 6, self.bottom());
        html! {
            g.axis {
                @for ms in marks {
                    @let x = self.scale.at(ms);
                    line x1=(x) y1=(top) x2=(x) y2=(bottom) {}
                    text.mark x=(x) y=(bottom + 18) text-anchor="middle" { (mark(ms, step)) }
                }
                line.base x1=(Px::of(LEFT)) y1=(bottom) x2=(self.scale.end()) y2=(bottom) {}
            }
        }
    }

    fn paused(&self) -> Option<(&KubeletPause, u64)> {
        let pause = self.view.window.pause.as_ref()?;
        Some((pause, pause.paused?))
    }

    /// kubelet's pause, as a band behind phases and lanes.
    fn pause(&self) -> Markup {
        let Some((pause, paused)) = self.paused() else {
            return html! {};
        };
        let (from, width) = self.scale.bar(paused, pause.resumed);
        let words = match self.view.computed.pause_ms {
            Some(ms) => format!("kubelet paused {}", milliseconds(ms)),
            None => "kubelet paused, not resumed".to_owned(),
        };
        // A short band has its words beside it.
        let (x, anchor) = if width.0 < 1500 && from.0 < (LEFT + PLOT - 170) * 10 {
            (from, "start")
        } else {
            (Px(from.0 + width.0 / 2), "middle")
        };
        html! {
            g.pause {
                rect.band x=(from) y=(TOP - 22) width=(width) height=(self.bottom() + 22 - TOP) {}
                text.pause-label x=(x) y=(TOP - 31) text-anchor=(anchor) { (words) }
            }
        }
    }

    /// When the control plane acts, where the axis reaches that far.
    fn limits(&self) -> Markup {
        let Some((_, paused)) = self.paused() else {
            return html! {};
        };
        let limits = [(NOT_READY_AFTER, "NotReady"), (EVICTION_AFTER, "eviction")];
        let in_range = limits.map(|(limit, what)| {
            let words = format!("{what} after {}", seconds(limit));
            (paused + limit * 1000, words)
        });
        html! {
            @for (ms, words) in in_range.iter().filter(|(ms, _)| *ms <= self.scale.last) {
                @let x = self.scale.at(*ms);
                @let is_late = x.0 > (LEFT + PLOT * 3 / 4) * 10;
                @let reached = self.view.computed.pause_ms.is_none_or(|pause| paused + pause >= *ms);
                g class=(if reached { "limit reached" } else { "limit" }) {
                    line x1=(x) y1=(TOP - 22) x2=(x) y2=(self.bottom()) {}
                    text x=(if is_late { x.minus(5) } else { x.plus(5) }) y=(TOP - 12)
                        text-anchor=(if is_late { "end" } else { "start" }) { (words) }
                }
            }
        }
    }

    fn phase(&self, phase: &Phase, y: u64) -> Markup {
        let (from, width) = self.scale.bar(phase.from, phase.to);
        let (word, tone) = result(self.view, phase);
        let class = match (tone, phase.name) {
            (Tone::Bad, _) if phase.to.is_none() => "bar cut",
            (Tone::Bad, _) => "bar bad",
            (_, PhaseName::Command | PhaseName::Rollback) => "bar command",
            (_, PhaseName::Repair | PhaseName::RebuildCheck) => "bar waiting",
            _ => "bar",
        };
        let length = milliseconds_or_dash(lasted(phase));
        let words = match phase.to {
            None => word.to_owned(),
            Some(_) if tone == Tone::Good => length.clone(),
            Some(_) => format!("{length} {word}"),
        };
        html! {
            g.phase {
                title { (format!("{}: +{}, {length}, {word}", phase.name, milliseconds(phase.from))) }
                text.name x=(LEFT - 14) y=(y + 15) text-anchor="end" { (phase.name) }
                rect class=(class) x=(from) y=(y + 3) width=(width) height="15" rx="2.5" {}
                text.length x=(Px(from.0 + width.0).plus(7)) y=(y + 15) { (words) }
            }
        }
    }

    fn pods(&self) -> Markup {
        let y = self.phases_end();
        let pods = part(self.lanes.len(), self.view.window.pods.len());
        html! {
            text.heading x="0" y=(y + 28) { "Outage of " (pods) ", longest first" }
            line.rule x1="0" y1=(y + 8) x2=(WIDTH) y2=(y + 8) {}
            @for (row, pod) in (0..).zip(&self.lanes) { (self.lane(pod, y + HEADING + row * LANE)) }
        }
    }

    fn lane(&self, pod: &WindowPod, y: u64) -> Markup {
        let name = pod.info.title();
        let (from, width) = self.scale.bar(pod.lost.unwrap_or_default(), pod.answered);
        let class = match (pod.answered, PodOutcome::of(&self.view.window, pod)) {
            (None, _) => "bar cut",
            (Some(_), PodOutcome::Back) => "bar outage",
            (Some(_), _) => "bar bad",
        };
        html! {
            g.lane {
                title { (name) ": " (outage(self.view, pod)) }
                text.name x=(LEFT - 14) y=(y + 13) text-anchor="end" { (cut(&name, NAME, "…")) }
                rect class=(class) x=(from) y=(y + 4) width=(width) height="10" rx="2" {}
                text.length x=(Px(from.0 + width.0).plus(7)) y=(y + 13) { (outage(self.view, pod)) }
            }
        }
    }
}
