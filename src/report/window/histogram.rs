//! The distribution of outages, as SVG.

use maud::{Markup, html};

use super::chart::LANES;
use super::scale::{Px, Scale, mark, step};
use super::view::ReportView;
use crate::report::text::{count, milliseconds};

const WIDTH: u64 = 1080;
const TOP: u64 = 24;
const HEIGHT: u64 = 110;
const BOTTOM: u64 = 26;
/// The largest number of columns.
const COLUMNS: u64 = 24;

/// One column.
struct Bin {
    from: u64,
    count: u64,
}

/// The drawing; nothing when every outage has its own lane.
pub(super) fn histogram(view: &ReportView) -> Markup {
    let outages = view.computed.outages.pods.iter();
    let outages: Vec<u64> = outages.map(|outage| outage.ms).collect();
    let (Some(longest), Some(shortest)) = (outages.first(), outages.last()) else {
        return html! {};
    };
    if view.window.pods.len() <= LANES {
        return html! {};
    }
    let step = step(longest - shortest, COLUMNS - 2);
    let bins = bins(&outages, step);
    let last = bins.last().map_or(step, |bin| bin.from + step);
    let first = bins.first().map_or(0, |bin| bin.from);
    let scale = Scale {
        left: 24,
        length: WIDTH - 48,
        first,
        last,
    };
    let highest = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    let base = TOP + HEIGHT;
    let every = if bins.len() > 12 { 2 } else { 1 };
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {}", base + BOTTOM)) role="img"
            aria-labelledby="spread-title spread-desc" xmlns="http://www.w3.org/2000/svg" {
            title id="spread-title" { "How long the pods were cut off" }
            desc id="spread-desc" {
                (count(outages.len(), "pod")) ", from " (milliseconds(*shortest)) " to " (milliseconds(*longest)) "."
            }
            g.axis {
                @for (row, bin) in bins.iter().enumerate().filter(|(row, _)| row % every == 0) {
                    @let x = scale.at(bin.from);
                    text.mark x=(x) y=(base + 18) text-anchor=(if row == 0 { "start" } else { "middle" }) {
                        (mark(bin.from, step))
                    }
                }
                line.base x1="24" y1=(base) x2=(scale.end()) y2=(base) {}
            }
            @for bin in bins.iter().filter(|bin| bin.count > 0) {
                @let x = scale.at(bin.from);
                @let width = x.to(scale.at(bin.from + step), 4);
                @let height = (bin.count * (HEIGHT - 16) / highest).max(2);
                g {
                    title { (count(bin.count, "pod")) ": " (mark(bin.from, step)) " to " (mark(bin.from + step, step)) }
                    rect.bar.outage x=(x.plus(1)) y=(base - height) width=(width.minus(2)) height=(height) rx="2" {}
                    text.mark x=(Px(x.0 + width.0 / 2)) y=(base - height - 5) text-anchor="middle" { (bin.count) }
                }
            }
        }
    }
}

/// The columns from the shortest outage to the longest, with the empty ones between.
fn bins(outages: &[u64], step: u64) -> Vec<Bin> {
    let first = outages.iter().min().map_or(0, |least| least / step);
    let last = outages.iter().max().map_or(0, |most| most / step);
    (first..=last)
        .map(|bin| Bin {
            from: bin * step,
            count: outages.iter().filter(|ms| **ms / step == bin).count() as u64,
        })
        .collect()
}
