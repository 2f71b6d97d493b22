//! The last line of an answer: the overall result, and the next command.

use std::collections::BTreeSet;

use super::style::Tone;
use super::text::{count, join, others, part};
use super::view::{Document, Extra, KeptView};
use crate::model::problem::{Cause, PlanCause};
use crate::model::{Code, GatewayAnswer, PodId, Problem, State};
use crate::window::event::Reached;

/// The verdict of a command that lists pods.
pub(super) fn of_pods(document: &Document) -> (String, Tone) {
    let words = match document.command {
        "snapshot" => snapshot(document),
        "list" => list(document),
        "restore" => restore(document),
        "import" => import(document),
        "verify" => verify(document),
        _ => plan(document),
    };
    let tone = match document.exit {
        0 => Tone::Good,
        3 => Tone::Warning,
        _ => Tone::Bad,
    };
    (words, tone)
}

fn pods_in(document: &Document, wanted: fn(State) -> bool) -> usize {
    let pods = document.pods.iter();
    pods.filter(|pod| wanted(pod.state)).count()
}

fn snapshot(document: &Document) -> String {
    let good = pods_in(document, State::is_good);
    let degraded = pods_in(document, |state| state == State::Degraded);
    let total = document.pods.len();
    let generation = match &document.extra {
        Some(Extra::Kept(KeptView {
            generation: Some(number),
            ..
        })) => format!(" as generation {number}"),
        Some(Extra::Kept(KeptView {
            same_as: Some(number),
            ..
        })) => format!("; nothing changed since generation {number}"),
        _ => String::new(),
    };
    let others = others([
        (degraded, "degraded"),
        (total - good - degraded, "not saved"),
    ]);
    let next = if degraded > 0 {
        ". Run `netfix restore`"
    } else {
        ""
    };
    format!("{} saved{generation}{others}{next}", part(good, total))
}

fn list(document: &Document) -> String {
    let bad = document.pods.len() - pods_in(document, State::is_good);
    let unreadable = others([(bad, "cannot be read")]);
    format!("{}{unreadable}", count(document.pods.len(), "checkpoint"))
}

fn restore(document: &Document) -> String {
    let steps = || count(document.node.steps.len(), "step");
    let host = match document.node.state {
        Some(State::Restored) => format!("host restored in {}; ", steps()),
        Some(State::Partial) => format!("host partly restored in {}; ", steps()),
        Some(State::Failed) => "host not restored; ".to_owned(),
        _ => String::new(),
    };
    let total = document.pods.len();
    let restored = pods_in(document, |state| state == State::Restored);
    let correct = pods_in(document, |state| state == State::InSync);
    let good = pods_in(document, State::is_good);
    let nothing = if host.is_empty() {
        "; nothing to do"
    } else {
        ""
    };
    if correct == total {
        return format!("{host}{} already correct{nothing}", count(total, "pod"));
    }
    let others = others([
        (correct, "already correct"),
        (good - restored - correct, "gone"),
        (total - good, "not restored"),
    ]);
    format!("{host}{} restored{others}", part(restored, total))
}

fn verify(document: &Document) -> String {
    gateways(&Reached {
        host: document.node.gateways.clone(),
        total: document.pods.len(),
        reachable: pods_in(document, |state| state == State::Reachable),
        without: pods_in(document, |state| state == State::NoGateway),
        unknown: pods_in(document, |state| state == State::Unknown),
        has_targets: document.pods.iter().any(|pod| !pod.targets.is_empty()),
    })
}

/// Who reaches their gateways, of the host and the pods.
pub(super) fn gateways(reached: &Reached) -> String {
    let Reached {
        ref host,
        total,
        reachable,
        without,
        unknown,
        has_targets,
    } = *reached;
    let bad = total - reachable - without - unknown;
    let others = others([
        (without, "without a gateway"),
        (unknown, "unknown"),
        (bad, "unreachable"),
    ]);
    let is_with_host = !host.is_empty() && host.iter().all(|one| one.reachable == Some(true));
    let (noun, verb) = match total {
        1 if !is_with_host => ("its", "reaches"),
        _ => ("their", "reach"),
    };
    let host = host_gateways(host).unwrap_or_default();
    let pods = part(reachable, total);
    let what = if has_targets {
        "gateways and targets"
    } else {
        "gateways"
    };
    format!("{host}{pods} {verb} {noun} {what}{others}")
}

/// What precedes the pods in the verdict: the host, if it has gateways.
fn host_gateways(gateways: &[GatewayAnswer]) -> Option<String> {
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

fn import(document: &Document) -> String {
    let total = document.pods.len();
    let taken = pods_in(document, |state| {
        matches!(state, State::Imported | State::Unchanged)
    });
    let others = others([
        (
            pods_in(document, |state| state == State::Kept),
            "already stored with more detail",
        ),
        (
            pods_in(document, |state| state == State::Gone),
            "of pods that are gone",
        ),
        (total - pods_in(document, State::is_good), "not usable"),
    ]);
    format!("{taken} of {} imported{others}", count(total, "checkpoint"))
}

/// The devices of the host that are missing, and how many pods cannot be planned without them.
fn missing_devices(document: &Document) -> Option<String> {
    let devices: Vec<String> = document
        .problems
        .iter()
        .filter(|problem| matches!(*problem.cause, Cause::Plan(PlanCause::DeviceMissing { .. })))
        .map(|problem| problem.object.to_string())
        .collect();
    let waits = |problem: &&Problem| problem.code() == Code::ParentMissing;
    let waiting: BTreeSet<&PodId> = document
        .problems
        .iter()
        .filter(waits)
        .filter_map(|problem| problem.pod.as_ref())
        .collect();
    let (are, wait) = (
        if devices.len() == 1 { "is" } else { "are" },
        if waiting.len() == 1 { "waits" } else { "wait" },
    );
    let pods = count(waiting.len(), "pod");
    (!devices.is_empty()).then(|| {
        let devices = devices.join(", ");
        format!("the host's {devices} {are} missing; {pods} {wait} for it")
    })
}

fn plan(document: &Document) -> String {
    let total = document.pods.len();
    let host = document.node.steps.len();
    let pods = document.pods.iter().map(|pod| pod.steps.len());
    let pods: Vec<usize> = pods.filter(|steps| *steps > 0).collect();
    let steps: usize = pods.iter().sum();
    let unknown = others([(
        pods_in(document, |state| {
            !state.is_good() && !matches!(state, State::Drifted | State::Degraded)
        }),
        "not compared",
    )]);
    let missing = missing_devices(document);
    let is_renamed = |problem: &&Problem| problem.code() == Code::DeviceRenamed;
    let renamed = document.problems.iter().find(is_renamed);
    let renamed = renamed.map(|problem| problem.object.to_string());
    if host + steps == 0 {
        return match document.exit {
            _ if missing.is_some() => format!("cannot plan: {}", missing.unwrap_or_default()),
            _ if renamed.is_some() => format!(
                "nothing to restore, but the host's {} has another name{unknown}",
                renamed.unwrap_or_default()
            ),
            0 => format!(
                "nothing to do: the host and {} are correct{unknown}",
                count(total, "pod")
            ),
            _ => format!("no step would help{unknown}"),
        };
    }
    let missing = missing.map(|missing| format!("; {missing}"));
    let unknown = unknown + &missing.unwrap_or_default();
    let host = match host {
        0 => String::new(),
        host => format!("host: {}; ", count(host, "step")),
    };
    let listed = if pods.len() > super::problems::FEW {
        ", listed with -v"
    } else {
        ""
    };
    format!(
        "{host}{}: {}{listed}{unknown}. Run `netfix restore`",
        part(pods.len(), total),
        count(steps, "step"),
    )
}
