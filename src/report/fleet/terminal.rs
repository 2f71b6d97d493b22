//! The merged documents as tables.

use super::super::style::{Style, Tone};
use super::super::table::{self, Cell, Column, KEPT};
use super::super::text::{count, join, milliseconds, or_dash, part};
use super::{DriverChange, FleetView, NodeResult, ProblemGroup};

type NodeColumn = Column<NodeResult>;
type ProblemColumn = Column<ProblemGroup>;
type DriverColumn = Column<DriverChange>;

/// Nodes, problems and drivers, each as a table.
pub(in crate::report) fn text(view: &FleetView, style: Style) -> String {
    let tables = [
        nodes(view, style),
        problems(view, style),
        drivers(view, style),
    ];
    let tables: Vec<String> = tables.into_iter().filter(|text| !text.is_empty()).collect();
    tables.join("\n")
}

fn nodes(view: &FleetView, style: Style) -> String {
    let columns = [
        NodeColumn::new("NODE", KEPT, |node| node.name().to_owned()),
        NodeColumn::new("VERDICT", KEPT, |node| {
            let tone = if node.is_well() {
                Tone::Good
            } else {
                Tone::Bad
            };
            Cell::toned(&node.verdict, Some(tone))
        }),
        NodeColumn::right("PODS", 1, |node| part(node.pods_well, node.pods)),
        NodeColumn::right("WORST OUTAGE", 1, |node| {
            or_dash(node.worst_outage_ms.map(milliseconds))
        }),
        NodeColumn::right("MEDIAN", 3, |node| {
            or_dash(node.median_outage_ms.map(milliseconds))
        }),
        NodeColumn::right("PAUSE", 2, |node| or_dash(node.pause_ms.map(milliseconds))),
        NodeColumn::new("WINDOW", 4, |node| or_dash(node.window.as_ref())),
    ];
    table::text(&columns, &view.nodes, style)
}

fn problems(view: &FleetView, style: Style) -> String {
    let columns = [
        ProblemColumn::new("SEVERITY", KEPT, |group| group.severity.clone()),
        ProblemColumn::new("CODE", KEPT, |group| group.code.clone()),
        ProblemColumn::right("NODES", KEPT, |group| group.nodes.len()),
        ProblemColumn::right("COUNT", 2, |group| group.count),
        ProblemColumn::new("EXAMPLE", 1, |group| {
            let node = group.nodes.first().map(String::as_str);
            format!("{}: {}", node.unwrap_or_default(), group.example)
        }),
    ];
    table::text(&columns, &view.problems, style)
}

fn drivers(view: &FleetView, style: Style) -> String {
    let columns = [
        DriverColumn::new("DRIVER", KEPT, |change| change.driver.clone()),
        DriverColumn::new("BEFORE", KEPT, |change| change.before.clone()),
        DriverColumn::new("AFTER", KEPT, after),
        DriverColumn::right("NICS", 1, |change| change.nics),
        DriverColumn::right("NODES", 1, |change| change.nodes.len()),
    ];
    table::text(&columns, &view.drivers, style)
}

/// The version after the window.
pub(super) fn after(change: &DriverChange) -> String {
    change.after.clone().unwrap_or_else(|| "missing".to_owned())
}

/// The verdict over all nodes.
pub(in crate::report) fn verdict(view: &FleetView, style: Style) -> String {
    let (words, tone) = sentence(view);
    style.paint(&words, tone)
}

pub(super) fn sentence(view: &FleetView) -> (String, Tone) {
    let well = view.nodes.iter().filter(|node| node.is_well()).count();
    let total = view.nodes.len();
    if well == total && total > 0 && view.unread == 0 {
        return (format!("{}: all well", count(total, "node")), Tone::Good);
    }
    let others = view.verdicts.iter();
    let others = others.filter(|(word, _)| !matches!(word.as_str(), "well" | "OK"));
    let mut others: Vec<String> = others
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
