//! What the screens of several commands have in common: tables of pods, and steps. What needs attention is listed; pods that are
//! well only with `-v` and `-o wide`.

use crate::model::{Interface, State};
use crate::report::document::{Document, PodView};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, KEPT, Table, WIDE};
use crate::report::text::{ago, bounded, by_name, escape, join, lines, list_or_dash, or_dash};

/// The pods as people look for them: by namespace and name, then by id.
pub(super) fn sorted(pods: &[PodView]) -> Vec<&PodView> {
    let mut sorted: Vec<&PodView> = pods.iter().collect();
    sorted.sort_by(|a, b| by_name(&a.info, &b.info));
    sorted
}

/// The pods that need attention, or all.
pub(super) fn listed(document: &Document, style: Style) -> Vec<&PodView> {
    let mut pods = sorted(&document.pods);
    pods.retain(|pod| style.lists_all() || !pod.state.is_good());
    pods
}

/// How many pods are in such a state.
pub(super) fn count_in(document: &Document, wanted: fn(State) -> bool) -> usize {
    let pods = document.pods.iter();
    pods.filter(|pod| wanted(pod.state)).count()
}

/// The screen of a command that works on pods: with `-v` the steps, then the table, and a sentence at the end.
pub(super) fn screen<'a, R>(
    document: &'a Document,
    table: &Table<'_, R>,
    last: LastLine,
    style: Style,
) -> Screen<'a> {
    if document.is_refused() || style.is_quiet() {
        return Screen::default();
    }
    let steps = if style.is_verbose() {
        steps(document, style)
    } else {
        String::new()
    };
    Screen::new(steps + &table.text(style), last)
}

/// One pod a line.
pub(super) fn names(document: &Document) -> String {
    let pods = sorted(&document.pods).into_iter();
    lines(pods.map(|pod| escape(&pod.info.title())))
}

/// The steps of the host and of all pods: with `-v` every one.
pub(super) fn steps(document: &Document, style: Style) -> String {
    let pods = sorted(&document.pods).into_iter();
    steps_of_host(document, style) + &join(pods.map(|pod| steps_of_pod(pod, style)), "")
}

/// The steps of the host.
pub(super) fn steps_of_host(document: &Document, style: Style) -> String {
    step_list("host", &document.node.steps, style)
}

fn steps_of_pod(pod: &PodView, style: Style) -> String {
    let title = pod.info.title();
    let head = if title == pod.info.id.as_str() {
        format!("pod {title}")
    } else {
        format!("pod {} ({})", escape(&title), pod.info.id)
    };
    step_list(&head, &pod.steps, style)
}

/// Steps under a line, of what they are.
pub(super) fn step_list(head: &str, steps: &[String], style: Style) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let steps = steps.iter().map(|step| escape(step));
    let steps = if style.is_verbose() {
        steps.collect()
    } else {
        bounded(steps)
    };
    let steps = steps.iter().map(|step| format!("  {step}"));
    format!("{head}:\n{}", lines(steps))
}

/// A row of a table of pods: a part of the pod, and the state of that part.
pub(super) type PodRow<'a, T> = (&'a PodView, State, T);
type PodTable<'a, T> = Table<'a, PodRow<'a, T>>;

/// The table of these rows, with more columns between those that every table of pods has.
pub(super) fn framed<'a, T>(
    rows: impl Iterator<Item = PodRow<'a, T>>,
    more: impl FnOnce(PodTable<'a, T>) -> PodTable<'a, T>,
) -> PodTable<'a, T> {
    more(Table::new(rows).column("Pod", KEPT, |(pod, ..)| pod.info.title()))
        .column("ID", WIDE, |(pod, ..)| pod.info.id.to_string())
        .column("NETNS", WIDE, |(pod, ..)| or_dash(pod.netns.as_ref()))
        .column("State", KEPT, |(_, state, _)| {
            Cell::toned(state, Some(Tone::of(*state)))
        })
}

/// One row a pod.
pub(super) fn whole(pods: Vec<&PodView>) -> impl Iterator<Item = PodRow<'_, ()>> {
    pods.into_iter().map(|pod| (pod, pod.state, ()))
}

/// What is stored of these pods: one row per interface; for a pod without one, a row of its own.
pub(super) fn stored(pods: Vec<&PodView>, style: Style) -> PodTable<'_, Option<&Interface>> {
    // How long ago a snapshot confirmed the checkpoint.
    let verified = move |pod: &PodView| Some(ago(pod.seen.as_deref()?.parse().ok()?, style.now));
    let rows = pods.into_iter().flat_map(|pod| {
        or_none(pod.interfaces.iter()).map(move |interface| (pod, pod.state, interface))
    });
    framed(rows, |table| {
        table
            .column("Interface", 1, |(_, _, i)| or_dash(i.map(|i| &i.name)))
            .column("Kind", WIDE, |(_, _, i)| or_dash(i.map(|i| &i.kind)))
            .column("Parent", 4, |(_, _, i)| {
                or_dash(i.and_then(|i| i.parent.as_ref()))
            })
            .column("MAC", 5, |(_, _, i)| or_dash(i.and_then(|i| i.mac)))
            .right("MTU", WIDE, |(_, _, i)| or_dash(i.and_then(|i| i.mtu)))
            .column("Addresses", 2, |(_, _, i)| {
                list_or_dash(i.iter().flat_map(|i| &i.addresses))
            })
            .column("Gateway", 6, |(_, _, i)| {
                list_or_dash(i.iter().flat_map(|i| &i.gateways))
            })
            .column("Verified", 3, move |(pod, ..)| or_dash(verified(pod)))
    })
}

/// Each item, or if there is none, nothing once: a pod always has a row.
pub(super) fn or_none<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = Option<T>> {
    let mut items = items.peekable();
    let none = items.peek().is_none().then_some(None);
    items.map(Some).chain(none)
}
