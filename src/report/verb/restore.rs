//! `restore`: the links of each pod before and after, and how many pods were restored.

use super::pods::{self, count_in, framed, listed, whole};
use crate::model::{Exit, IfName, Severity, State};
use crate::plan::Step;
use crate::report::document::{Document, NodeView, PodView};
use crate::report::problems::programs_to_restart;
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{count, list_or_dash, or_dash, others, part};
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
    let mut node = NodeView::recorded(&restored.node, restored.recorded);
    if let Some((done, state)) = restored.host {
        node.steps = steps(&done);
        node.state = Some(state.into());
    }
    let document = Document::of(node, restored.pods.into_iter().map(pod), restored.problems);
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
    pods::screen(document, &table, words(document), style)
}

fn words(document: &Document) -> LastLine {
    let steps = || count(document.node.steps.len(), "step");
    let host = match document.node.state {
        Some(State::Restored) => format!("host restored in {}; ", steps()),
        Some(State::Partial) => format!("host partly restored in {}; ", steps()),
        Some(State::Failed) => "host not restored; ".to_owned(),
        _ => String::new(),
    };
    let programs = programs_to_restart(&document.problems, Severity::Warning);
    let programs = programs.map(|programs| format!("; {programs}"));
    let programs = programs.unwrap_or_default();
    let is_host_well = !matches!(document.node.state, Some(State::Partial | State::Failed));
    let total = document.pods.len();
    let restored = count_in(document, |state| state == State::Restored);
    let correct = count_in(document, |state| state == State::InSync);
    let good = count_in(document, State::is_good);
    let nothing = match document.exit {
        0 if host.is_empty() && programs.is_empty() => "; nothing to do",
        _ => "",
    };
    if total == 0 {
        let none = "no pod with a checkpoint is running";
        return LastLine::new(format!("{host}{none}{nothing}"), is_host_well);
    }
    if correct == total {
        let pods = count(total, "pod");
        return LastLine::new(
            format!("{host}{pods} already correct{nothing}{programs}"),
            is_host_well,
        );
    }
    let others = others([
        (correct, "already correct"),
        (good - restored - correct, "gone"),
        (total - good, "not restored"),
    ]);
    LastLine::new(
        format!("{host}{} restored{others}{programs}", part(restored, total)),
        is_host_well && good == total,
    )
}
