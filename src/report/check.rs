//! The answers of `check`: lines for people, and one line for monitoring plugins.

use std::io::{self, Write};

use jiff::Timestamp;

use super::problems::{lines as problem_lines, titles};
use super::style::{Style, Tone};
use super::text::{ago, count, others};
use super::view::{CheckView, Document, Verdict};
use crate::model::{Problem, Severity, State};

/// One line a finding, the worst last; notes only with `-v`.
pub(super) fn findings(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let least = if style.is_verbose() {
        Severity::Info
    } else {
        Severity::Warning
    };
    let findings = document
        .problems
        .iter()
        .filter(|problem| problem.severity >= least);
    let titles = titles(document.pods.iter().map(|pod| &pod.info));
    for line in problem_lines(&findings.collect::<Vec<_>>(), &titles, style) {
        let (word, tone) = match line.severity {
            Severity::Error => ("CRITICAL", Tone::Bad),
            Severity::Warning => ("WARNING", Tone::Warning),
            Severity::Info => ("INFO", Tone::Calm),
        };
        writeln!(out, "{}: {}", style.paint(word, tone), line.text)?;
    }
    Ok(())
}

/// The overall result of the findings; nothing with --quiet and without an error.
pub(super) fn verdict(check: &CheckView, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if style.is_quiet() && check.status == Verdict::Ok {
        return Ok(());
    }
    let tone = match check.status {
        Verdict::Ok => Tone::Good,
        Verdict::Warning | Verdict::Unknown => Tone::Warning,
        Verdict::Critical => Tone::Bad,
    };
    let word = style.paint(&check.status.to_string(), tone);
    writeln!(out, "{word}: {}", sum(check, style.now))
}

/// The status line of a monitoring plugin, with performance data behind the bar.
pub(super) fn plugin_line(
    document: &Document,
    check: &CheckView,
    out: &mut dyn Write,
) -> io::Result<()> {
    let worth = |problem: &&Problem| problem.severity > Severity::Info;
    // The worst, a pod's before the node's, the first of its sort; the bar begins the performance data.
    let rank = |problem: &&Problem| (problem.severity, problem.pod.is_some());
    let worst = document
        .problems
        .iter()
        .rev()
        .filter(worth)
        .max_by_key(rank);
    let first = worst.map(|problem| problem.to_string().replace('|', "/"));
    let first = first.map(|first| format!("; {first}")).unwrap_or_default();
    let total: usize = check.pods.values().sum();
    write!(
        out,
        "NETFIX {} - {}{first} | pods={total};;;0",
        check.status,
        sum(check, Timestamp::now())
    )?;
    for (state, count) in &check.pods {
        let name = state.to_string().replace('-', "_");
        write!(out, " {name}={count};{};0", limits(*state))?;
    }
    if let Some(age) = check.oldest_age {
        let limit = check.max_age.as_secs();
        write!(out, " oldest_checkpoint={age}s;{limit};;0")?;
    }
    writeln!(out, " drift_steps={};0;;0", check.steps)
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
    format!("{pods}; last snapshot: {last}")
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
