//! How a window went: judged by what the record says of every pod, not by an exit code alone.

use std::fmt;

use serde::Serialize;

use super::text;
use crate::model::window::{Phase, PhaseName, Run, Window, WindowPod};
use crate::model::{Code, Problem, Severity, State};

/// Whether a window is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Closed,
    /// It is open, and the netfix lives that opened it.
    Kept,
    /// It is open, and that netfix does not live: after `pause` that is as it should be.
    Left,
}

impl Standing {
    /// Whether the netfix lives that opened it; `None` once it is closed.
    pub(super) fn at_work(self) -> Option<bool> {
        (self != Self::Closed).then_some(self == Self::Kept)
    }
}

/// How a window went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is open, and nothing is known to have gone wrong.
    Open,
    /// All that was to be done was done, and every pod is back.
    Well,
    /// Some pod is not back, does not reach a gateway, or was rebuilt.
    PodsAffected,
    /// Every pod is back; the user's command failed.
    CommandFailed,
    /// netfix ended within a phase, or nothing says how the window ended.
    Interrupted,
    /// Refused before anything was changed.
    Refused,
    /// It failed in another way.
    Failed,
    /// Nothing is known to have gone wrong, and not everything is known.
    Unknown,
}

impl Ending {
    pub(super) fn of(window: &Window, standing: Standing, pods: &Tally) -> Self {
        let has_died = window.phase().is_some() || window.phases.iter().any(|phase| phase.to.is_none());
        match window.exit {
            _ if standing == Standing::Left && has_died => Self::Interrupted,
            _ if standing != Standing::Closed => Self::Open,
            _ if pods.affected() > 0 => Self::PodsAffected,
            None => Self::Interrupted,
            // What a netfix that was killed has left, the next one may have brought to a good end.
            _ if window.ended.is_none() || window.phase().is_some() => Self::Interrupted,
            exit if has_died && exit != Some(0) => Self::Interrupted,
            Some(4) => Self::Refused,
            _ if window.run.as_ref().is_some_and(has_failed) => Self::CommandFailed,
            _ if is_still_paused(window) => Self::Failed,
            Some(0) if pods.unknown + pods.rebuilt_unknown > 0 => Self::Unknown,
            Some(0) => Self::Well,
            Some(_) => Self::Failed,
        }
    }

    /// The headline.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Open => "Still open",
            Self::Well => "All well",
            Self::PodsAffected => "Pods affected",
            Self::CommandFailed => "Command failed",
            Self::Interrupted => "Interrupted",
            Self::Refused => "Refused",
            Self::Failed => "Failed",
            Self::Unknown => "Not all is known",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Well => Tone::Good,
            Self::PodsAffected | Self::Failed => Tone::Bad,
            Self::Open => Tone::Calm,
            Self::CommandFailed | Self::Interrupted | Self::Refused | Self::Unknown => Tone::Warning,
        }
    }
}

/// How loud something is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Calm,
    Warning,
    Bad,
}

impl Tone {
    /// Its colour on a terminal (an SGR number).
    pub(super) fn sgr(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Calm => "36",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }

    /// Its class on the page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Calm => "calm",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// What became of a pod; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Something of it is missing, or a gateway does not answer.
    NotBack,
    /// It was rebuilt.
    Rebuilt,
    /// Nobody looked, or a gateway could not be asked.
    Unknown,
    /// It has everything, or never lost anything.
    Back,
}

impl Fate {
    /// What a record says of a pod.
    #[must_use]
    pub fn of(window: &Window, pod: &WindowPod) -> Self {
        let any = |answer: Option<bool>| pod.gateways.iter().any(|gateway| gateway.reachable == answer);
        let is_excused = is_excused(window, pod);
        let (is_deaf, is_unasked) = (any(Some(false)) && !is_excused, any(None) && !is_excused);
        let is_bad = |state: State| !state.is_good() && state != State::Unknown;
        if pod.rebuilt == Some(true) {
            return Self::Rebuilt;
        }
        match pod.state {
            _ if is_deaf => Self::NotBack,
            Some(state) if is_bad(state) => Self::NotBack,
            Some(State::Unknown) | None => Self::Unknown,
            Some(_) if is_unasked => Self::Unknown,
            Some(_) => Self::Back,
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::NotBack | Self::Rebuilt => Tone::Bad,
            Self::Unknown => Tone::Warning,
            Self::Back => Tone::Good,
        }
    }
}

/// Whether the record holds a silent gateway of this pod against nobody: it was silent before the window already.
fn is_excused(window: &Window, pod: &WindowPod) -> bool {
    let own = |problem: &&Problem| {
        problem.code == Code::GatewayUnreachable && problem.pod.as_ref() == Some(&pod.info.id)
    };
    let mut own = window.problems.iter().filter(own).peekable();
    own.peek().is_some() && own.all(|problem| problem.severity < Severity::Error)
}

/// How many pods fared how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub total: usize,
    /// Those that have everything, or never lost anything.
    pub back: usize,
    /// Those that miss something, or whose gateway does not answer.
    pub not_back: usize,
    /// Those that were rebuilt.
    pub rebuilt: usize,
    /// Those of which that is not known.
    pub unknown: usize,
    /// Those of which is not known whether they were rebuilt.
    pub rebuilt_unknown: usize,
}

impl Tally {
    pub(super) fn of(window: &Window) -> Self {
        let count = |fate: Fate| window.pods.iter().filter(|pod| Fate::of(window, pod) == fate).count();
        Self {
            total: window.pods.len(),
            back: count(Fate::Back),
            not_back: count(Fate::NotBack),
            rebuilt: count(Fate::Rebuilt),
            unknown: count(Fate::Unknown),
            rebuilt_unknown: window.pods.iter().filter(|pod| pod.rebuilt.is_none()).count(),
        }
    }

    /// Pods that something happened to.
    pub(super) fn affected(&self) -> usize {
        self.not_back + self.rebuilt
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, back, not_back, rebuilt, unknown, rebuilt_unknown } = *self;
        match total {
            1 if unknown == total => return f.write_str("whether the one pod is back is not known"),
            _ if unknown == total => return write!(f, "whether the {total} pods are back is not known"),
            1 if back == total => f.write_str("the one pod is back")?,
            _ if back == total => write!(f, "all {total} pods are back")?,
            _ => write!(f, "{back} of {total} pods are back")?,
        }
        match not_back {
            0 => {}
            1 => f.write_str(", 1 is not")?,
            count => write!(f, ", {count} are not")?,
        }
        if unknown > 0 {
            write!(f, ", of {unknown} it is not known")?;
        }
        match rebuilt {
            0 if rebuilt_unknown == 0 => f.write_str(", none was rebuilt")?,
            0 => {}
            1 => f.write_str(", 1 was rebuilt")?,
            count => write!(f, ", {count} were rebuilt")?,
        }
        match rebuilt_unknown {
            0 => Ok(()),
            1 => f.write_str("; whether 1 was rebuilt is not known"),
            count => write!(f, "; whether {count} were rebuilt is not known"),
        }
    }
}

/// Whether nobody has seen the unit running again.
fn is_still_paused(window: &Window) -> bool {
    window.hold.as_ref().is_some_and(|hold| hold.paused.is_some() && hold.resumed.is_none())
}

/// Whether the user's command is known to have failed.
pub(super) fn has_failed(run: &Run) -> bool {
    run.error.is_some() || run.signal.is_some() || run.exit.is_some_and(|exit| exit != 0)
}

/// How it went, in one sentence.
pub(super) fn sentence(window: &Window, ending: Ending, standing: Standing, pods: &Tally) -> String {
    let mut parts = Vec::new();
    let died = window.phases.iter().find(|phase| phase.to.is_none());
    match (ending, died) {
        (Ending::Open, Some(Phase { name, .. })) => parts.push(format!("it is in {name}")),
        (Ending::Open, None) if !is_still_paused(window) => parts.push("it is between two phases".to_owned()),
        (_, Some(Phase { name, .. })) => parts.push(format!("it was cut short in {name}")),
        (Ending::Interrupted, None) => parts.push("the record does not say how it ended".to_owned()),
        (Ending::Refused, None) => parts.push("nothing was changed".to_owned()),
        _ => {}
    }
    let was_tried = window.phases.iter().any(|phase| phase.name == PhaseName::Restore);
    if was_tried && ending != Ending::Open && pods.total > 0 {
        parts.push(pods.to_string());
    }
    if let Some(run) = window.run.as_ref().filter(|run| has_failed(run)) {
        parts.push(format!("the command {}", text::run_end(run)));
    }
    match window.hold.as_ref().map(|hold| (&hold.unit, hold.paused, hold.resumed)) {
        Some((unit, Some(_), None)) if standing != Standing::Closed => {
            parts.push(format!("the unit {} is paused, as far as the record says", text::harmless(unit)));
        }
        Some((unit, Some(_), None)) => {
            parts.push(format!("nobody has seen {} running again", text::harmless(unit)));
        }
        Some((unit, Some(from), Some(to))) if window.run.is_none() => {
            let length = text::duration(to.saturating_sub(from));
            parts.push(format!("the pause of {} lasted {length}", text::harmless(unit)));
        }
        _ => {}
    }
    if standing == Standing::Left && ending == Ending::Interrupted {
        parts.push("`netfix resume` closes the window".to_owned());
    }
    let text = parts.join("; ") + ".";
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
