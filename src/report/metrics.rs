//! The metrics of one check in Prometheus' text format, for `node_exporter`'s textfile collector.
//!
//! Nothing here can fail, so a half of the metrics never replaces a whole file. Names and label values are words of netfix,
//! and no label value needs an escape.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::view::CheckView;
use crate::model::Problem;

/// The metrics of one check, sorted by name.
pub(crate) fn metrics(check: &CheckView, problems: &[Problem]) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: &dyn ToString| {
        family(&mut text, name, help, [(String::new(), value.to_string())]);
    };
    gauge(
        "netfix_check_status",
        "What netfix check found: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
        &(check.status as u8),
    );
    gauge(
        "netfix_check_timestamp_seconds",
        "When netfix check ran.",
        &Timestamp::now().as_second(),
    );
    if let Some(age) = check.oldest_age {
        gauge(
            "netfix_checkpoint_oldest_age_seconds",
            "Age of the oldest checkpoint of a running pod, counted from the last snapshot that found it true.",
            &age,
        );
    }
    gauge(
        "netfix_drift_steps",
        "Steps that a restore would take now, on the host and in all pods.",
        &check.steps,
    );
    family(
        &mut text,
        "netfix_findings",
        "Findings of netfix check.",
        findings(problems),
    );
    let by_state =
        |(state, count): (&_, &usize)| (format!("{{state=\"{state}\"}}"), count.to_string());
    family(
        &mut text,
        "netfix_pods",
        "Running pods by state.",
        check.pods.iter().map(by_state),
    );
    family(
        &mut text,
        "netfix_pods_left_out",
        "Running pods that are not among netfix_pods: their devices have other drivers.",
        [(String::new(), check.left_out.to_string())],
    );
    family(
        &mut text,
        "netfix_snapshot_last_success_timestamp_seconds",
        "When the last snapshot was completed that covered all pods.",
        check.last_success.as_deref().and_then(timestamp),
    );
    let unsupported = check
        .unsupported
        .map(|count| (String::new(), count.to_string()));
    family(
        &mut text,
        "netfix_unsupported_objects",
        "Objects of running pods that no restore could bring back.",
        unsupported,
    );
    text
}

/// A moment (RFC 3339) as a sample.
fn timestamp(time: &str) -> Option<(String, String)> {
    let time: Timestamp = time.parse().ok()?;
    Some((String::new(), time.as_duration().as_secs_f64().to_string()))
}

/// How many problems there are of each code and severity.
fn findings(problems: &[Problem]) -> impl Iterator<Item = (String, String)> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for problem in problems {
        let key = (problem.code().to_string(), problem.severity.to_string());
        *counts.entry(key).or_default() += 1;
    }
    counts.into_iter().map(|((code, severity), count)| {
        let labels = format!("{{code=\"{code}\",severity=\"{severity}\"}}");
        (labels, count.to_string())
    })
}

/// One gauge: its labels and values. Without a value, nothing is written.
fn family(
    text: &mut String,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (String, String)>,
) {
    let mut samples = samples.into_iter().peekable();
    if samples.peek().is_some() {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    }
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::State;
    use crate::report::Verdict;

    #[test]
    fn the_text_is_whole() {
        let check = CheckView {
            left_out: 1,
            max_age: std::time::Duration::ZERO,
            status: Verdict::Critical,
            oldest_age: Some(90),
            last_success: Some("2026-11-21T21:00:59.5Z".to_owned()),
            pods: [(State::InSync, 2), (State::Degraded, 1)].into(),
            steps: 7,
            unsupported: Some(3),
        };
        let problem: Problem = serde_json::from_value(serde_json::json!({
            "code": "degraded", "severity": "error", "pod": null, "object": "eth0", "message": "",
        }))
        .unwrap();
        let text = metrics(&check, &[problem.clone(), problem]);
        let (before, after) = text.split_once("netfix_check_timestamp_seconds 1").unwrap();
        let after = after.split_once('\n').unwrap().1;
        assert_eq!(
            before,
            "# HELP netfix_check_status What netfix check found: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n\
             # TYPE netfix_check_status gauge\n\
             netfix_check_status 2\n\
             # HELP netfix_check_timestamp_seconds When netfix check ran.\n\
             # TYPE netfix_check_timestamp_seconds gauge\n"
        );
        let samples: Vec<&str> = after
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(
            samples,
            [
                "netfix_checkpoint_oldest_age_seconds 90",
                "netfix_drift_steps 7",
                "netfix_findings{code=\"degraded\",severity=\"error\"} 2",
                "netfix_pods{state=\"degraded\"} 1",
                "netfix_pods{state=\"in-sync\"} 2",
                "netfix_pods_left_out 1",
                "netfix_snapshot_last_success_timestamp_seconds 1795294859.5",
                "netfix_unsupported_objects 3",
            ]
        );
    }

    #[test]
    fn a_check_that_knows_nothing_still_has_its_verdict() {
        let check = CheckView {
            status: Verdict::Unknown,
            ..CheckView::default()
        };
        let text = metrics(&check, &[]);
        assert!(text.contains("\nnetfix_check_status 3\n"), "{text}");
        assert!(text.contains("\nnetfix_drift_steps 0\n"), "{text}");
        assert!(!text.contains("netfix_unsupported_objects"), "{text}");
    }
}
