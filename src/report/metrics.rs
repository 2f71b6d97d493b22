//! The metrics of one check in Prometheus' text format, for `node_exporter`'s textfile collector.
//!
//! Nothing here can fail, so a half of the metrics never replaces a whole file.

mod last;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use jiff::Timestamp;

use crate::model::window::GuardRecord;
use crate::model::{Nic, Problem};
use crate::report::document::CheckView;
use crate::report::window::hold::HoldView;
use crate::report::window::view::ReportView;

/// What the metrics have besides the findings of the check.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// The open window.
    pub open: OpenWindow,
    /// The newest closed window.
    pub last: Option<ReportView>,
    /// The NICs of the host.
    pub nics: Vec<Nic>,
    /// What `netfix guard` has done; `None` where it never ran.
    pub guard: Option<GuardRecord>,
}

/// Whether a window is open.
#[derive(Debug, Default)]
pub(crate) enum OpenWindow {
    /// Its record cannot be read.
    #[default]
    Unknown,
    /// None is.
    Closed,
    /// This one.
    Open(HoldView),
}

/// The metrics of one check.
pub(crate) fn metrics(check: &CheckView, problems: &[Problem], around: &Surroundings) -> String {
    let mut text = Text::default();
    text.gauge(
        "netfix_build_info",
        "The netfix that wrote this.",
        [(
            labels(&[
                ("version", env!("CARGO_PKG_VERSION")),
                ("commit", env!("NETFIX_BUILT_COMMIT")),
            ]),
            1,
        )],
    );
    of_check(check, problems, &mut text);
    of_windows(around, &mut text);
    text.gauge(
        "netfix_nic_info",
        "A NIC of the host, with what its driver reports.",
        around.nics.iter().map(|nic| (of_nic(nic), 1)),
    );
    text.gauge(
        "netfix_nic_carrier",
        "Whether a NIC of the host has carrier.",
        around.nics.iter().map(|nic| {
            let device = labels(&[("device", &nic.name.to_string())]);
            (device, u8::from(nic.carrier))
        }),
    );
    text.0
}

fn of_check(check: &CheckView, problems: &[Problem], text: &mut Text) {
    text.one(
        "netfix_check_status",
        "What netfix check found: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
        Some(check.status as u8),
    );
    text.one(
        "netfix_check_timestamp_seconds",
        "When netfix check ran.",
        Some(Timestamp::now().as_second()),
    );
    text.one(
        "netfix_checkpoint_oldest_age_seconds",
        "Age of the oldest checkpoint of a running pod, counted from the last snapshot that found it true.",
        check.oldest_age,
    );
    text.one(
        "netfix_drift_steps",
        "Steps that a restore would take now, on the host and in all pods.",
        Some(check.steps),
    );
    text.gauge(
        "netfix_findings",
        "Findings of netfix check.",
        findings(problems),
    );
    let pods = check.pods.iter();
    text.gauge(
        "netfix_pods",
        "Running pods by state.",
        pods.map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count)),
    );
    let lost = check.lost.iter();
    text.gauge(
        "netfix_pods_lost",
        "Running pods that have lost their network or a part of it, by what they have lost.",
        lost.map(|(cause, count)| (format!("{{cause=\"{cause}\"}}"), *count)),
    );
    text.one(
        "netfix_pods_left_out",
        "Running pods that are not among netfix_pods: their devices have other drivers.",
        Some(check.left_out),
    );
    text.one(
        "netfix_snapshot_last_success_timestamp_seconds",
        "When the last snapshot was completed that covered all pods.",
        check.last_success.as_deref().and_then(seconds),
    );
    text.one(
        "netfix_unsupported_objects",
        "Objects of running pods that no restore could bring back.",
        check.unsupported,
    );
}

fn of_windows(around: &Surroundings, text: &mut Text) {
    // Whether a window is open, whether its netfix runs, and whether kubelet is paused in it.
    let open = match &around.open {
        OpenWindow::Unknown => None,
        OpenWindow::Closed => Some((false, false, Some(false))),
        OpenWindow::Open(window) => {
            let is_held = window.unit.as_ref().map_or(Some(false), |_| window.held);
            Some((true, window.kept, is_held))
        }
    };
    text.one(
        "netfix_window_open",
        "Whether a maintenance window is open.",
        open.map(|(is_open, ..)| u8::from(is_open)),
    );
    text.one(
        "netfix_window_live",
        "Whether a maintenance window is open whose netfix runs: it takes the network of pods, and brings it back.",
        open.map(|(_, is_live, _)| u8::from(is_live)),
    );
    if let OpenWindow::Open(window) = &around.open {
        text.gauge(
            "netfix_window_info",
            "The open maintenance window, its phase, and what to do; the value is always 1.",
            [(labels(&window.labels()), 1)],
        );
    }
    text.one(
        "netfix_kubelet_paused",
        "Whether kubelet's unit is stopped and masked by netfix; absent where systemd does not answer.",
        open.and_then(|(.., is_held)| is_held).map(u8::from),
    );
    if let Some(last) = &around.last {
        last::of_window(last, text);
    }
    if let Some(guard) = &around.guard {
        last::of_guard(guard, text);
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a window is shorter than 2^53 ms"
)]
fn in_seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn of_nic(nic: &Nic) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    labels(&[
        ("device", &nic.name.to_string()),
        ("driver", &known(&nic.driver)),
        ("version", &known(&nic.version)),
        ("firmware", &known(&nic.firmware)),
        ("bus", &known(&nic.bus)),
    ])
}

/// Labels of a sample. A value may have any character.
fn labels(pairs: &[(&str, impl AsRef<str>)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = value.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{}\"", value.replace('\n', "\\n"))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

/// A moment (RFC 3339) in seconds since 1970.
fn seconds(time: &str) -> Option<f64> {
    let time: Timestamp = time.parse().ok()?;
    Some(time.as_duration().as_secs_f64())
}

/// How many problems there are of each code and severity.
fn findings(problems: &[Problem]) -> impl Iterator<Item = (String, usize)> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for problem in problems {
        let key = (problem.code().to_string(), problem.severity.to_string());
        *counts.entry(key).or_default() += 1;
    }
    counts.into_iter().map(|((code, severity), count)| {
        (labels(&[("code", &code), ("severity", &severity)]), count)
    })
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// One gauge: its labels and values. Without a value, nothing is written.
    fn gauge<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
        }
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    /// A counter without labels.
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        let _ = writeln!(
            self.0,
            "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}"
        );
    }

    /// A gauge without labels.
    fn one<V: Display>(&mut self, name: &str, help: &str, value: Option<V>) {
        self.gauge(name, help, value.map(|value| (String::new(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{State, Window};
    use crate::report::document::CheckStatus;
    use crate::report::window::view::Standing;

    #[test]
    fn the_text_is_whole() {
        let check = CheckView {
            left_out: 1,
            left_out_pods: Vec::new(),
            rehearsal: None,
            max_age: std::time::Duration::ZERO,
            is_selection: false,
            status: CheckStatus::Critical,
            oldest_age: Some(90),
            last_success: Some("2026-11-21T21:00:59.5Z".to_owned()),
            pods: [(State::InSync, 2), (State::Degraded, 1)].into(),
            lost: [("link-gone", 1), ("no-checkpoint", 0)].into(),
            steps: 7,
            unsupported: Some(3),
        };
        let problem: Problem = serde_json::from_value(serde_json::json!({
            "code": "degraded", "severity": "error", "pod": null, "object": "eth0", "message": "",
        }))
        .unwrap();
        let around = Surroundings {
            open: OpenWindow::Closed,
            last: None,
            nics: vec![Nic {
                name: "eth0".parse().unwrap(),
                driver: Some("i40e".to_owned()),
                version: Some("2.28.7 \"x\" \\\n".to_owned()),
                firmware: None,
                bus: Some("0000:3b:00.0".to_owned()),
                permanent_mac: None,
                function: None,
                carrier: true,
            }],
            guard: None,
        };
        let text = metrics(&check, &[problem.clone(), problem], &around);
        let (before, after) = text.split_once("netfix_check_timestamp_seconds 1").unwrap();
        let after = after.split_once('\n').unwrap().1;
        let before = before.split_once("} 1\n").unwrap().1;
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
                "netfix_pods_lost{cause=\"link-gone\"} 1",
                "netfix_pods_lost{cause=\"no-checkpoint\"} 0",
                "netfix_pods_left_out 1",
                "netfix_snapshot_last_success_timestamp_seconds 1795294859.5",
                "netfix_unsupported_objects 3",
                "netfix_window_open 0",
                "netfix_window_live 0",
                "netfix_kubelet_paused 0",
                r#"netfix_nic_info{device="eth0",driver="i40e",version="2.28.7 \"x\" \\\n",firmware="",bus="0000:3b:00.0"} 1"#,
                "netfix_nic_carrier{device=\"eth0\"} 1",
            ]
        );
    }

    #[test]
    fn the_last_window_has_the_driver_before_and_after_of_each_nic() {
        let record = include_str!("../../testdata/windows/well.json");
        let mut window: Window = serde_json::from_str(record).unwrap();
        let nics = window.nics.as_mut().unwrap();
        (nics[2].present, nics[2].after) = (Some(false), None);
        let around = Surroundings {
            last: Some(ReportView::new(window, Standing::Closed)),
            ..Surroundings::default()
        };
        let text = metrics(&CheckView::default(), &[], &around);
        for nic in [
            r#"{device="eno1",before="igb 5.6.0-k",after="igb 5.6.0-k"} 1"#,
            r#"{device="eth0",before="i40e 2.8.20-k",after="i40e 2.28.7"} 1"#,
            r#"{device="eth1",before="i40e 2.8.20-k",after="absent"} 1"#,
        ] {
            let line = format!("\nnetfix_last_window_nic_info{nic}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }

    #[test]
    fn what_the_guard_has_done_is_counted() {
        let mut record = GuardRecord {
            restores: 3,
            ..GuardRecord::default()
        };
        record.pace.given_up = true;
        record.last = Some(crate::model::window::UnplannedEnd {
            window: None,
            at: "2026-11-21T21:00:59.500Z".to_owned(),
            exit: 5,
        });
        let around = Surroundings {
            guard: Some(record),
            ..Surroundings::default()
        };
        let text = metrics(&CheckView::default(), &[], &around);
        for line in [
            "netfix_guard_restores_total 3",
            "netfix_guard_given_up 1",
            "netfix_guard_last_result 5",
            "netfix_guard_last_restore_timestamp_seconds 1795294859.5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(text.contains("# TYPE netfix_guard_restores_total counter"));
    }

    #[test]
    fn a_check_that_knows_nothing_still_has_its_verdict() {
        let check = CheckView {
            status: CheckStatus::Unknown,
            ..CheckView::default()
        };
        let text = metrics(&check, &[], &Surroundings::default());
        assert!(text.contains("\nnetfix_check_status 3\n"), "{text}");
        assert!(text.contains("\nnetfix_drift_steps 0\n"), "{text}");
        for absent in [
            "netfix_unsupported_objects",
            "netfix_window_open",
            "netfix_last_window",
        ] {
            assert!(!text.contains(absent), "{text}");
        }
    }
}
