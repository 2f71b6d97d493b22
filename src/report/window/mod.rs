//! What is left to tell of a maintenance window: the record, and what follows from it.

mod chart;
mod figures;
mod histogram;
mod human;
mod page;
mod scale;
mod tables;
mod text;
mod verdict;

use std::cmp::Reverse;

use serde::Serialize;

use crate::model::{PodId, Window, window::WindowPod};

pub(super) use human::{list, report};
pub use page::page;
pub(super) use text::milliseconds;
pub use verdict::{Ending, Fate, Standing, Tally};

/// The answer of `report`.
#[derive(Debug, Clone, Serialize)]
pub struct ReportView {
    /// The record, as it is stored.
    #[serde(flatten)]
    pub window: Window,
    /// What follows from it.
    pub computed: Computed,
}

/// What follows from a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Computed {
    /// Whether the window is still open.
    pub open: bool,
    /// Whether the netfix lives that opened it; null once it is closed.
    pub at_work: Option<bool>,
    /// How it went, in one word.
    pub verdict: Ending,
    /// The same in a sentence.
    pub sentence: String,
    /// How the pods fared.
    pub pods: Tally,
    /// How long the unit was stopped, in milliseconds; null when it was not, or is still.
    pub pause_ms: Option<u64>,
    /// How long pods were cut off.
    pub outages: Outages,
    /// The page that was written, where one was asked for.
    pub html: Option<String>,
}

/// How long pods were cut off: from the loss of the link to the first answer of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outages {
    /// Of each pod of which both moments are known, the longest first.
    pub pods: Vec<Outage>,
    /// The longest, in milliseconds; null when none is known.
    pub worst_ms: Option<u64>,
    /// The median, in milliseconds; null when none is known.
    pub median_ms: Option<u64>,
    /// Pods that lost their link and of which no answer is known.
    pub unanswered: usize,
}

/// How long one pod was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// The pod.
    pub id: PodId,
    /// In milliseconds.
    pub ms: u64,
}

impl Outages {
    fn of(window: &Window) -> Self {
        let known = |pod: &WindowPod| Some(Outage { id: pod.info.id.clone(), ms: pod.outage()? });
        let mut pods: Vec<Outage> = window.pods.iter().filter_map(known).collect();
        pods.sort_by_key(|outage| Reverse(outage.ms));
        let unanswered = window.pods.iter().filter(|pod| pod.lost.is_some() && pod.answered.is_none());
        let middle = [pods.len().checked_sub(1).map(|last| last / 2), Some(pods.len() / 2)];
        let middle = middle.map(|at| at.and_then(|at| pods.get(at)).map(|outage| outage.ms));
        let median_ms = match middle {
            [Some(one), Some(other)] => Some(one.midpoint(other)),
            _ => None,
        };
        let unanswered = unanswered.count();
        Self { worst_ms: pods.first().map(|outage| outage.ms), median_ms, unanswered, pods }
    }
}

impl ReportView {
    /// The report of a window.
    #[must_use]
    pub fn new(window: Window, standing: Standing) -> Self {
        let pods = Tally::of(&window);
        let verdict = Ending::of(&window, standing, &pods);
        let hold = window.hold.as_ref();
        let computed = Computed {
            open: standing != Standing::Closed,
            at_work: standing.at_work(),
            verdict,
            sentence: verdict::sentence(&window, verdict, standing, &pods),
            pods,
            pause_ms: hold.and_then(|hold| hold.resumed?.checked_sub(hold.paused?)),
            outages: Outages::of(&window),
            html: None,
        };
        Self { window, computed }
    }

    /// The pods as people want to see them: what went wrong first, then the longest outage.
    fn pods(&self) -> Vec<&WindowPod> {
        let mut pods: Vec<&WindowPod> = self.window.pods.iter().collect();
        pods.sort_by_key(|pod| (Fate::of(&self.window, pod), Reverse(pod.outage()), pod.info.title()));
        pods
    }

    /// A pod's name, for a problem that has its id.
    fn title_of(&self, id: &PodId) -> String {
        let known = self.window.pods.iter().find(|pod| pod.info.id == *id);
        known.map_or_else(|| id.to_string(), |pod| pod.info.title())
    }

    /// How long netfix was at work, in milliseconds; `None` while the window is open or when nobody knows.
    fn lasted(&self) -> Option<u64> {
        self.window.ended
    }

    /// The latest moment that the record speaks of, in milliseconds.
    fn span(&self) -> u64 {
        let window = &self.window;
        let phases = window.phases.iter().flat_map(|phase| [Some(phase.from), phase.to]);
        let pods = window.pods.iter().flat_map(|pod| [pod.lost, pod.answered]);
        let hold = window.hold.iter().flat_map(|hold| [hold.armed, hold.paused, hold.resumed]);
        phases.chain(pods).chain(hold).chain([window.ended]).flatten().max().unwrap_or_default()
    }
}

/// One line of `report --list`.
#[derive(Debug, Clone, Serialize)]
pub struct WindowView {
    /// The window's id.
    pub id: String,
    /// What the record says; null when it cannot be read.
    pub window: Option<WindowLine>,
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
    /// How the command that closed it ended.
    pub exit: Option<u8>,
    /// How it went.
    pub verdict: Ending,
    /// How the pods fared.
    pub pods: Tally,
}

impl WindowView {
    /// The line of a window that can be read.
    #[must_use]
    pub fn new(report: ReportView) -> Self {
        let ReportView { window, computed } = report;
        let line = WindowLine {
            command: window.command,
            started: window.started,
            ended: window.ended,
            exit: window.exit,
            verdict: computed.verdict,
            pods: computed.pods,
        };
        Self { id: window.id, window: Some(line) }
    }
}
