//! The merged documents as tables, for the terminal and the page.

use maud::html;

use super::{DriverChange, FleetView, NodeResult, ProblemGroup};
use crate::report::screen::LastLine;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, KEPT, Medium, Table};
use crate::report::text::{count, escape, join, milliseconds_or_dash, or_dash, part};

/// Nodes, problems and drivers, each as a table.
pub(in crate::report) fn text(view: &FleetView, style: Style) -> String {
    let tables = [
        nodes(view).text(style),
        problems(view).text(style),
        drivers(view).text(style),
    ];
    let tables: Vec<String> = tables.into_iter().filter(|text| !text.is_empty()).collect();
    tables.join("\n")
}

fn tone(node: &NodeResult) -> Tone {
    if node.is_well() {
        Tone::Good
    } else {
        Tone::Bad
    }
}

pub(super) fn nodes(view: &FleetView) -> Table<'_, &NodeResult> {
    Table::new(&view.nodes)
        .column("Node", KEPT, |node| node.name().to_owned())
        .heads_rows()
        .column("Verdict", KEPT, |node| {
            Cell::toned(&node.verdict, Some(tone(node)))
        })
        .right("Pods", 1, |node| part(node.pods_well, node.pods))
        .page_title("Pods well")
        .right("Worst outage", 1, |node| {
            milliseconds_or_dash(node.worst_outage_ms)
        })
        .right("Median", 3, |node| {
            milliseconds_or_dash(node.median_outage_ms)
        })
        .right("Pause", 2, |node| milliseconds_or_dash(node.pause_ms))
        .column("Window", 4, |node| or_dash(node.window.as_ref()))
        .class("mono")
        .marked(|node| Some(tone(node)))
}

pub(super) fn problems(view: &FleetView) -> Table<'_, &ProblemGroup> {
    Table::new(&view.problems)
        .column("Severity", KEPT, |group| group.severity.clone())
        .column("Code", KEPT, |group| {
            Cell::from(&group.code).on_page(html! { code { (escape(&group.code)) } })
        })
        .heads_rows()
        .right("Nodes", KEPT, |group| group.nodes.len())
        .only_on(Medium::Terminal)
        .right("Count", 2, |group| group.count)
        .page_title("Number")
        .column("Nodes", KEPT, |group| {
            format!(
                "{}: {}",
                count(group.nodes.len(), "node"),
                join(&group.nodes, ", ")
            )
        })
        .only_on(Medium::Page)
        .column("Example", 1, |group| {
            let node = group.nodes.first().map(String::as_str);
            let text = format!("{}: {}", node.unwrap_or_default(), group.example);
            Cell::from(text).on_page(html! { (escape(&group.example)) })
        })
}

pub(super) fn drivers(view: &FleetView) -> Table<'_, &DriverChange> {
    Table::new(&view.drivers)
        .column("Driver", KEPT, |change| change.driver.clone())
        .heads_rows()
        .column("Before", KEPT, |change| change.before.clone())
        .column("After", KEPT, |change| {
            change.after.clone().unwrap_or_else(|| "missing".to_owned())
        })
        .right("NICs", 1, |change| change.nics)
        .right("Nodes", 1, |change| {
            let names = escape(&join(&change.nodes, ", "));
            Cell::from(change.nodes.len()).on_page(html! { (names) })
        })
        .marked(|change| change.after.is_none().then_some(Tone::Bad))
}

/// The verdict over all nodes.
pub(in crate::report) fn verdict(view: &FleetView) -> LastLine {
    let (words, tone) = sentence(view);
    LastLine::new(words, tone == Tone::Good)
}

pub(super) fn sentence(view: &FleetView) -> (String, Tone) {
    let well = view.nodes.iter().filter(|node| node.is_well()).count();
    let total = view.nodes.len();
    if well == total && total > 0 && view.unread == 0 {
        return (format!("{}: all well", count(total, "node")), Tone::Good);
    }
    let mut others: Vec<String> = view
        .verdicts
        .iter()
        .filter(|(word, _)| !matches!(word.as_str(), "well" | "OK"))
        .map(|(word, number)| format!("{number} {word}"))
        .collect();
    if view.unread > 0 {
        others.push(format!("{} not read", count(view.unread, "file")));
    }
    let text = format!(
        "{} of {}: well; {}",
        well,
        count(total, "node"),
        join(&others, ", ")
    );
    (text, Tone::Bad)
}
