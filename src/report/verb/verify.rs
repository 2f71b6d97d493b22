//! `verify`: which gateways and targets answered.

use super::pods::{self, PodRow, count_in, framed, listed, or_none};
use crate::gateways::{Verified, VerifiedPod};
use crate::model::{GatewayAnswer, PodId, PodInfo, PodSummary, State};
use crate::report::answered::{Answered, answers};
use crate::report::document::{Document, NodeView, PodView};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{join, or_dash, others, part_of, pod_noun, round_trip, verb};
use crate::window::event::Reached;

/// The document.
pub(crate) fn verify(verified: Verified, is_selection: bool) -> Document {
    let problems = verified.all_problems();
    let pod = |one: VerifiedPod| PodView {
        gateways: one.answers.gateways,
        targets: one.targets,
        ..PodView::new(one.pod, one.answers.state.into())
    };
    let node = NodeView {
        state: Some(verified.host.state.into()),
        gateways: verified.host.gateways,
        ..NodeView::of(&verified.node)
    };
    let document = Document::of(node, verified.pods.into_iter().map(pod), problems);
    Document {
        is_selection,
        ..document.judged()
    }
}

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let host = host(document);
    let mut pods = listed(document, style);
    if style.lists_all() || !host.state.is_good() {
        pods.insert(0, &host);
    }
    let destination = if has_targets(document) {
        "Destination"
    } else {
        "Gateway"
    };
    let rows = pods.into_iter().flat_map(|pod| asked_of(pod, style));
    let table = framed(rows, |table| {
        table
            .column("Interface", 2, |(_, _, one)| {
                or_dash(one.as_ref().and_then(|one| one.dev))
            })
            .column(destination, 1, |(_, _, one)| {
                or_dash(one.as_ref().map(|one| &one.object))
            })
            .column("Answered by", 4, |(_, _, one)| {
                or_dash(one.as_ref().and_then(|one| one.lladdr))
            })
            .right("Round trip", 3, |(_, _, one)| {
                let us = one.as_ref().and_then(|one| one.rtt_us);
                or_dash(us.map(round_trip))
            })
    });
    pods::screen(document, &table.bounded(), words(document), style)
}

fn has_targets(document: &Document) -> bool {
    document.pods.iter().any(|pod| !pod.targets.is_empty())
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

fn state(one: &Answered<'_>) -> State {
    match one.reachable {
        Some(true) => State::Reachable,
        Some(false) if one.has_never => State::NeverAnswered,
        Some(false) => State::Unreachable,
        None => State::Unknown,
    }
}

/// One row for each gateway and target, with its state; for a pod with a problem only those that did not answer.
fn asked_of(pod: &PodView, style: Style) -> impl Iterator<Item = PodRow<'_, Option<Answered<'_>>>> {
    let listed = answers(&pod.gateways, &pod.targets)
        .filter(move |one| style.lists_all() || state(one) != State::Reachable);
    or_none(listed).map(move |one| (pod, one.as_ref().map_or(pod.state, state), one))
}

fn words(document: &Document) -> LastLine {
    let gateways_of_host = &document.node.gateways;
    let names_nothing = gateways_of_host
        .iter()
        .all(|one| one.reachable == Some(true) || one.never_answered)
        && document.pods.iter().all(|pod| pod.state.is_good());
    let reached = Reached {
        host: gateways_of_host.clone(),
        total: document.pods.len(),
        reachable: count_in(document, |state| state == State::Reachable),
        without: count_in(document, |state| state == State::NoGateway),
        never: count_in(document, |state| state == State::NeverAnswered),
        unknown: count_in(document, |state| state == State::Unknown),
        has_targets: has_targets(document),
        is_selection: document.is_selection,
    };
    LastLine::new(gateways(&reached), names_nothing)
}

/// Who reaches their gateways, of the host and the pods.
pub(in crate::report) fn gateways(reached: &Reached) -> String {
    let Reached {
        ref host,
        total,
        reachable,
        without,
        never,
        unknown,
        has_targets,
        is_selection,
    } = *reached;
    let bad = total - reachable - without - never - unknown;
    let others = others([
        (without, "without a gateway"),
        (never, "with a gateway that has never answered"),
        (unknown, "unknown"),
        (bad, "unreachable"),
    ]);
    let must_answer = |one: &&GatewayAnswer| !one.never_answered;
    let host: Vec<_> = host.iter().filter(must_answer).collect();
    let is_with_host = !host.is_empty() && host.iter().all(|one| one.reachable == Some(true));
    let number = match is_with_host {
        true if total > 0 => total + 1,
        with_host => reachable + usize::from(with_host),
    };
    let (noun, reach) = (
        verb(number, "its", "their"),
        verb(number, "reaches", "reach"),
    );
    let host = host_gateways(&host).unwrap_or_default();
    let pods = part_of(reachable, total, pod_noun(is_selection));
    let subject = match total {
        0 if is_with_host => "the host".to_owned(),
        _ => format!("{host}{pods}"),
    };
    let what = if has_targets {
        "gateways and targets"
    } else {
        "gateways"
    };
    format!("{subject} {reach} {noun} {what}{others}")
}

/// What precedes the pods in the verdict: the host, if it has gateways.
fn host_gateways(gateways: &[&GatewayAnswer]) -> Option<String> {
    let with = |answer| {
        let some = gateways.iter().filter(move |one| one.reachable == answer);
        join(some.map(|one| one.address), ", ")
    };
    let (silent, unknown) = (with(Some(false)), with(None));
    match (gateways.is_empty(), silent.is_empty(), unknown.is_empty()) {
        (true, _, _) => None,
        (_, false, _) => Some(format!("the host does not reach {silent}; ")),
        (_, _, false) => Some(format!("the host's {unknown} cannot be probed; ")),
        _ => Some("the host and ".to_owned()),
    }
}
