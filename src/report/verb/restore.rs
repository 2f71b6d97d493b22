//! `restore`: the links of each pod before and after, and how many pods were restored.

use std::collections::BTreeSet;

use super::pods::{self, count_in, framed, listed, whole};
use crate::model::problem::Cause;
use crate::model::{Exit, IfName, Problem, Severity, State};
use crate::plan::Step;
use crate::report::document::{Document, NodeView, PodView};
use crate::report::problems::programs_to_restart;
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{count, escape, join, list_or_dash, or_dash, others, part_of, pod_noun};
use crate::restore::{Restored, RestoredPod};

/// The document.
pub(crate) fn restore(restored: Restored) -> Document {
    let is_refused = restored.is_refused;
    let has_begun = restored.host.is_some();
    let steps = |done: &[Step]| done.iter().map(ToString::to_string).collect();
    let pod = |one: RestoredPod| PodView {
        before: one.before,
        after: one.after,
        steps: steps(&one.done),
        ..PodView::new(one.pod, one.state.into())
    };
    let mut node = NodeView::recorded(&restored.node, restored.recorded.clone());
    if let Some((done, state)) = restored.host {
        node.steps = steps(&done);
        node.state = Some(state.into());
    }
    let document = Document {
        is_selection: restored.is_selection,
        ..Document::of(node, restored.pods.into_iter().map(pod), restored.problems)
    };
    match (has_begun, is_refused) {
        (true, _) => document.judged(),
        (false, true) => document.exits(Exit::Refused),
        (false, false) => document.exits(Exit::Failed),
    }
}

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let names = |names: &Option<Vec<IfName>>| or_dash(names.as_ref().map(list_or_dash));
    let table = framed(whole(listed(document, style)), |table| {
        table
            .column("Before", 2, |(pod, ..)| names(&pod.before))
            .column("After", 1, |(pod, ..)| names(&pod.after))
            .right("Steps", 4, |(pod, ..)| pod.steps.len())
            .column("MAC", 5, |(pod, ..)| {
                list_or_dash(pod.interfaces.iter().map(|i| or_dash(i.mac)))
            })
            .column("Addresses", 3, |(pod, ..)| {
                list_or_dash(pod.interfaces.iter().map(|i| list_or_dash(&i.addresses)))
            })
    });
    pods::screen(document, &table.bounded(), words(document), style)
}

fn words(document: &Document) -> LastLine {
    let host = host(document);
    let programs = programs_to_restart(&document.problems, Severity::Warning);
    let programs = programs.map(|programs| format!("; {programs}"));
    let programs = programs.unwrap_or_default();
    let is_host_well = !matches!(document.node.state, Some(State::Partial | State::Failed));
    let total = document.pods.len();
    let pod_noun = pod_noun(document.is_selection);
    let restored = count_in(document, |state| state == State::Restored);
    let correct = count_in(document, |state| state == State::InSync);
    let cut_off = count_in(document, |state| state == State::CutOff);
    let good = count_in(document, State::is_good);
    let nothing = match document.exit {
        0 if host.is_empty() && programs.is_empty() => "; nothing to do",
        _ => "",
    };
    if total == 0 {
        let none = "no pod with a checkpoint is running";
        let is_correct = document.node.state == Some(State::InSync) && !document.is_selection;
        let host = match &document.node.created {
            Some(_) if is_correct => "the host is correct; ",
            _ => &host,
        };
        return LastLine::new(format!("{host}{none}{nothing}"), is_host_well);
    }
    if correct == total {
        let pods = count(total, pod_noun);
        return LastLine::new(
            format!("{host}{pods} already correct{nothing}{programs}"),
            is_host_well,
        );
    }
    let others = others([
        (correct, "already correct"),
        (cut_off, "cut off"),
        (good - restored - correct - cut_off, "gone"),
        (total - good, "not restored"),
    ]);
    LastLine::new(
        format!(
            "{host}{} restored{others}{programs}",
            part_of(restored, total, pod_noun)
        ),
        is_host_well && good == total,
    )
}

/// So many objects of the host that are not restored are named.
const NAMED: usize = 3;

/// What became of the host, or of its links under the selected pods, with what is not as it was.
fn host(document: &Document) -> String {
    let steps = || count(document.node.steps.len(), "step");
    let host = if document.is_selection {
        "host links under the pods"
    } else {
        "host"
    };
    let words = match &document.node.state {
        Some(State::Restored) => format!("{host} restored in {}", steps()),
        Some(State::Partial) => format!("{host} partly restored in {}", steps()),
        Some(State::Failed) => format!("{host} not restored"),
        _ => return String::new(),
    };
    let is_of_host = |problem: &&Problem| {
        let is_object = matches!(
            *problem.cause,
            Cause::Plan(_) | Cause::Conflict(_) | Cause::Restore(_)
        );
        problem.is_error() && problem.pod.is_none() && is_object
    };
    let errors = document.problems.iter().filter(is_of_host);
    let missing = errors.map(|problem| escape(&problem.object.to_string()));
    let missing: BTreeSet<String> = missing.collect();
    let named = join(missing.iter().take(NAMED), ", ");
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match missing.len() {
        0 => format!("{words}; "),
        _ if document.node.state == Some(State::Failed) => format!("{words} ({named}{more}); "),
        some => format!("{words}, {some} not ({named}{more}); "),
    }
}
