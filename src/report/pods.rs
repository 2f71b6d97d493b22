//! Tables of pods. What needs attention is listed; pods that are well only with `-v` and `-o wide`.

use std::io::{self, Write};

use jiff::Timestamp;

use super::style::{Style, Tone};
use super::table::{self, Cell, Column, KEPT, WIDE};
use super::text::{ago, duration, list_or_dash, natural, or_dash};
use super::view::{Document, PodView};
use crate::model::{GatewayAnswer, Interface, PodInfo, State};

/// The pods as people look for them: by namespace and name, then by id.
pub(super) fn sorted(pods: &[PodView]) -> Vec<&PodView> {
    let mut sorted: Vec<&PodView> = pods.iter().collect();
    sorted.sort_by(|a, b| by_name(&a.info, &b.info));
    sorted
}

/// The order of [`sorted`].
pub(super) fn by_name(a: &PodInfo, b: &PodInfo) -> std::cmp::Ordering {
    natural(&a.title(), &b.title()).then_with(|| natural(a.id.as_str(), b.id.as_str()))
}

/// The table of a command.
pub(super) fn table(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut pods = sorted(&document.pods);
    if !style.lists_all() && document.command != "list" {
        pods.retain(|pod| !pod.state.is_good());
    }
    match document.command {
        "restore" => table::write(&restored(), &pods, style, out),
        "plan" | "diff" => table::write(&drifted(), &pods, style, out),
        "verify" => {
            let rows: Vec<_> = pods.iter().flat_map(|pod| asked(pod, style)).collect();
            table::write(&gateways(), &rows, style, out)
        }
        _ => {
            let rows: Vec<_> = pods
                .iter()
                .flat_map(|pod| attached(pod, style.now))
                .collect();
            table::write(&stored(), &rows, style, out)
        }
    }
}

/// One pod a line.
pub(super) fn names(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    sorted(&document.pods)
        .into_iter()
        .try_for_each(|pod| writeln!(out, "{}", super::text::escape(&pod.info.title())))
}

fn state(state: State) -> Cell {
    Cell::toned(state, Some(tone(state)))
}

/// How good or bad a pod's state is.
pub(super) fn tone(state: State) -> Tone {
    match state {
        State::Unknown | State::Stale => Tone::Warning,
        state if state.is_good() => Tone::Good,
        _ => Tone::Bad,
    }
}

/// A pod with one of its interfaces.
struct Attached<'a> {
    pod: &'a PodView,
    interface: Option<&'a Interface>,
    now: Timestamp,
}

/// One row an interface.
fn attached(pod: &PodView, now: Timestamp) -> Vec<Attached<'_>> {
    let row = |interface| Attached {
        pod,
        interface,
        now,
    };
    if pod.interfaces.is_empty() {
        return vec![row(None)];
    }
    pod.interfaces
        .iter()
        .map(|interface| row(Some(interface)))
        .collect()
}

impl Attached<'_> {
    /// How long ago a snapshot confirmed the checkpoint.
    fn verified(&self) -> Option<String> {
        let seen = self.pod.seen.as_deref()?.parse().ok()?;
        Some(ago(seen, self.now))
    }

    fn cell<T: ToString>(&self, value: impl Fn(&Interface) -> T) -> Cell {
        Cell::from(or_dash(self.interface.map(value)))
    }
}

fn stored<'a>() -> [Column<Attached<'a>>; 12] {
    [
        Column::new("POD", KEPT, |row| Cell::from(row.pod.info.title())),
        Column::new("INTERFACE", 1, |row| row.cell(|i| i.name.clone())),
        Column::new("KIND", WIDE, |row| row.cell(|i| i.kind.clone())),
        Column::new("PARENT", 4, |row| row.cell(|i| or_dash(i.parent.as_ref()))),
        Column::new("MAC", 5, |row| row.cell(|i| or_dash(i.mac))),
        Column::right("MTU", WIDE, |row| row.cell(|i| or_dash(i.mtu))),
        Column::new("ADDRESSES", 2, |row| {
            row.cell(|i| list_or_dash(&i.addresses))
        }),
        Column::new("GATEWAY", 6, |row| row.cell(|i| list_or_dash(&i.gateways))),
        Column::new("VERIFIED", 3, |row| Cell::from(or_dash(row.verified()))),
        Column::new("ID", WIDE, |row| Cell::from(&row.pod.info.id)),
        Column::new("NETNS", WIDE, |row| {
            Cell::from(or_dash(row.pod.netns.as_ref()))
        }),
        Column::new("STATE", KEPT, |row| state(row.pod.state)),
    ]
}

fn restored<'a>() -> [Column<&'a PodView>; 9] {
    fn each(pod: &PodView, value: impl Fn(&Interface) -> String) -> Cell {
        let values: Vec<String> = pod.interfaces.iter().map(value).collect();
        Cell::from(list_or_dash(&values))
    }
    [
        Column::new("POD", KEPT, |pod| Cell::from(pod.info.title())),
        Column::new("BEFORE", 2, |pod| {
            Cell::from(or_dash(pod.before.as_deref().map(list_or_dash)))
        }),
        Column::new("AFTER", 1, |pod| {
            Cell::from(or_dash(pod.after.as_deref().map(list_or_dash)))
        }),
        Column::right("STEPS", 4, |pod| Cell::from(pod.steps.len())),
        Column::new("MAC", 5, |pod| each(pod, |i| or_dash(i.mac))),
        Column::new("ADDRESSES", 3, |pod| {
            each(pod, |i| list_or_dash(&i.addresses))
        }),
        Column::new("ID", WIDE, |pod| Cell::from(&pod.info.id)),
        Column::new("NETNS", WIDE, |pod| Cell::from(or_dash(pod.netns.as_ref()))),
        Column::new("STATE", KEPT, |pod| state(pod.state)),
    ]
}

fn drifted<'a>() -> [Column<&'a PodView>; 7] {
    [
        Column::new("POD", KEPT, |pod| Cell::from(pod.info.title())),
        Column::new("INTERFACE", 2, |pod| {
            let names: Vec<_> = pod.interfaces.iter().map(|i| &i.name).collect();
            Cell::from(list_or_dash(&names))
        }),
        Column::new("ADDRESSES", 3, |pod| {
            let addresses = pod.interfaces.iter().flat_map(|i| &i.addresses);
            Cell::from(list_or_dash(&addresses.collect::<Vec<_>>()))
        }),
        Column::right("STEPS", 1, |pod| Cell::from(pod.steps.len())),
        Column::new("ID", WIDE, |pod| Cell::from(&pod.info.id)),
        Column::new("NETNS", WIDE, |pod| Cell::from(or_dash(pod.netns.as_ref()))),
        Column::new("STATE", KEPT, |pod| state(pod.state)),
    ]
}

/// A pod with one of its gateways.
type Asked<'a> = (&'a PodView, Option<&'a GatewayAnswer>);

/// One row for each gateway; for a pod with a problem only the gateways that did not answer.
fn asked(pod: &PodView, style: Style) -> Vec<Asked<'_>> {
    let listed = |gateway: &&GatewayAnswer| style.lists_all() || gateway.reachable != Some(true);
    let rows: Vec<Asked<'_>> = pod
        .gateways
        .iter()
        .filter(listed)
        .map(|gateway| (pod, Some(gateway)))
        .collect();
    if rows.is_empty() {
        vec![(pod, None)]
    } else {
        rows
    }
}

fn gateways<'a>() -> [Column<Asked<'a>>; 8] {
    fn of<T: ToString>(row: &Asked<'_>, value: impl Fn(&GatewayAnswer) -> T) -> Cell {
        Cell::from(or_dash(row.1.map(value)))
    }
    [
        Column::new("POD", KEPT, |row| Cell::from(row.0.info.title())),
        Column::new("INTERFACE", 2, |row| of(row, |g| g.dev.clone())),
        Column::new("GATEWAY", 1, |row| of(row, |g| g.address)),
        Column::new("ANSWERED BY", 4, |row| of(row, |g| or_dash(g.lladdr))),
        Column::right("ROUND TRIP", 3, |row| {
            of(row, |g| or_dash(g.rtt_us.map(round_trip)))
        }),
        Column::new("ID", WIDE, |row| Cell::from(&row.0.info.id)),
        Column::new("NETNS", WIDE, |row| {
            Cell::from(or_dash(row.0.netns.as_ref()))
        }),
        Column::new("STATE", KEPT, |row| {
            state(
                row.1
                    .map_or(row.0.state, |gateway| match gateway.reachable {
                        Some(true) => State::Reachable,
                        Some(false) => State::Unreachable,
                        None => State::Unknown,
                    }),
            )
        }),
    ]
}

/// A round trip in words.
pub(super) fn round_trip(us: u64) -> String {
    duration(std::time::Duration::from_micros(us))
}
