//! The document of a window: its record, and what is computed from it.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::outcome::{Ending, PodCounts, PodOutcome};
use super::sentence::sentence;
pub use super::settings::SettingCounts;
use super::words;
use crate::model::next::WindowNow;
pub use crate::model::window::Standing;
use crate::model::window::{GuardDeed, WindowPod};
use crate::model::{PodId, State, Window};
use crate::report::text::by_name;

/// The answer of `report`.
#[derive(Debug, Clone, Serialize)]
pub struct ReportView {
    /// The record, as it is stored.
    #[serde(flatten)]
    pub window: Window,
    /// What is computed from it.
    pub computed: Computed,
}

/// What is computed from a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Computed {
    /// Whether the window is still open.
    pub open: bool,
    /// Whether the netfix that opened it is running; null once it is closed.
    pub at_work: Option<bool>,
    /// How the window went, in one word.
    pub verdict: Ending,
    /// How the window went, in a sentence.
    pub sentence: String,
    /// The pods after the window.
    pub pods: PodCounts,
    /// How long the unit was stopped, in milliseconds; null when it was not, or is still.
    pub pause_ms: Option<u64>,
    /// The pods' outages.
    pub outages: Outages,
    /// What became of the settings of each NIC that lost some.
    pub settings: Vec<SettingCounts>,
    /// The path of the HTML page that was written.
    pub html: Option<String>,
    /// What an open window leaves, and what to do; null when it is closed, or that was not observed.
    pub next: Option<WindowNow>,
}

/// Outages: from the loss of the link to the first answer of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outages {
    /// The outages with a known begin and end, the longest first.
    pub pods: Vec<Outage>,
    /// The longest, in milliseconds; null when none is known.
    pub worst_ms: Option<u64>,
    /// The median, in milliseconds; null when none is known.
    pub median_ms: Option<u64>,
    /// Pods that lost their link, with no known answer since; without those that are gone, and those that are restored and have no
    /// gateway to ask.
    pub unanswered: usize,
    /// Restored pods of which nobody saw the loss: it is older than the window.
    pub unseen: usize,
}

/// The outage of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The pod.
    pub id: PodId,
    /// In milliseconds.
    pub ms: u64,
}

impl Outages {
    fn of(window: &Window) -> Self {
        let known = window.pods.iter().filter_map(|pod| {
            Some(Outage {
                id: pod.info.id.clone(),
                ms: pod.outage()?,
            })
        });
        let mut pods: Vec<Outage> = known.collect();
        pods.sort_by_key(|outage| Reverse(outage.ms));
        let is_back = |pod: &WindowPod| pod.state.is_some_and(State::is_good);
        let is_silent = |pod: &&WindowPod| {
            let has_asked = !pod.gateways.is_empty() || !pod.targets.is_empty();
            pod.lost.is_some()
                && pod.answered.is_none()
                && !pod.is_gone()
                && (has_asked || !is_back(pod))
        };
        let is_unseen = |pod: &&WindowPod| {
            window.is_unplanned() && is_back(pod) && pod.steps > 0 && pod.lost.is_none()
        };
        let last = pods.len().checked_sub(1);
        Self {
            worst_ms: pods.first().map(|outage| outage.ms),
            median_ms: last.map(|last| pods[last / 2].ms.midpoint(pods[pods.len() / 2].ms)),
            unanswered: window.pods.iter().filter(is_silent).count(),
            unseen: window.pods.iter().filter(is_unseen).count(),
            pods,
        }
    }
}

impl ReportView {
    /// The report of a window by its record alone.
    #[must_use]
    pub fn new(window: Window, standing: Standing) -> Self {
        Self::observed(window, standing, None)
    }

    /// The report of a window, with what it leaves at this moment if it is open.
    #[must_use]
    pub fn observed(window: Window, standing: Standing, now: Option<&WindowNow>) -> Self {
        let pods = PodCounts::of(&window);
        let verdict = Ending::of(&window, standing, &pods);
        let pause = window.pause.as_ref();
        let is_open = standing != Standing::Closed;
        let computed = Computed {
            open: is_open,
            at_work: is_open.then_some(standing == Standing::Kept),
            verdict,
            sentence: sentence(&window, verdict, (standing, now), &pods),
            pods,
            pause_ms: pause.and_then(|pause| pause.resumed?.checked_sub(pause.paused?)),
            outages: Outages::of(&window),
            settings: SettingCounts::all(&window.settings),
            html: None,
            next: now.cloned(),
        };
        Self { window, computed }
    }

    /// The pods for people: the worst first, then the longest outage.
    pub(super) fn pods(&self) -> Vec<&WindowPod> {
        let mut pods: Vec<&WindowPod> = self.window.pods.iter().collect();
        pods.sort_by(|a, b| by_name(&a.info, &b.info));
        pods.sort_by_key(|pod| (PodOutcome::of(pod), Reverse(pod.outage())));
        pods
    }

    /// A pod's name, for a problem that has its id.
    pub(super) fn title_of(&self, id: &PodId) -> String {
        let known = self.window.pods.iter().find(|pod| pod.info.id == *id);
        known.map_or_else(|| id.to_string(), |pod| pod.info.title())
    }

    /// The latest moment in the record, in milliseconds.
    pub(super) fn span(&self) -> u64 {
        let window = &self.window;
        let (phases, pods, pause) = (&window.phases, &window.pods, &window.pause);
        let phases = phases.iter().flat_map(|phase| [Some(phase.from), phase.to]);
        let pods = pods.iter().flat_map(|pod| [pod.lost, pod.answered]);
        let pause = pause.iter().flat_map(|p| [p.armed, p.paused, p.resumed]);
        let moments = phases.chain(pods).chain(pause).chain([window.ended]);
        moments.flatten().max().unwrap_or_default()
    }
}

/// One line of `report --list`.
#[derive(Debug, Clone, Serialize)]
pub struct WindowView {
    /// The window's id.
    pub id: String,
    /// The record; null when it cannot be read.
    pub window: Option<WindowLine>,
    /// In place of a window: what the guard left alone. Its id is the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<GuardDeed>,
}

/// A window in one line.
#[derive(Debug, Clone, Serialize)]
pub struct WindowLine {
    /// The command that opened it.
    pub command: String,
    /// When it was opened (RFC 3339).
    pub started: String,
    /// How long it was open, in milliseconds; null while it is, or when that is not known.
    pub ended: Option<u64>,
    /// The exit code of the command that closed it.
    pub exit: Option<u8>,
    /// How it went.
    pub verdict: Ending,
    /// The pods after the window.
    pub pods: PodCounts,
    /// COMMAND, the devices that were lost, or the pods whose loss was given up; null where none is known.
    pub cause: Option<String>,
    /// The longest outage of a pod, in milliseconds; null when none is known.
    pub worst_ms: Option<u64>,
}

impl WindowLine {
    /// Whether it ended badly, after this time (RFC 3339).
    pub(in crate::report) fn has_failed_since(&self, since: Option<&str>) -> bool {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        // Snapshots note whole seconds.
        let second = |time: Timestamp| time.as_second();
        let lasted = i64::try_from(self.ended.unwrap_or_default()).unwrap_or(i64::MAX);
        let lasted = SignedDuration::from_millis(lasted);
        let ended = time(&self.started).and_then(|from| from.checked_add(lasted).ok());
        let is_later = since.and_then(time).map(second) < ended.map(second);
        self.exit.is_some_and(|exit| exit != 0) && is_later
    }
}

impl WindowView {
    /// The line of a window that can be read.
    #[must_use]
    pub fn new(report: ReportView) -> Self {
        let ReportView { window, computed } = report;
        let line = WindowLine {
            cause: words::cause(&window),
            worst_ms: computed.outages.worst_ms,
            command: window.command,
            started: window.started,
            ended: window.ended,
            exit: window.exit,
            verdict: computed.verdict,
            pods: computed.pods,
        };
        Self {
            id: window.id,
            window: Some(line),
            left: None,
        }
    }

    /// The line of a window whose record cannot be read.
    #[must_use]
    pub fn unread(id: String) -> Self {
        Self {
            id,
            window: None,
            left: None,
        }
    }

    /// Puts what the guard left alone between the windows, which are in their order.
    pub fn insert_left(all: &mut Vec<Self>, left: GuardDeed) {
        let began = |one: &Self| match (&one.window, &one.left) {
            (Some(line), _) => Some(line.started <= left.at),
            (None, Some(earlier)) => Some(earlier.at <= left.at),
            (None, None) => None,
        };
        let before = all.iter().rposition(|one| began(one) == Some(true));
        let line = Self {
            id: left.at.clone(),
            window: None,
            left: Some(left),
        };
        all.insert(before.map_or(0, |at| at + 1), line);
    }
}
