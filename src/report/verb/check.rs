//! `check`: lines for people, and one line for monitoring plugins.

use jiff::Timestamp;

use super::pods::{listed, stored};
use crate::check::{CheckedPod, NO_CHECKPOINT, Readiness, lost_words};
use crate::model::problem::{Cause, CheckCause, RehearsalCause, SocketCause};
use crate::model::{Code, PodId, PodInfo, Problem, Severity, State};
use crate::refusal::Refusal;
use crate::rehearsal::Rehearsed;
use crate::report::document::{
    CheckStatus, CheckView, Document, Extra, LostView, NodeView, PodView,
};
use crate::report::problems;
use crate::report::screen::{LastLine, Screen};
use crate::report::style::{Form, Style, Tone};
use crate::report::text::{
    UNKNOWN, ago, count, escape, join, milliseconds, others, pod_noun, rehearsed, verb, wrapped,
};

/// So many pods that are left out are named.
const NAMED: usize = 3;
/// Every state that a running pod can have.
const STATES: [State; 9] = [
    State::InSync,
    State::Stale,
    State::Drifted,
    State::Degraded,
    State::New,
    State::CutOff,
    State::NoCheckpoint,
    State::Empty,
    State::Failed,
];

/// The document and its figures, without the verdict.
pub(crate) fn check(checked: Result<Readiness, Refusal>) -> (Document, CheckView) {
    let mut view = CheckView {
        pods: STATES.into_iter().map(|state| (state, None)).collect(),
        lost: lost_words().map(|word| (word, None)).collect(),
        ..CheckView::default()
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(refusal) => return (refusal.into(), view),
    };
    // Where something could not be read, a count is the least, and none is unknown.
    let is_whole = !checked.problems.iter().any(Problem::hides_pods);
    let known = |count: usize| (count > 0 || is_whole).then_some(count);
    let of_pods = checked.pods.iter().map(|one| one.steps.len());
    view.steps = known(checked.host.len() + of_pods.sum::<usize>());
    let unsupported = checked.problems.iter().filter(|problem| {
        let is_of_host = matches!(*problem.cause, Cause::Snapshot(_));
        let is_object = is_of_host || problem.pod.is_some();
        problem.is_error() && problem.code() == Code::Unsupported && is_object
    });
    view.unsupported = known(unsupported.count());
    view.oldest_age = checked.oldest_age;
    view.last_success = checked.last_success;
    view.rehearsal = checked.rehearsed.as_ref().map(Rehearsed::figures);
    view.is_checked = true;
    view.left_out = known(checked.left_out.len());
    view.left_out_pods = checked.left_out.iter().map(PodInfo::title).collect();
    let of = |is_one: &dyn Fn(&CheckedPod) -> bool| {
        let all = checked.pods.iter();
        all.filter(|one| is_one(one)).count()
    };
    for (state, count) in &mut view.pods {
        let empty = if *state == State::Empty {
            checked.empty
        } else {
            0
        };
        *count = known(empty + of(&|one| State::from(one.state) == *state));
    }
    for (word, count) in &mut view.lost {
        *count = known(of(&|one| one.lost == Some(*word)));
    }
    let pod = |one: CheckedPod| PodView {
        lost: Some(LostView(one.lost)),
        steps: one.steps,
        ..PodView::new(one.pod, one.state.into())
    };
    let node = NodeView {
        steps: checked.host,
        ..NodeView::recorded(&checked.node, checked.recorded)
    };
    let pods = checked.pods.into_iter().map(pod);
    (Document::of(node, pods, checked.problems), view)
}

/// All problems are in it, also with `--quiet`.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let Some(Extra::Check(check)) = &document.extra else {
        return super::report::screen(document, style);
    };
    let body = if style.form == Form::Plugin {
        plugin_line(document, check)
    } else if style.lists_all() {
        stored(listed(document, style), style).text(style) + &found(document, check, style)
    } else {
        found(document, check, style)
    };
    Screen {
        body,
        listed: &document.problems,
        last: verdict(document, check, style),
    }
}

/// The findings and the rehearsal.
fn found(document: &Document, check: &CheckView, style: Style) -> String {
    let found = findings(document, check, style) + &rehearsal_line(check, style);
    wrapped(&found, style.lines)
}

/// What came of the rehearsal; nothing with --quiet and without a finding.
fn rehearsal_line(check: &CheckView, style: Style) -> String {
    let is_hidden = style.is_quiet() && check.status == CheckStatus::Ok;
    let figures = check.rehearsal.as_ref().filter(|_| !is_hidden);
    figures.map_or_else(String::new, |figures| {
        let restore = milliseconds(figures.restore_ms);
        format!("{}; the restore took {restore}\n", rehearsed(figures))
    })
}

/// One line per finding, the worst last; notes only with `-v`, but for what a loss of the NIC would take for good.
fn findings(document: &Document, check: &CheckView, style: Style) -> String {
    let is_printed = |problem: &&Problem| {
        let is_unrehearsed = matches!(
            *problem.cause,
            Cause::Rehearsal(
                RehearsalCause::NotRehearsed { .. } | RehearsalCause::LeftToDaemon { .. }
            )
        );
        let is_unrecorded = matches!(*problem.cause, Cause::Check(CheckCause::Unrecorded { .. }));
        let is_translated = matches!(
            *problem.cause,
            Cause::Socket(
                SocketCause::ConnectionsEnd { .. } | SocketCause::ConnectionsUnknown { .. }
            )
        );
        style.is_verbose()
            || problem.severity > Severity::Info
            || ((is_unrecorded || is_unrehearsed || is_translated) && !style.is_quiet())
    };
    problems::text(
        document.problems.iter().filter(is_printed),
        document.pods.iter().map(|pod| &pod.info),
        |problem| word(problem, check.status),
        style,
    )
}

/// The word for a finding, as monitoring plugins have it: never a worse one than that of the whole check.
fn word(problem: &Problem, whole: CheckStatus) -> (&'static str, Tone) {
    match CheckStatus::of(problem) {
        CheckStatus::Critical if whole != CheckStatus::Unknown => ("CRITICAL", Tone::Bad),
        CheckStatus::Critical | CheckStatus::Unknown => ("UNKNOWN", Tone::Warning),
        CheckStatus::Warning => ("WARNING", Tone::Warning),
        CheckStatus::Ok => ("INFO", Tone::Calm),
    }
}

/// The overall result of the findings; nothing with --quiet and without an error.
fn verdict(document: &Document, check: &CheckView, style: Style) -> Option<LastLine> {
    if style.is_quiet() && check.status == CheckStatus::Ok {
        return None;
    }
    let tone = match check.status {
        CheckStatus::Ok => Tone::Good,
        CheckStatus::Warning | CheckStatus::Unknown => Tone::Warning,
        CheckStatus::Critical => Tone::Bad,
    };
    // Also where no pod was checked: the sum names only pods that are not covered.
    let is_well = covered(check) + check.count(State::New) == check.total();
    let verdict = LastLine::new(sum(document, check, style.now), is_well);
    Some(verdict.headed(check.status.to_string(), tone))
}

/// The status line of a monitoring plugin, with performance data behind the bar.
fn plugin_line(document: &Document, check: &CheckView) -> String {
    // The worst, a loss of the host before its pods', and a pod's before the rest of the node's, the first of its sort; the bar begins the
    // performance data.
    let worst = document
        .problems
        .iter()
        .rev()
        .filter(|problem| problem.severity > Severity::Info)
        .max_by_key(|problem| {
            let is_of_pod = problem.pod.is_some();
            let is_cause = problem.code() == Code::Degraded && !is_of_pod;
            (problem.severity, is_cause, is_of_pod)
        });
    let title = |id: &PodId| {
        let mut pods = document.pods.iter().map(|pod| &pod.info);
        pods.find(|info| info.id == *id).map(PodInfo::title)
    };
    let first = worst.map(|problem| {
        let title = problem.pod.as_ref().and_then(title);
        format!("; {}", problem.line(title.as_deref())).replace('|', "/")
    });
    let figures = check.rehearsal.as_ref();
    let rehearsed = figures.map_or_else(String::new, |one| format!("; {}", rehearsed(one)));
    format!(
        "NETFIX {} - {}{rehearsed}{}{}\n",
        check.status,
        sum(document, check, Timestamp::now()).replace('|', "/"),
        first.unwrap_or_default(),
        performance_data(check)
    )
}

/// The performance data behind its bar; without what is unknown.
fn performance_data(check: &CheckView) -> String {
    let states = check.pods.iter().filter_map(|(state, count)| {
        let name = state.to_string().replace('-', "_");
        Some(format!("{name}={};{};0", (*count)?, limits(*state)))
    });
    let (total, lost) = (check.total(), check.lost());
    let is_known = |count: usize| count > 0 || !check.is_unread();
    let pods = is_known(total).then(|| format!("pods={total};;;0"));
    let lost = is_known(lost).then(|| format!("lost={lost};;0;0"));
    let limit = check.max_age.as_secs();
    let age = check.oldest_age;
    let age = age.map(|age| format!("oldest_checkpoint={age}s;{limit};;0"));
    let steps = check.steps.map(|steps| format!("drift_steps={steps};0;;0"));
    let all = pods.into_iter().chain(states);
    let all = all.chain(lost).chain(age).chain(steps);
    let data = join(all, " ");
    if data.is_empty() {
        data
    } else {
        format!(" | {data}")
    }
}

/// From how many pods in this state on there is a warning, and a critical finding.
fn limits(state: State) -> &'static str {
    match state {
        State::Degraded | State::Failed => ";0",
        state if is_covered(state) || state == State::New => ";",
        _ => "0;",
    }
}

fn sum(document: &Document, check: &CheckView, now: Timestamp) -> String {
    let total = check.total();
    let pods = match total {
        0 if check.status == CheckStatus::Ok => "no pod is running".to_owned(),
        0 => "no pod was checked".to_owned(),
        _ => coverage(check, total),
    };
    let last = match check.last_success.as_deref() {
        Some(time) => {
            let age = time.parse().map(|then| ago(then, now));
            age.unwrap_or_else(|_| time.to_owned())
        }
        // Nothing was read.
        None if !check.is_checked || document.problems.iter().any(Problem::hides_host_record) => {
            UNKNOWN.to_owned()
        }
        None => "none in this boot".to_owned(),
    };
    let left_out = match check.left_out.unwrap_or_default() {
        0 => String::new(),
        some => format!("; {} left out", count(some, "pod")),
    };
    let names = check.left_out_pods.iter().take(NAMED);
    let names: Vec<String> = names.map(|name| escape(name)).collect();
    let names = match (names.as_slice(), check.left_out_pods.len() > NAMED) {
        ([], _) => String::new(),
        (names, false) => format!("; left out: {}", names.join(", ")),
        (names, true) => format!("; left out: {}, ...", names.join(", ")),
    };
    format!("{pods}{left_out}; last snapshot: {last}{names}")
}

fn covered(check: &CheckView) -> usize {
    let covered = check.pods.iter().filter(|(state, _)| is_covered(**state));
    covered.filter_map(|(_, count)| *count).sum()
}

fn coverage(check: &CheckView, total: usize) -> String {
    let new = check.count(State::New);
    if new == total {
        return format!("{}, without a checkpoint yet", count(new, "new pod"));
    }
    let good = covered(check);
    // New pods are counted beside those that should match.
    let expected = count(total - new, pod_noun(check.is_selection));
    let lost = check.lost();
    let unknown = check.lost.get(NO_CHECKPOINT).copied().flatten();
    let unknown = unknown.unwrap_or_default();
    let rest = check.pods.iter().filter(|(state, _)| !is_covered(**state));
    let others = others(rest.map(|(state, count)| {
        // Those that have lost their network are counted first.
        let of_lost = match state {
            State::Degraded => lost - unknown,
            State::NoCheckpoint => unknown,
            _ => 0,
        };
        (count.unwrap_or_default().saturating_sub(of_lost), state)
    }));
    let matches = verb(good, "matches", "match");
    let have_lost = verb(lost, "has lost its network", "have lost their network");
    match (lost, good) {
        (0, good) => format!("{good} of {expected} {matches} a fresh checkpoint{others}"),
        (lost, 0) => format!("{lost} of {expected} {have_lost}{others}"),
        (lost, good) => {
            format!("{lost} of {expected} {have_lost}, {good} {matches} a fresh checkpoint{others}")
        }
    }
}

fn is_covered(state: State) -> bool {
    matches!(state, State::InSync | State::Empty)
}
