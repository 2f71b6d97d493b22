//! The merged documents as one HTML page: it loads nothing else and needs no script.

use maud::html;

use super::FleetView;
use super::tables::{drivers, nodes, problems, sentence};
use crate::report::page::{document, sign};
use crate::report::text::count;

/// The page.
#[must_use]
pub fn page(view: &FleetView) -> String {
    let (words, tone) = sentence(view);
    let body = html! {
        header {
            p.over { "Fleet" }
            h1 { (count(view.nodes.len(), "node")) }
            div class={ "verdict " (tone.class()) } role="status" {
                (sign(tone))
                div { p.word { (words) } }
            }
        }
        section aria-labelledby="nodes" {
            h2 id="nodes" { "Nodes" }
            (nodes(&view.nodes).sheet(None, "One row for each node"))
        }
        @if !view.problems.is_empty() {
            section aria-labelledby="problems" {
                h2 id="problems" { "Problems" }
                (problems(view).sheet(None, "By code, over all nodes"))
            }
        }
        @if !view.drivers.is_empty() {
            section aria-labelledby="drivers" {
                h2 id="drivers" { "Drivers" }
                (drivers(view).sheet(None, "Version and firmware before and after the windows"))
            }
        }
        footer { "netfix " (env!("CARGO_PKG_VERSION")) ", from " (count(view.nodes.len(), "document")) "." }
    };
    document(&format!("netfix: {words}"), &body)
}
