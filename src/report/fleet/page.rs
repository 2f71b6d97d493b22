//! The merged documents as one HTML page: it loads nothing else and needs no script.

use maud::{Markup, html};

use super::super::layout::{document, head, sign};
use super::super::style::Tone;
use super::super::text::{count, escape, join, milliseconds, or_dash, part};
use super::terminal::{after, sentence};
use super::{FleetView, NodeResult};

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
            div.sheet { table {
                caption { "One row for each document" }
                (head(&["Node", "Verdict", "Pods well", "Worst outage", "Median", "Pause", "Window"], 0..0))
                tbody { @for node in &view.nodes { (row(node)) } }
            } }
        }
        (problems(view))
        (drivers(view))
        footer { "netfix " (env!("CARGO_PKG_VERSION")) ", from " (count(view.nodes.len(), "document")) "." }
    };
    document(&format!("netfix: {words}"), &body)
}

fn row(node: &NodeResult) -> Markup {
    let tone = if node.is_well() {
        Tone::Good
    } else {
        Tone::Bad
    };
    html! {
        tr class=(tone.class()) {
            th scope="row" { (escape(node.name())) }
            td { (escape(&node.verdict)) }
            td { (part(node.pods_well, node.pods)) }
            td { (or_dash(node.worst_outage_ms.map(milliseconds))) }
            td { (or_dash(node.median_outage_ms.map(milliseconds))) }
            td { (or_dash(node.pause_ms.map(milliseconds))) }
            td.mono { (or_dash(node.window.as_deref().map(escape))) }
        }
    }
}

fn problems(view: &FleetView) -> Markup {
    if view.problems.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="problems" {
            h2 id="problems" { "Problems" }
            div.sheet { table {
                caption { "By code, over all nodes" }
                (head(&["Severity", "Code", "Number", "Nodes", "Example"], 0..0))
                tbody { @for group in &view.problems {
                    tr {
                        td { (escape(&group.severity)) }
                        th scope="row" { code { (escape(&group.code)) } }
                        td { (group.count) }
                        td { (count(group.nodes.len(), "node")) ": " (join(escaped(&group.nodes), ", ")) }
                        td { (escape(&group.example)) }
                    }
                } }
            } }
        }
    }
}

fn drivers(view: &FleetView) -> Markup {
    if view.drivers.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="drivers" {
            h2 id="drivers" { "Drivers" }
            div.sheet { table {
                caption { "Version and firmware before and after the windows" }
                (head(&["Driver", "Before", "After", "NICs", "Nodes"], 0..0))
                tbody { @for change in &view.drivers {
                    tr class=[change.after.is_none().then(|| Tone::Bad.class())] {
                        th scope="row" { (escape(&change.driver)) }
                        td { (escape(&change.before)) }
                        td { (escape(&after(change))) }
                        td { (change.nics) }
                        td { (join(escaped(&change.nodes), ", ")) }
                    }
                } }
            } }
        }
    }
}

fn escaped<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    names.into_iter().map(|name| escape(name)).collect()
}
