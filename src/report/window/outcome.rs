//! How a window went, by the record of every pod and not by an exit code alone.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::fate::Fate;
use crate::model::text::word;
use crate::model::window::{Run, Shown, Standing, Window, WindowPod};
use crate::model::{Code, State, WindowNic};
use crate::report::style::Tone;

/// How a window went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is open; nothing is known to have failed.
    Open,
    /// Every pod and the host have shown what they showed before.
    Well,
    /// Everything is back, and of something no answer has shown it.
    Restored,
    /// COMMAND reloaded no driver, and no pod has lost anything.
    NothingLost,
    /// The same as `Well` for the selected pods; no other pod at risk has lost anything.
    SelectionWell,
    /// The same as `Restored` for the selected pods.
    SelectionRestored,
    /// A person gave up what pods or the host had lost.
    GivenUp,
    /// Some pod is not back, does not reach a gateway, was rebuilt, or went or was restarted for no known reason.
    PodsAffected,
    /// Every pod is back, and the host is not as it was.
    HostAffected,
    /// Every pod is back, after a rollback.
    RolledBack,
    /// Every pod is back; the user's command failed.
    CommandFailed,
    /// netfix died in a phase, or the record has no end.
    Interrupted,
    /// Refused before anything was changed.
    Refused,
    /// It failed in another way.
    Failed,
    /// Nothing is known to have failed, but not everything is known.
    Unknown,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(self, f)
    }
}

impl Ending {
    pub(super) fn of(window: &Window, standing: Standing, pods: &PodCounts) -> Self {
        let has_died =
            window.phase().is_some() || window.phases.iter().any(|phase| phase.to.is_none());
        match window.exit {
            _ if standing == Standing::Left && has_died => Self::Interrupted,
            _ if standing != Standing::Closed => Self::Open,
            _ if window.is_ended_by_reboot() => Self::Interrupted,
            _ if window.is_accept() => Self::GivenUp,
            _ if pods.affected() > 0 => Self::PodsAffected,
            None => Self::Interrupted,
            // The next netfix may have completed what a killed one left.
            _ if window.ended.is_none() || window.phase().is_some() => Self::Interrupted,
            Some(1) if is_rolled_back(window) => Self::RolledBack,
            exit if has_died && exit != Some(0) => Self::Interrupted,
            Some(4) => Self::Refused,
            _ if is_host_affected(window) => Self::HostAffected,
            _ if window.run.as_ref().is_some_and(has_failed) => Self::CommandFailed,
            _ if is_still_paused(window) => Self::Failed,
            // Nothing but the restore was done: no answer, and no runtime, was asked.
            Some(0) if window.is_bare_restore() && pods.unknown == 0 => Self::Restored,
            Some(0) if pods.unknown + pods.rebuilt_unknown + pods.unselected_unknown > 0 => {
                Self::Unknown
            }
            Some(0) if window.host_shown == Some(Shown::Unknown) => Self::Unknown,
            Some(0) if is_nothing_lost(window) => Self::NothingLost,
            Some(0) => {
                let is_whole = pods.unselected == 0 && !has_unselected_host(window);
                match (is_whole, is_shown(window, pods)) {
                    (true, true) => Self::Well,
                    (true, false) => Self::Restored,
                    (false, true) => Self::SelectionWell,
                    (false, false) => Self::SelectionRestored,
                }
            }
            Some(_) => Self::Failed,
        }
    }

    /// The headline.
    pub(in crate::report) fn title(self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Well => "All well",
            Self::Restored => "All restored",
            Self::NothingLost => "Nothing was lost",
            Self::SelectionWell => "Selected pods well",
            Self::SelectionRestored => "Selected pods restored",
            Self::GivenUp => "Given up",
            Self::PodsAffected => "Pods affected",
            Self::HostAffected => "Host affected",
            Self::RolledBack => "Rolled back",
            Self::CommandFailed => "COMMAND failed",
            Self::Interrupted => "Interrupted",
            Self::Refused => "Refused",
            Self::Failed => "Failed",
            Self::Unknown => "Not all known",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Well => Tone::Good,
            Self::PodsAffected | Self::HostAffected | Self::Failed => Tone::Bad,
            Self::Open => Tone::Calm,
            Self::Restored
            | Self::NothingLost
            | Self::GivenUp
            | Self::RolledBack
            | Self::CommandFailed
            | Self::Interrupted
            | Self::Refused
            | Self::SelectionWell
            | Self::SelectionRestored
            | Self::Unknown => Tone::Warning,
        }
    }
}

/// How a pod is after the window; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodOutcome {
    /// Something of it is missing, or a gateway does not answer.
    NotBack,
    /// It was rebuilt.
    Rebuilt,
    /// It is gone, and no other is in its place.
    Gone,
    /// It was not checked, or a gateway could not be probed.
    Unknown,
    /// It has everything, or lost nothing.
    Back,
}

impl PodOutcome {
    /// The outcome of a pod in a record.
    #[must_use]
    pub fn of(pod: &WindowPod) -> Self {
        if pod.is_gone() {
            return Self::Gone;
        }
        if pod.fate() == Some(Fate::Rebuilt) {
            return Self::Rebuilt;
        }
        match (pod.state, pod.shown()) {
            (_, Some(Shown::NotAgain)) => Self::NotBack,
            _ if pod.became_cut_off() => Self::NotBack,
            // It was so before the window.
            (Some(State::CutOff), _) => Self::Unknown,
            (Some(state), _) if !state.is_good() && state != State::Unknown => Self::NotBack,
            (Some(State::Unknown) | None, _) | (_, Some(Shown::Unknown)) => Self::Unknown,
            (Some(_), _) => Self::Back,
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::NotBack | Self::Rebuilt => Tone::Bad,
            Self::Gone | Self::Unknown => Tone::Warning,
            Self::Back => Tone::Good,
        }
    }
}

/// Whether an operator must look at what happened to a pod, beside a rebuild.
fn is_unexpected(pod: &WindowPod) -> bool {
    let is_it = matches!(pod.fate(), Some(Fate::Gone | Fate::Restarted | Fate::Ended));
    is_it && pod.unexpected
}

/// Pods by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCounts {
    /// All pods.
    pub total: usize,
    /// Pods that have everything, or lost nothing.
    pub back: usize,
    /// Pods, counted above too, of which nothing answered before, or that have nothing to probe.
    pub not_shown: usize,
    /// Pods that miss something, or whose gateway does not answer.
    pub not_back: usize,
    /// Pods that were rebuilt.
    pub rebuilt: usize,
    /// Pods that are gone, with no other in their place.
    pub gone: usize,
    /// Pods, counted above too, of which a container was restarted.
    pub restarted: usize,
    /// Pods that are gone or had a container end, and that an operator must look at.
    pub unexpected: usize,
    /// Pods that were not checked.
    pub unknown: usize,
    /// Pods that were not checked for a rebuild.
    pub rebuilt_unknown: usize,
    /// Other pods, which were at risk and not selected.
    pub unselected: usize,
    /// Those of them that have lost something.
    pub unselected_lost: usize,
    /// Those of them of which nothing is known.
    pub unselected_unknown: usize,
}

impl PodCounts {
    pub(super) fn of(window: &Window) -> Self {
        let pods = || window.pods.iter();
        let outcomes: Vec<PodOutcome> = pods().map(PodOutcome::of).collect();
        let count = |outcome| outcomes.iter().filter(|one| **one == outcome).count();
        let unselected = |is_it: fn(Option<State>) -> bool| {
            let others = window.unselected.iter();
            others.filter(|pod| is_it(pod.state)).count()
        };
        Self {
            total: window.pods.len(),
            back: count(PodOutcome::Back),
            not_shown: pods()
                .filter(|pod| {
                    PodOutcome::of(pod) == PodOutcome::Back && pod.shown() == Some(Shown::Never)
                })
                .count(),
            not_back: count(PodOutcome::NotBack),
            rebuilt: count(PodOutcome::Rebuilt),
            gone: count(PodOutcome::Gone),
            restarted: pods()
                .filter(|pod| pod.fate() == Some(Fate::Restarted))
                .count(),
            unexpected: pods().filter(|pod| is_unexpected(pod)).count(),
            unknown: count(PodOutcome::Unknown),
            rebuilt_unknown: pods().filter(|pod| pod.rebuilt.is_none()).count(),
            unselected: window.unselected.len(),
            unselected_lost: unselected(|state| state == Some(State::Degraded)),
            unselected_unknown: unselected(|state| matches!(state, None | Some(State::Unknown))),
        }
    }

    /// Pods that are not back, were rebuilt or need a look for what happened to them, selected or not.
    pub(super) fn affected(&self) -> usize {
        self.not_back + self.rebuilt + self.unexpected + self.unselected_lost
    }
}

/// Whether answers have shown that the network of every pod and of the host is as it was.
fn is_shown(window: &Window, pods: &PodCounts) -> bool {
    match window.host_shown {
        _ if pods.not_shown > 0 => false,
        Some(shown) => shown == Shown::Again,
        // The host has no gateway, or `netfix pause` has only paused the unit.
        None => pods.back > 0 || window.host.is_none(),
    }
}

/// Whether COMMAND left every device of the host as it was, and nothing was restored.
fn is_nothing_lost(window: &Window) -> bool {
    let devices = window.devices_lost.as_ref();
    let is_untouched = |pod: &WindowPod| pod.lost.is_none() && pod.steps == 0;
    window.run.is_some()
        && devices.is_some_and(BTreeSet::is_empty)
        && window.host == Some(State::InSync)
        && window.settings.is_empty()
        && window.pods.iter().all(is_untouched)
}

/// Whether the last restore left something of the host missing, a gateway of it is silent, or one of its NICs is absent.
fn is_host_affected(window: &Window) -> bool {
    let is_absent = |nics: &Vec<WindowNic>| nics.iter().any(WindowNic::is_absent);
    window.host.is_some_and(|state| !state.is_good())
        || window.host_shown == Some(Shown::NotAgain)
        || window.nics.as_ref().is_some_and(is_absent)
        || names_dead_indexes(window)
}

/// Whether something of the host names a link by an ifindex that it has no more.
pub(super) fn names_dead_indexes(window: &Window) -> bool {
    let mut problems = window.problems.iter();
    problems.any(|problem| problem.code() == Code::IfindexNamed && problem.is_error())
}

/// Whether something of the host that no selected pod needs was left as it is.
fn has_unselected_host(window: &Window) -> bool {
    let mut problems = window.problems.iter();
    problems.any(|problem| problem.code() == Code::NotSelected && problem.pod.is_none())
}

/// Whether `upgrade` brought a window to its end after a rollback.
fn is_rolled_back(window: &Window) -> bool {
    window.rollback.is_some()
        && window
            .closed_by
            .as_deref()
            .is_none_or(|by| by == window.command)
}

/// Whether the unit was not seen running again.
pub(super) fn is_still_paused(window: &Window) -> bool {
    window
        .pause
        .as_ref()
        .is_some_and(|pause| pause.paused.is_some() && pause.resumed.is_none())
}

/// Whether the user's command is known to have failed.
pub(super) fn has_failed(run: &Run) -> bool {
    let has_failed = run.error.is_some() || run.signal.is_some() || run.timed_out.is_some();
    has_failed || run.exit.is_some_and(|exit| exit != 0)
}
