//! The answers of `check`: lines for people, one line for monitoring plugins, metrics for Prometheus.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use prometheus::{Gauge, GaugeVec, Opts, Registry, TextEncoder};

use super::view::{CheckView, Document, Verdict};
use super::{Style, paint};
use crate::model::{PodId, Problem, Severity, State};

/// One line a finding, then what it adds up to; nothing at all when the user wants only errors and there is none.
pub(super) fn lines(
    document: &Document,
    check: &CheckView,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let least = if style.verbose { Severity::Info } else { Severity::Warning };
    let titles: BTreeMap<&PodId, String> =
        document.pods.iter().map(|pod| (&pod.info.id, pod.info.title())).collect();
    for problem in document.problems.iter().filter(|problem| problem.severity >= least) {
        let (word, color) = match problem.severity {
            Severity::Error => ("CRITICAL", "31"),
            Severity::Warning => ("WARNING", "33"),
            Severity::Info => ("INFO", "36"),
        };
        writeln!(out, "{:<8} {}", paint(word, color, style), finding(problem, &titles))?;
    }
    if style.quiet && check.status == Verdict::Ok {
        return Ok(());
    }
    writeln!(out, "{}: {}", check.status, sum(check))
}

fn finding(problem: &Problem, titles: &BTreeMap<&PodId, String>) -> String {
    let pod = problem.pod.as_ref().map(|id| match titles.get(id) {
        Some(title) if *title != id.to_string() => format!("pod {title} ({id}): "),
        _ => format!("pod {id}: "),
    });
    let object = Some(&problem.object).filter(|object| !object.is_empty());
    let object = object.map(|object| format!("{object}: ")).unwrap_or_default();
    format!("{}: {}{object}{}", problem.code, pod.unwrap_or_default(), problem.message)
}

/// The status line of a monitoring plugin, with performance data behind the bar.
pub(super) fn plugin_line(document: &Document, check: &CheckView, out: &mut dyn Write) -> io::Result<()> {
    let worth = |problem: &&Problem| problem.severity > Severity::Info;
    // The worst, a pod's before the node's, the first of its sort; the bar begins the performance data.
    let rank = |problem: &&Problem| (problem.severity, problem.pod.is_some());
    let worst = document.problems.iter().rev().filter(worth).max_by_key(rank);
    let first = worst.map(|problem| problem.to_string().replace('|', "/"));
    let first = first.map(|first| format!("; {first}")).unwrap_or_default();
    let total: usize = check.pods.values().sum();
    write!(out, "NETFIX {} - {}{first} | pods={total};;;0", check.status, sum(check))?;
    for (state, count) in &check.pods {
        write!(out, " {}={count};;;0", state.to_string().replace('-', "_"))?;
    }
    if let Some(age) = check.oldest_age {
        write!(out, " oldest_checkpoint={age}s;;;0")?;
    }
    writeln!(out, " drift_steps={};;;0", check.steps)
}

fn sum(check: &CheckView) -> String {
    let total: usize = check.pods.values().sum();
    let covered = check.pods.iter().filter(|(state, _)| is_covered(**state));
    let good: usize = covered.map(|(_, count)| count).sum();
    let others = check.pods.iter().filter(|(state, count)| **count > 0 && !is_covered(**state));
    let others: Vec<String> = others.map(|(state, count)| format!(", {count} {state}")).collect();
    let others = others.concat();
    let last = check.last_success.as_deref().unwrap_or("never in this boot");
    format!("{good} of {total} running pods could be restored{others}; last complete snapshot: {last}")
}

fn is_covered(state: State) -> bool {
    matches!(state, State::InSync | State::Empty)
}

/// The metrics of one check in Prometheus' text format, for `node_exporter`'s textfile collector.
#[must_use]
pub fn metrics(check: &CheckView, problems: &[Problem]) -> String {
    let registry = Registry::new();
    let filled = fill(&registry, check, problems)
        .and_then(|()| TextEncoder::new().encode_to_string(&registry.gather()));
    // Names and labels are constants of this file, so there is nothing that could be refused.
    filled.unwrap_or_default()
}

fn fill(registry: &Registry, check: &CheckView, problems: &[Problem]) -> prometheus::Result<()> {
    let gauge = |name: &str, help: &str, value: f64| {
        let gauge = Gauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))
    };
    gauge(
        "netfix_check_status",
        "What netfix check found: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
        f64::from(check.status as u8),
    )?;
    gauge("netfix_check_timestamp_seconds", "When netfix check ran.", now())?;
    gauge(
        "netfix_drift_steps",
        "Steps that a restore would take now, on the host and in all pods.",
        number(check.steps),
    )?;
    if let Some(age) = check.oldest_age {
        let help = "Age of the oldest checkpoint of a running pod, counted from the last snapshot that found it true.";
        #[expect(clippy::cast_precision_loss, reason = "2^53 seconds are 285 million years")]
        gauge("netfix_checkpoint_oldest_age_seconds", help, age as f64)?;
    }
    if let Some(last) = check.last_success.as_ref().and_then(|time| time.parse::<Timestamp>().ok()) {
        let help = "When the last snapshot was completed that covered all pods.";
        gauge("netfix_snapshot_last_success_timestamp_seconds", help, last.as_duration().as_secs_f64())?;
    }
    let pods = GaugeVec::new(Opts::new("netfix_pods", "Running pods by state."), &["state"])?;
    for (state, count) in &check.pods {
        pods.with_label_values(&[state.to_string()]).set(number(*count));
    }
    registry.register(Box::new(pods))?;
    let found =
        GaugeVec::new(Opts::new("netfix_findings", "Findings of netfix check."), &["code", "severity"])?;
    for problem in problems {
        found.with_label_values(&[problem.code.to_string(), problem.severity.to_string()]).inc();
    }
    registry.register(Box::new(found))
}

fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64().floor()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
