//! The metrics of one check in Prometheus' text format, for `node_exporter`'s textfile collector.
//!
//! Nothing here can fail, so a half of the metrics never replaces a whole file.

mod last;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use jiff::Timestamp;

use crate::model::{Nic, Problem};
use crate::report::document::CheckView;
use crate::report::window::hold::HoldView;
use crate::report::window::view::ReportView;
use crate::situation::guard_now::GuardNow;

/// What the metrics have besides the findings of the check.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// The open window.
    pub open: PartRead<HoldView>,
    /// The newest closed window.
    pub last: PartRead<ReportView>,
    /// The NICs of the host.
    pub nics: PartRead<Vec<Nic>>,
    /// What `netfix guard` has done; nothing where it never ran.
    pub guard: PartRead<GuardNow>,
}

/// A part of the node that was to be read.
#[derive(Debug, Default)]
pub(crate) enum PartRead<T> {
    /// It cannot be read.
    #[default]
    Unknown,
    /// There is none.
    Nothing,
    /// This.
    This(T),
}

impl<T, E> From<Result<Option<T>, E>> for PartRead<T> {
    fn from(read: Result<Option<T>, E>) -> Self {
        match read {
            Err(_) => Self::Unknown,
            Ok(None) => Self::Nothing,
            Ok(Some(this)) => Self::This(this),
        }
    }
}

impl<T> PartRead<T> {
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    fn this(&self) -> Option<&T> {
        match self {
            Self::This(this) => Some(this),
            Self::Unknown | Self::Nothing => None,
        }
    }
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
    text.gauge(
        "netfix_unread",
        "Whether a part of the node could not be read: then series of it are absent, and none of them is 0.",
        unread(check, problems, around).map(|(part, is_unread)| {
            (labels(&[("part", part)]), u8::from(is_unread))
        }),
    );
    of_windows(around, &mut text);
    let nics = || around.nics.this().into_iter().flatten();
    text.gauge(
        "netfix_nic_info",
        "A NIC of the host, with what its driver reports.",
        nics().map(|nic| (of_nic(nic), 1)),
    );
    text.gauge(
        "netfix_nic_carrier",
        "Whether a NIC of the host has carrier.",
        nics().map(|nic| {
            let device = labels(&[("device", &nic.name.to_string())]);
            (device, u8::from(nic.carrier))
        }),
    );
    text.0
}

/// The parts of the node, by the words of `netfix status`, and whether each could not be read.
fn unread(
    check: &CheckView,
    problems: &[Problem],
    around: &Surroundings,
) -> impl Iterator<Item = (&'static str, bool)> {
    let is_snapshot_hidden = problems.iter().any(Problem::hides_host_record);
    [
        ("network", check.is_unread()),
        ("snapshot", !check.is_checked || is_snapshot_hidden),
        ("window", around.open.is_unknown()),
        ("last", around.last.is_unknown()),
        ("nics", around.nics.is_unknown()),
        ("guard", around.guard.is_unknown()),
    ]
    .into_iter()
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
        check.steps,
    );
    text.gauge(
        "netfix_findings",
        "Findings of netfix check.",
        findings(problems),
    );
    let pods = check.pods.iter();
    let pods = pods.filter_map(|(state, count)| Some((state, (*count)?)));
    text.gauge(
        "netfix_pods",
        "Running pods by state.",
        pods.map(|(state, count)| (format!("{{state=\"{state}\"}}"), count)),
    );
    let lost = check.lost.iter();
    let lost = lost.filter_map(|(cause, count)| Some((cause, (*count)?)));
    text.gauge(
        "netfix_pods_lost",
        "Running pods that have lost their network or a part of it, by what they have lost.",
        lost.map(|(cause, count)| (format!("{{cause=\"{cause}\"}}"), count)),
    );
    text.one(
        "netfix_pods_left_out",
        "Running pods that are not among netfix_pods: their devices have other drivers.",
        check.left_out,
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
        PartRead::Unknown => None,
        PartRead::Nothing => Some((false, false, Some(false))),
        PartRead::This(window) => {
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
    if let Some(window) = around.open.this() {
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
    if let Some(last) = around.last.this() {
        last::of_window(last, text);
    }
    if let Some(guard) = around.guard.this() {
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
mod tests;
