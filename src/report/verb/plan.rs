//! `plan` and `diff`: the steps of a restore.

use std::collections::BTreeSet;

use super::pods::{count_in, framed, listed, step_list, steps, steps_of_host, whole};
use crate::model::net::link::nic::present;
use crate::model::problem::{Cause, PlanCause, RestoreCause};
use crate::model::{Code, Exit, Loss, PodId, Problem, State};
use crate::plan::PodVerdict;
use crate::records::lost::Unrestorable;
use crate::records::matched::Matched;
use crate::records::stored::shown;
use crate::report::document::{Document, NodeView, PodView};
use crate::report::problems::FEW;
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{count, list_or_dash, others, part_of, pod_noun, verb};
use crate::situation::{Compared, Situation, refused_of_host};

const DRIFT: u8 = Exit::Drift as u8;

/// The document. With `exit_code`, drift has its own exit code, unless there is an error.
pub(crate) fn drift(seen: Situation, notes: Vec<Problem>, exit_code: bool) -> Document {
    let (surveyed, comparison) = (&seen.surveyed, seen.compared);
    let has_drifted = exit_code && comparison.has_drift();
    let recorded = surveyed.node_state.as_ref();
    let recorded = recorded.map(|recorded| shown(&recorded.stamp()));
    let node = NodeView {
        steps: comparison.host.lines(),
        ..NodeView::recorded(&surveyed.node, recorded)
    };
    let of_host = comparison.host.problems;
    // What the host gets may be what the pods lack.
    let host_is_done = node.steps.is_empty() && !of_host.iter().any(Problem::is_error);
    let mut problems = surveyed.all_problems();
    problems.extend(of_host);
    problems.extend(refused_of_host(surveyed).filter(|_| host_is_done));
    // A restore of what is missing now does not need these, so it would not fail.
    problems.extend(comparison.unsupported.into_iter().map(Problem::demoted));
    let lost = surveyed.lost_pods().into_iter();
    let lost = lost.map(|(pod, lost)| match lost {
        Unrestorable::Unusable => PodView::new(pod, State::Failed),
        Unrestorable::NoCheckpoint => PodView::new(pod, State::NoCheckpoint),
        Unrestorable::CutOff => PodView::new(pod, State::CutOff),
    });
    let mut pods: Vec<PodView> = lost.collect();
    for (matched, compared) in surveyed.matched.iter().zip(comparison.pods) {
        let (view, found) = pod(matched, compared, host_is_done);
        pods.push(view);
        let found = found.into_iter();
        problems.extend(found.map(|problem| problem.of(&matched.info.id)));
    }
    problems.extend(notes);
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let has_errors = problems.iter().any(Problem::is_error);
    let exit = match (surveyed.matched.len(), has_errors, has_drifted) {
        (0, ..) if !surveyed.has_work() && surveyed.is_refused() => Exit::Refused,
        (0, ..) if has_errors || !surveyed.has_work() => Exit::Failed,
        (_, true, _) => Exit::Partly,
        (_, false, true) => Exit::Drift,
        (_, false, false) => Exit::Done,
    };
    Document {
        is_selection: surveyed.is_selection,
        ..Document::of(node, pods, problems).exits(exit)
    }
}

/// A pod that is lost, and gets no step, where the host gets none either, is an error: a restore leaves it so.
fn pod(matched: &Matched, compared: Compared, host_is_done: bool) -> (PodView, Vec<Problem>) {
    let mut view = PodView::new(matched.summary(), State::from(&compared.verdict));
    if let PodVerdict::Unknown(problem) = compared.verdict {
        return (view, vec![problem]);
    }
    view.steps = compared.plan.lines();
    let mut problems = compared.plan.problems;
    let is_planned = !view.steps.is_empty() || problems.iter().any(Problem::is_error);
    if let PodVerdict::Lost(Loss { link, what }) = compared.verdict.clone()
        && host_is_done
        && !is_planned
    {
        problems.push(RestoreCause::StillLost { what }.error(link));
    }
    if let PodVerdict::CutOff { what, .. } = compared.verdict {
        problems.push(what.problem());
    }
    problems.extend(compared.unsupported.into_iter().map(Problem::demoted));
    (view, problems)
}

/// Printed with `--quiet` too: it is what the command is for.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    if document.is_refused() {
        return Screen::default();
    }
    Screen::new(body(document, style), words(document))
}

/// What `plan` and `diff` print: the steps of a few pods, one line for each of many.
fn body(document: &Document, style: Style) -> String {
    let pods = document.pods.iter().filter(|pod| !pod.steps.is_empty());
    let table = table(document, style);
    let is_short = style.is_verbose() || pods.count() <= FEW;
    let missing = match (style.lists_all(), is_short) {
        (true, true) => table + &steps(document, style),
        (true, false) => table + &steps_of_host(document, style),
        (false, true) => steps(document, style),
        (false, false) => steps_of_host(document, style) + &table,
    };
    missing + &step_list("left unchanged", &left(document), style)
}

/// The settings of NICs that differ and that a restore leaves as they are, in the form of the steps that it does not take.
fn left(document: &Document) -> Vec<String> {
    let lines = document.problems.iter().filter_map(|problem| {
        let (then, now, driver) = match &*problem.cause {
            Cause::Plan(PlanCause::SettingChanged { then, now }) => (then, now, None),
            Cause::Plan(
                PlanCause::SettingNotRestored { then, now, driver }
                | PlanCause::SettingNeedsReload { then, now, driver }
                | PlanCause::SettingNeedsDown { then, now, driver }
                | PlanCause::SettingMayReset { then, now, driver },
            ) => (then, now, driver.as_deref()),
            _ => return None,
        };
        let now = present(now.as_ref(), driver);
        let pod = problem.pod.as_ref();
        let pod = pod.map(|pod| format!(" in pod {pod}")).unwrap_or_default();
        let object = problem.object.text();
        Some(format!("~ {object} = {} (now {now}){pod}", then.short()))
    });
    lines.collect()
}

fn table(document: &Document, style: Style) -> String {
    let table = framed(whole(listed(document, style)), |table| {
        table
            .column("Interface", 2, |(pod, ..)| {
                list_or_dash(pod.interfaces.iter().map(|i| &i.name))
            })
            .column("Addresses", 3, |(pod, ..)| {
                list_or_dash(pod.interfaces.iter().flat_map(|i| &i.addresses))
            })
            .right("Steps", 1, |(pod, ..)| pod.steps.len())
    });
    table.bounded().text(style)
}

/// The devices of the host that are missing, and how many pods cannot be planned without them.
fn missing_devices(document: &Document) -> Option<String> {
    let devices: Vec<String> = document
        .problems
        .iter()
        .filter_map(Problem::missing_device)
        .map(ToString::to_string)
        .collect();
    let waiting: BTreeSet<&PodId> = document
        .problems
        .iter()
        .filter(|problem| problem.code() == Code::ParentMissing)
        .filter_map(|problem| problem.pod.as_ref())
        .collect();
    let (are, wait) = (
        verb(devices.len(), "is", "are"),
        verb(waiting.len(), "waits", "wait"),
    );
    let pods = count(waiting.len(), "pod");
    let pods = (!waiting.is_empty()).then(|| format!("; {pods} {wait} for it"));
    (!devices.is_empty()).then(|| {
        let devices = devices.join(", ");
        format!(
            "the host's {devices} {are} missing{}",
            pods.unwrap_or_default()
        )
    })
}

fn words(document: &Document) -> LastLine {
    let total = document.pods.len();
    let host = document.node.steps.len();
    let pods: Vec<usize> = document
        .pods
        .iter()
        .map(|pod| pod.steps.len())
        .filter(|steps| *steps > 0)
        .collect();
    let steps: usize = pods.iter().sum();
    let cut_off = count_in(document, |state| state == State::CutOff);
    let not_compared = count_in(document, |state| {
        !state.is_good() && !matches!(state, State::Drifted | State::Degraded)
    });
    let unknown = others([(cut_off, "cut off"), (not_compared, "not compared")]);
    let missing = missing_devices(document);
    let renamed = document
        .problems
        .iter()
        .find(|problem| problem.code() == Code::DeviceRenamed)
        .map(|problem| problem.object.to_string());
    if host + steps == 0 {
        let settings = left(document).len();
        let is_well = unknown.is_empty() && missing.is_none() && renamed.is_none();
        let words = match document.exit {
            _ if missing.is_some() => format!("cannot plan: {}", missing.unwrap_or_default()),
            _ if renamed.is_some() => format!(
                "nothing to restore, but the host's {} has another name{unknown}",
                renamed.unwrap_or_default()
            ),
            0 | DRIFT if settings > 0 => format!(
                "nothing to restore; {} of NICs left unchanged{unknown}",
                count(settings, "setting")
            ),
            0 => nothing(document, total - cut_off) + &unknown,
            DRIFT => format!("nothing to restore; what differs is left unchanged{unknown}"),
            _ => format!("no step would help{unknown}"),
        };
        return LastLine::new(words, is_well);
    }
    let missing = missing.map(|missing| format!("; {missing}"));
    let unknown = unknown + &missing.unwrap_or_default();
    let host = match host {
        0 => String::new(),
        host => format!("host: {}; ", count(host, "step")),
    };
    let listed = if pods.len() > FEW {
        ", listed with -v"
    } else {
        ""
    };
    let pods = in_pods(document, pods.len(), steps);
    let what = match total {
        // Every pod of a checkpoint is gone.
        0 => host.trim_end_matches("; ").to_owned(),
        _ => format!("{host}{pods}{listed}"),
    };
    LastLine::new(format!("{what}{unknown}. Run `netfix restore`"), false)
}

/// How many pods have steps, of all that were compared.
fn in_pods(document: &Document, pods: usize, steps: usize) -> String {
    let noun = pod_noun(document.is_selection);
    let pods = part_of(pods, document.pods.len(), noun);
    format!("{pods}: {}", count(steps, "step"))
}

/// That no step is needed, of what was compared.
fn nothing(document: &Document, total: usize) -> String {
    let pods = count(total, pod_noun(document.is_selection));
    match (&document.node.created, total) {
        (Some(_), 0) if !document.is_selection => {
            "nothing to do: the host is correct; no pod with a checkpoint is running".to_owned()
        }
        (_, 0) => "nothing to do: no pod with a checkpoint is running".to_owned(),
        (Some(_), _) if document.is_selection => {
            format!("nothing to do: {pods} and the host's links under them are correct")
        }
        (Some(_), _) => format!("nothing to do: the host and {pods} are correct"),
        // The host was never recorded.
        (None, _) => {
            let are = verb(total, "is", "are");
            format!("nothing to do: {pods} {are} correct; the host is not recorded")
        }
    }
}
