//! The merged documents as tables, for the terminal and the page.

use maud::html;

use super::{DriverChange, FleetView, NodeResult, ProblemGroup};
use crate::report::screen::LastLine;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, KEPT, Medium, Table};
use crate::report::text::{count, escape, join, milliseconds_or_dash, or_dash, part};

/// As many nodes as a terminal shows one by one, and as many as one line names.
const FEW: usize = 20;
const NAMED: usize = 5;

/// The first of these names, and how many more there are.
fn first_of(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names
        .by_ref()
        .take(NAMED)
        .map(|name| escape(name.as_ref()))
        .collect();
    match names.count() {
        0 => join(first, ", "),
        more => format!("{} and {more} more", join(first, ", ")),
    }
}

/// Nodes, problems and drivers, each as a table; of many nodes, those that are not well.
pub(in crate::report) fn text(view: &FleetView, style: Style) -> String {
    let well = view.nodes.iter().filter(|node| node.is_well()).count();
    let is_short = style.is_verbose() || view.nodes.len() <= FEW;
    let (listed, rest) = if is_short {
        (view.nodes.as_slice(), String::new())
    } else {
        // The last ones.
        let (others, _) = view.nodes.split_at(view.nodes.len() - well);
        let rest = format!(
            "{}: well. To list them too, use `-v`\n",
            count(well, "node")
        );
        (others, if well == 0 { String::new() } else { rest })
    };
    let tables = [
        nodes(listed).text(style) + &rest,
        problems(view).text(style),
        drivers(view).text(style),
    ];
    let tables: Vec<String> = tables.into_iter().filter(|text| !text.is_empty()).collect();
    tables.join("\n")
}

fn tone(node: &NodeResult) -> Tone {
    match node.verdict.as_str() {
        _ if node.is_well() => Tone::Good,
        "nothing-lost" | "restored" | "selection-restored" | "selection-well" => Tone::Warning,
        _ => Tone::Bad,
    }
}

pub(super) fn nodes(nodes: &[NodeResult]) -> Table<'_, &NodeResult> {
    Table::new(nodes)
        .column("Node", KEPT, |node| node.name().to_owned())
        .heads_rows()
        .column("Verdict", KEPT, |node| {
            Cell::toned(&node.verdict, Some(tone(node)))
        })
        .right("Pods", 1, |node| {
            let pods = node.pods_well.zip(node.pods);
            or_dash(pods.map(|(well, all)| part(well, all)))
        })
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
        .column("Nodes", KEPT, |group| first_of(&group.nodes))
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
        .column("Example", 1, |group| group.example.clone())
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
    let mut text = format!(
        "{} of {}: well; {}",
        well,
        count(total, "node"),
        join(&others, ", ")
    );
    if well < total {
        let others = view.nodes.iter().filter(|node| !node.is_well());
        let names = first_of(others.map(NodeResult::name));
        text = format!("{text}: {names}");
    }
    (text, Tone::Bad)
}
