//! Answers for people: one table a command, and problems one to a line.

use std::io::{self, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use jiff::Timestamp;

use super::view::{Document, Extra, KeptView, PodView};
use super::{Style, generations, hold, paint, prospect, screen, window};
use crate::model::{InterfaceView, Problem, Severity, State};

/// Writes the answer.
pub(super) fn answer(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match &document.extra {
        Some(Extra::Status(view)) => return screen::status(document, view, out),
        Some(Extra::Show(view)) => {
            return document.pods.iter().try_for_each(|pod| screen::pod(pod, view, out));
        }
        Some(Extra::Report(view)) if document.command == "report" || !style.quiet => {
            return window::report(view, style, out);
        }
        _ if style.quiet => {}
        Some(Extra::Window(view)) => return hold::answer(document.command, view, out),
        Some(Extra::Windows(all)) => return window::list(all, style, out),
        Some(Extra::Generations(all)) => return generations::list(all, style, out),
        Some(Extra::Kept(kept)) if document.command == "prune" => {
            let failed = document.exit != 0 && kept.removed.is_empty();
            return if failed { Ok(()) } else { generations::removed(kept, out) };
        }
        _ => {}
    }
    match document.command {
        // Without a window there is nothing to tell.
        "upgrade" if document.exit == 0 => prospect(&document.node.steps, &document.pods, out),
        "report" | "status" | "upgrade" => Ok(()),
        "plan" | "diff" if document.exit != 0 && document.pods.is_empty() => Ok(()),
        "plan" | "diff" => {
            steps(document, out)?;
            summary(document, out)
        }
        _ if style.quiet => Ok(()),
        // A command that could not begin has found nothing, not even that there is nothing.
        _ if document.exit != 0 && document.pods.is_empty() => Ok(()),
        _ => {
            if style.verbose {
                steps(document, out)?;
            }
            table(document, style, out)?;
            summary(document, out)
        }
    }
}

/// Writes the problems that the user should see.
pub(super) fn problems(document: &Document, style: Style, talk: &mut dyn Write) -> io::Result<()> {
    let least = if style.quiet { Severity::Error } else { Severity::Info };
    let told: &[Problem] = match &document.extra {
        // The report of a window has them.
        Some(Extra::Report(view)) if !style.quiet => &view.window.problems,
        _ => &[],
    };
    let is_to_tell = |problem: &&Problem| problem.severity >= least && !told.contains(problem);
    for problem in document.problems.iter().filter(is_to_tell) {
        let (word, color) = match problem.severity {
            Severity::Error => ("error", "31"),
            Severity::Warning => ("warning", "33"),
            Severity::Info => ("note", "36"),
        };
        writeln!(talk, "{}: {problem}", paint(word, color, style))?;
    }
    Ok(())
}

fn steps(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    if !document.node.steps.is_empty() {
        writeln!(out, "host:")?;
        document.node.steps.iter().try_for_each(|step| writeln!(out, "  {step}"))?;
    }
    for pod in document.pods.iter().filter(|pod| !pod.steps.is_empty()) {
        writeln!(out, "pod {}:", title(pod))?;
        pod.steps.iter().try_for_each(|step| writeln!(out, "  {step}"))?;
    }
    Ok(())
}

pub(super) fn title(pod: &PodView) -> String {
    pod.info.title()
}

fn table(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if document.pods.is_empty() {
        return Ok(());
    }
    let pods = &document.pods;
    let (head, rows): (&[&str], Vec<_>) = match document.command {
        "restore" => {
            (&["POD", "BEFORE", "AFTER", "MAC", "ADDRESSES", "STATE"], pods.iter().map(restore_row).collect())
        }
        "verify" => (
            &["POD", "INTERFACE", "GATEWAY", "ANSWERED BY", "ROUND TRIP", "STATE"],
            pods.iter().flat_map(verify_rows).collect(),
        ),
        "list" => (
            &["POD", "INTERFACE", "ON", "MAC", "ADDRESSES", "GATEWAY", "SEEN", "STATE"],
            pods.iter().map(stored_row).collect(),
        ),
        _ => (
            &["POD", "INTERFACE", "ON", "MAC", "ADDRESSES", "GATEWAY", "STATE"],
            pods.iter().map(pod_row).collect(),
        ),
    };
    let mut table = new_table(style, head);
    table.add_rows(rows);
    writeln!(out, "{table}")
}

/// A table with nothing but its head.
pub(super) fn new_table(style: Style, head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(head.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    table
}

fn each(pod: &PodView, text: impl Fn(&InterfaceView) -> String) -> String {
    let lines: Vec<String> = pod.interfaces.iter().map(text).collect();
    if lines.is_empty() { "-".to_owned() } else { lines.join("\n") }
}

pub(super) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

pub(super) fn list_or_dash<T: ToString>(items: &[T], separator: &str) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(separator) }
}

fn state_cell(state: State) -> Cell {
    Cell::new(state).fg(if state.is_good() { Color::Green } else { Color::Red })
}

fn pod_row(pod: &PodView) -> Vec<Cell> {
    vec![
        Cell::new(title(pod)),
        Cell::new(each(pod, |i| i.name.to_string())),
        Cell::new(each(pod, |i| or_dash(i.parent.as_ref()))),
        Cell::new(each(pod, |i| or_dash(i.mac))),
        Cell::new(each(pod, |i| list_or_dash(&i.addresses, ", "))),
        Cell::new(each(pod, |i| list_or_dash(&i.gateways, ", "))),
        state_cell(pod.state),
    ]
}

fn stored_row(pod: &PodView) -> Vec<Cell> {
    let mut row = pod_row(pod);
    let seen = pod.seen.as_deref().and_then(|seen| seen.parse::<Timestamp>().ok());
    row.insert(row.len() - 1, Cell::new(or_dash(seen.map(|seen| since(seen, Timestamp::now())))));
    row
}

/// How long ago something was, in its largest units; a time to come, by a clock that was set back, as it is.
fn since(then: Timestamp, now: Timestamp) -> String {
    let Ok(seconds) = u64::try_from(now.as_second() - then.as_second()) else { return then.to_string() };
    let unit = match seconds {
        0..120 => 1,
        120..7200 => 60,
        7200..172_800 => 3600,
        _ => 86400,
    };
    format!("{} ago", screen::ago(seconds / unit * unit))
}

fn restore_row(pod: &PodView) -> Vec<Cell> {
    let names =
        |list: &Option<Vec<_>>| list.as_deref().map_or_else(|| "-".to_owned(), |l| list_or_dash(l, ", "));
    let (before, after) = (names(&pod.before), names(&pod.after));
    vec![
        Cell::new(title(pod)),
        Cell::new(before),
        Cell::new(after),
        Cell::new(each(pod, |i| or_dash(i.mac))),
        Cell::new(each(pod, |i| list_or_dash(&i.addresses, ", "))),
        state_cell(pod.state),
    ]
}

fn verify_rows(pod: &PodView) -> Vec<Vec<Cell>> {
    if pod.gateways.is_empty() {
        let blank = || Cell::new("-");
        return vec![vec![Cell::new(title(pod)), blank(), blank(), blank(), blank(), state_cell(pod.state)]];
    }
    let row = |gateway: &super::GatewayView| {
        let state = match gateway.reachable {
            Some(true) => State::Reachable,
            Some(false) => State::Unreachable,
            None => State::Unknown,
        };
        vec![
            Cell::new(title(pod)),
            Cell::new(&gateway.dev),
            Cell::new(gateway.address),
            Cell::new(or_dash(gateway.lladdr)),
            Cell::new(or_dash(gateway.rtt_us.map(window::milliseconds))),
            state_cell(state),
        ]
    };
    pod.gateways.iter().map(row).collect()
}

fn summary(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let count = |wanted: fn(State) -> bool| document.pods.iter().filter(|pod| wanted(pod.state)).count();
    let total = document.pods.len();
    let good = count(State::is_good);
    let words = match document.command {
        "snapshot" => {
            let degraded = match count(|state| state == State::Degraded) {
                0 => String::new(),
                kept => format!(", {kept} degraded: their good checkpoints are kept"),
            };
            let generation = match &document.extra {
                Some(Extra::Kept(KeptView { generation: Some(number), .. })) => {
                    format!("; this is generation {number}")
                }
                Some(Extra::Kept(KeptView { same_as: Some(number), .. })) => {
                    format!("; the same as generation {number}")
                }
                _ => String::new(),
            };
            format!("{good} of {total} pods written down{degraded}{generation}")
        }
        "list" => format!("{total} checkpoints"),
        "restore" => {
            let restored = count(|state| state == State::Restored);
            let intact = count(|state| state == State::InSync);
            let host =
                document.node.state.map_or_else(String::new, |state| match document.node.steps.len() {
                    0 => format!("host {state}; "),
                    steps => format!("host {state} in {steps} steps; "),
                });
            let lost = total - good;
            format!("{host}{restored} of {total} pods restored, {intact} needed nothing, {lost} not restored")
        }
        "import" => {
            let taken = count(|state| matches!(state, State::Imported | State::Unchanged));
            let gone = count(|state| state == State::Gone);
            let kept = count(|state| state == State::Kept);
            format!(
                "{taken} of {total} checkpoints imported, {kept} known better, {gone} of pods that are gone, {} \
                 not usable",
                total - good
            )
        }
        "verify" => format!("{good} of {total} pods reach their gateways"),
        _ => {
            let steps =
                document.node.steps.len() + document.pods.iter().map(|pod| pod.steps.len()).sum::<usize>();
            if steps == 0 { "nothing to do".to_owned() } else { format!("{steps} steps") }
        }
    };
    writeln!(out, "{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_their_largest_units() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let told = |then: &str| since(then.parse().unwrap(), now);
        assert_eq!(told("2026-11-21T11:59:59Z"), "1s ago");
        assert_eq!(told("2026-11-21T11:56:59Z"), "3m ago");
        assert_eq!(told("2026-11-20T09:59:59Z"), "1day 2h ago");
        assert_eq!(told("2026-11-18T11:00:00Z"), "3days ago");
        assert_eq!(told("2026-11-21T12:00:01Z"), "2026-11-21T12:00:01Z", "a clock that was set back");
    }
}
