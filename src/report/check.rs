//! The answers of `check`: lines for people, and one line for monitoring plugins.

use jiff::Timestamp;

use super::problems;
use super::style::{Style, Tone};
use super::text::{ago, count, join, others};
use super::view::{CheckView, Document, Verdict};
use crate::model::{PodId, PodInfo, Problem, Severity, State};

/// One line a finding, the worst last; notes only with `-v`.
pub(super) fn findings(document: &Document, style: Style) -> String {
    let least = if style.is_verbose() {
        Severity::Info
    } else {
        Severity::Warning
    };
    let findings = document.problems.iter();
    problems::text(
        findings.filter(|problem| problem.severity >= least),
        document.pods.iter().map(|pod| &pod.info),
        word,
        style,
    )
}

/// The severity's word, as monitoring plugins have it.
fn word(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Error => ("CRITICAL", Tone::Bad),
        Severity::Warning => ("WARNING", Tone::Warning),
        Severity::Info => ("INFO", Tone::Calm),
    }
}

/// The overall result of the findings; nothing with --quiet and without an error.
pub(super) fn verdict(check: &CheckView, style: Style) -> Option<String> {
    if style.is_quiet() && check.status == Verdict::Ok {
        return None;
    }
    let tone = match check.status {
        Verdict::Ok => Tone::Good,
        Verdict::Warning | Verdict::Unknown => Tone::Warning,
        Verdict::Critical => Tone::Bad,
    };
    let word = style.paint(&check.status.to_string(), tone);
    Some(format!("{word}: {}", sum(check, style.now)))
}

/// The status line of a monitoring plugin, with performance data behind the bar.
pub(super) fn plugin_line(document: &Document, check: &CheckView) -> String {
    let worth = |problem: &&Problem| problem.severity > Severity::Info;
    // The worst, a pod's before the node's, the first of its sort; the bar begins the performance data.
    let rank = |problem: &&Problem| (problem.severity, problem.pod.is_some());
    let problems = document.problems.iter().rev();
    let worst = problems.filter(worth).max_by_key(rank);
    let title = |id: &PodId| {
        let mut pods = document.pods.iter().map(|pod| &pod.info);
        pods.find(|info| info.id == *id).map(PodInfo::title)
    };
    let first = worst.map(|problem| {
        let title = problem.pod.as_ref().and_then(title);
        format!("; {}", problem.line(title.as_deref())).replace('|', "/")
    });
    let total: usize = check.pods.values().sum();
    let states = check.pods.iter().map(|(state, count)| {
        let name = state.to_string().replace('-', "_");
        format!(" {name}={count};{};0", limits(*state))
    });
    let limit = check.max_age.as_secs();
    let age = check.oldest_age;
    let age = age.map(|age| format!(" oldest_checkpoint={age}s;{limit};;0"));
    format!(
        "NETFIX {} - {}{} | pods={total};;;0{}{} drift_steps={};0;;0\n",
        check.status,
        sum(check, Timestamp::now()),
        first.unwrap_or_default(),
        join(states, ""),
        age.unwrap_or_default(),
        check.steps
    )
}

/// From how many pods in this state on there is a warning, and a critical finding.
fn limits(state: State) -> &'static str {
    match state {
        State::Degraded | State::Failed => ";0",
        state if is_covered(state) => ";",
        _ => "0;",
    }
}

fn sum(check: &CheckView, now: Timestamp) -> String {
    let total: usize = check.pods.values().sum();
    let pods = match total {
        0 if check.status == Verdict::Ok => "no pod is running".to_owned(),
        0 => "no pod was checked".to_owned(),
        _ => coverage(check, total),
    };
    let last = check.last_success.as_deref().map_or_else(
        || "none in this boot".to_owned(),
        |time| {
            let age = time.parse().map(|then| ago(then, now));
            age.unwrap_or_else(|_| time.to_owned())
        },
    );
    let left_out = match check.left_out {
        0 => String::new(),
        some => format!("; {} left out", count(some, "pod")),
    };
    format!("{pods}{left_out}; last snapshot: {last}")
}

fn coverage(check: &CheckView, total: usize) -> String {
    let covered = check.pods.iter().filter(|(state, _)| is_covered(**state));
    let good: usize = covered.map(|(_, count)| count).sum();
    let rest = check.pods.iter().filter(|(state, _)| !is_covered(**state));
    let others = others(rest.map(|(state, count)| (*count, state)));
    format!(
        "{good} of {} match a fresh checkpoint{others}",
        count(total, "pod")
    )
}

fn is_covered(state: State) -> bool {
    matches!(state, State::InSync | State::Empty)
}
