//! Tables of pods. What needs attention is listed; pods that are well only with `-v` and `-o wide`.

use jiff::Timestamp;

use super::style::{Style, Tone};
use super::table::{self, Cell, KEPT, WIDE};
use super::text::{ago, duration, lines, list_or_dash, natural, or_dash};
use super::view::{Document, PodView};
use crate::model::{
    GatewayAnswer, IfName, Interface, PodId, PodInfo, PodSummary, State, TargetAnswer,
};

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

type Column<'a> = table::Column<Row<'a>>;

/// A row: a pod, with one of its interfaces, gateways or targets in tables of those.
struct Row<'a> {
    pod: &'a PodView,
    interface: Option<&'a Interface>,
    gateway: Option<&'a GatewayAnswer>,
    target: Option<&'a TargetAnswer>,
}

/// The table of a command.
pub(super) fn table(document: &Document, style: Style) -> String {
    let mut pods = sorted(&document.pods);
    if !style.lists_all() && document.command != "list" {
        pods.retain(|pod| !pod.state.is_good());
    }
    let host = host(document);
    if document.command == "verify" && (style.lists_all() || !host.state.is_good()) {
        pods.insert(0, &host);
    }
    let pods = pods.into_iter();
    let (columns, rows): (_, Vec<Row<'_>>) = match document.command {
        "restore" => (restored(), pods.map(Row::new).collect()),
        "plan" | "diff" => (drifted(), pods.map(Row::new).collect()),
        "verify" => (
            probed(document.pods.iter().any(|pod| !pod.targets.is_empty())),
            pods.flat_map(|pod| asked_of(pod, style)).collect(),
        ),
        _ => (stored(style.now), pods.flat_map(interfaces).collect()),
    };
    table::text(&columns, &rows, style)
}

/// The host's gateways in the form of a pod's.
fn host(document: &Document) -> PodView {
    let node = &document.node;
    let id = PodId::from_text("host");
    let info = PodInfo {
        name: Some("(host)".into()),
        ..PodInfo::nameless(&id)
    };
    let state = node.state.unwrap_or(State::NoGateway);
    PodView {
        gateways: node.gateways.clone(),
        ..PodView::new(PodSummary::bare(&info, None), state)
    }
}

/// One pod a line.
pub(super) fn names(document: &Document) -> String {
    let pods = sorted(&document.pods).into_iter();
    lines(pods.map(|pod| super::text::escape(&pod.info.title())))
}

/// How good or bad a pod's state is.
pub(super) fn tone(state: State) -> Tone {
    match state {
        State::Unknown | State::Stale => Tone::Warning,
        state if state.is_good() => Tone::Good,
        _ => Tone::Bad,
    }
}

impl<'a> Row<'a> {
    fn new(pod: &'a PodView) -> Self {
        Self {
            pod,
            interface: None,
            gateway: None,
            target: None,
        }
    }

    /// A fact of the interface.
    fn of<T: ToString>(&self, value: impl Fn(&Interface) -> T) -> String {
        or_dash(self.interface.map(value))
    }

    /// A fact of the gateway.
    fn by<T: ToString>(&self, value: impl Fn(&GatewayAnswer) -> T) -> String {
        or_dash(self.gateway.map(value))
    }

    /// A fact of every interface of the pod.
    fn each<T: ToString>(&self, value: impl Fn(&'a Interface) -> T) -> String {
        list_or_dash(self.pod.interfaces.iter().map(value))
    }

    /// Which gateway or target.
    fn destination(&self) -> String {
        let target = self
            .target
            .map(|one| format!("{} {}", one.kind, one.target));
        target.unwrap_or_else(|| self.by(|gateway| gateway.address))
    }

    fn round_trip(&self) -> String {
        let of_gateway = self.gateway.and_then(|gateway| gateway.rtt_us);
        let us = of_gateway.or_else(|| self.target.and_then(|target| target.rtt_us));
        or_dash(us.map(round_trip))
    }

    /// The state of the gateway or target, or else of the pod.
    fn state(&self) -> State {
        let of_gateway = self.gateway.map(|gateway| gateway.reachable);
        match of_gateway.or_else(|| self.target.map(|target| Some(target.reachable))) {
            None => self.pod.state,
            Some(Some(true)) => State::Reachable,
            Some(Some(false)) => State::Unreachable,
            Some(None) => State::Unknown,
        }
    }
}

/// One row an interface.
fn interfaces(pod: &PodView) -> Vec<Row<'_>> {
    let row = |interface| Row {
        interface: Some(interface),
        ..Row::new(pod)
    };
    or_alone(pod, pod.interfaces.iter().map(row).collect())
}

/// One row for each gateway and target; for a pod with a problem only those that did not answer.
fn asked_of(pod: &PodView, style: Style) -> Vec<Row<'_>> {
    let gateways = pod.gateways.iter().map(|gateway| Row {
        gateway: Some(gateway),
        ..Row::new(pod)
    });
    let targets = pod.targets.iter().map(|target| Row {
        target: Some(target),
        ..Row::new(pod)
    });
    let is_listed = |row: &Row<'_>| style.lists_all() || row.state() != State::Reachable;
    or_alone(pod, gateways.chain(targets).filter(is_listed).collect())
}

/// The rows, or if there are none, one of the pod alone.
fn or_alone<'a>(pod: &'a PodView, mut rows: Vec<Row<'a>>) -> Vec<Row<'a>> {
    if rows.is_empty() {
        rows.push(Row::new(pod));
    }
    rows
}

/// These columns between those that every table of pods has.
fn framed<const N: usize>(columns: [Column<'_>; N]) -> Vec<Column<'_>> {
    let title = Column::new("POD", KEPT, |row| row.pod.info.title());
    let last = [
        Column::new("ID", WIDE, |row| row.pod.info.id.to_string()),
        Column::new("NETNS", WIDE, |row| or_dash(row.pod.netns.as_ref())),
        Column::new("STATE", KEPT, |row| {
            Cell::toned(row.state(), Some(tone(row.state())))
        }),
    ];
    [title].into_iter().chain(columns).chain(last).collect()
}

fn stored<'a>(now: Timestamp) -> Vec<Column<'a>> {
    // How long ago a snapshot confirmed the checkpoint.
    let verified = move |pod: &PodView| Some(ago(pod.seen.as_deref()?.parse().ok()?, now));
    framed([
        Column::new("INTERFACE", 1, |row| row.of(|i| i.name.clone())),
        Column::new("KIND", WIDE, |row| row.of(|i| i.kind.clone())),
        Column::new("PARENT", 4, |row| row.of(|i| or_dash(i.parent.as_ref()))),
        Column::new("MAC", 5, |row| row.of(|i| or_dash(i.mac))),
        Column::right("MTU", WIDE, |row| row.of(|i| or_dash(i.mtu))),
        Column::new("ADDRESSES", 2, |row| row.of(|i| list_or_dash(&i.addresses))),
        Column::new("GATEWAY", 6, |row| row.of(|i| list_or_dash(&i.gateways))),
        Column::new("VERIFIED", 3, move |row| or_dash(verified(row.pod))),
    ])
}

fn restored<'a>() -> Vec<Column<'a>> {
    fn names(names: Option<&Vec<IfName>>) -> String {
        or_dash(names.map(list_or_dash))
    }
    framed([
        Column::new("BEFORE", 2, |row| names(row.pod.before.as_ref())),
        Column::new("AFTER", 1, |row| names(row.pod.after.as_ref())),
        Column::right("STEPS", 4, |row| row.pod.steps.len()),
        Column::new("MAC", 5, |row| row.each(|i| or_dash(i.mac))),
        Column::new("ADDRESSES", 3, |row| {
            row.each(|i| list_or_dash(&i.addresses))
        }),
    ])
}

fn drifted<'a>() -> Vec<Column<'a>> {
    framed([
        Column::new("INTERFACE", 2, |row| row.each(|i| &i.name)),
        Column::new("ADDRESSES", 3, |row| {
            list_or_dash(row.pod.interfaces.iter().flat_map(|i| &i.addresses))
        }),
        Column::right("STEPS", 1, |row| row.pod.steps.len()),
    ])
}

fn probed<'a>(has_targets: bool) -> Vec<Column<'a>> {
    let destination = if has_targets {
        "DESTINATION"
    } else {
        "GATEWAY"
    };
    framed([
        Column::new("INTERFACE", 2, |row| row.by(|g| g.dev.clone())),
        Column::new(destination, 1, Row::destination),
        Column::new("ANSWERED BY", 4, |row| row.by(|g| or_dash(g.lladdr))),
        Column::right("ROUND TRIP", 3, Row::round_trip),
    ])
}

/// A round trip in words.
pub(super) fn round_trip(us: u64) -> String {
    duration(std::time::Duration::from_micros(us))
}
