//! The open maintenance window, and kubelet's unit in it.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::model::next::{CommandName, NextStep, RunningCommand, WindowNow};
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER, PhaseName, Rollback, Run};
use crate::report::messages::observed;
use crate::report::text::{Facts, escape, join, or_dash, seconds};
use crate::report::window::words;
use crate::systemd::UnitState;
use crate::window::status::WindowStatus;

/// A maintenance window in short; `report` has all of it.
#[derive(Debug, Clone, Serialize)]
pub struct HoldView {
    /// Its name.
    pub id: String,
    /// The command that opened it.
    pub command: String,
    /// When (RFC 3339).
    pub started: String,
    /// Whether the process that opened it is running.
    pub kept: bool,
    /// Whether a reboot has ended it.
    pub ended_by_reboot: bool,
    /// That process.
    pub pid: u32,
    /// The phase that runs, or in which netfix died; null between phases.
    pub phase: Option<PhaseName>,
    /// kubelet's unit; null when there is none.
    pub unit: Option<String>,
    /// The unit's state now, in systemd's words; null when systemd was not queried.
    pub unit_state: Option<String>,
    /// Whether the unit is masked now; null when systemd was not queried.
    pub held: Option<bool>,
    /// How long the unit was, or has been, paused, in seconds; null when it was not.
    pub paused_for: Option<u64>,
    /// Seconds until the deadline starts the unit; null when nothing is paused.
    pub deadline_in: Option<u64>,
    /// The user's command; null when none was started.
    pub run: Option<Run>,
    /// The rollback; null when none was started.
    pub rollback: Option<Rollback>,
    /// How the window ended; null while it is open.
    pub exit: Option<u8>,
    /// The file with the messages and COMMAND's output.
    pub log: Option<String>,
    /// What it leaves, and what to do; null where that was not observed.
    pub next: Option<WindowNow>,
}

/// What to do, in one word, as commands and in a sentence; what of the window runs; the number of lost pods.
impl Serialize for WindowNow {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut view = to.serialize_struct("WindowNow", 6)?;
        view.serialize_field("step", &self.next)?;
        view.serialize_field("commands", &self.next.commands())?;
        view.serialize_field("sentence", &observed::next(self))?;
        view.serialize_field("running", &self.running)?;
        view.serialize_field("kubelet", &self.kubelet)?;
        view.serialize_field("lost", &self.lost.as_ref().map(|lost| lost.pods.len()))?;
        view.end()
    }
}

impl HoldView {
    /// How a window stands.
    pub(crate) fn new(status: &WindowStatus) -> Self {
        let WindowStatus {
            window,
            now,
            is_at_work,
            is_of_other_boot,
            unit,
            runs_since,
            observed,
        } = status;
        let pause = window.pause.as_ref();
        let resumed = pause.and_then(|pause| pause.resumed).or(*runs_since);
        let of_this_boot = pause.filter(|_| !is_of_other_boot);
        let paused_for = of_this_boot.and_then(|pause| {
            let until = resumed.unwrap_or(*now);
            Some(until.saturating_sub(pause.paused?) / 1000)
        });
        let stopped = of_this_boot.filter(|_| resumed.is_none());
        let deadline_in = stopped.and_then(|pause| {
            let at = pause.armed? / 1000 + pause.deadline;
            Some(at.saturating_sub(now / 1000))
        });
        Self {
            id: window.id.clone(),
            command: window.command.clone(),
            started: window.started.clone(),
            kept: *is_at_work,
            ended_by_reboot: *is_of_other_boot,
            pid: window.owner.pid,
            phase: window.phase(),
            unit: pause.map(|pause| pause.unit.clone()),
            unit_state: unit
                .as_ref()
                .map(|unit| format!("{} ({})", unit.active, unit.sub)),
            held: unit.as_ref().map(UnitState::is_held),
            paused_for,
            deadline_in,
            run: window.run.clone(),
            rollback: window.rollback.clone(),
            exit: window.exit,
            log: window.log.clone(),
            next: observed.clone(),
        }
    }
}

impl HoldView {
    /// Its labels in metrics.
    pub(in crate::report) fn labels(&self) -> [(&'static str, String); 3] {
        let phase = self.phase.map(|phase| phase.to_string());
        let next = self.next.as_ref().map(|now| now.next.to_string());
        [
            ("window", self.id.clone()),
            ("phase", phase.unwrap_or_default()),
            ("next", next.unwrap_or_default()),
        ]
    }
}

/// A few lines, one fact each.
pub(in crate::report) fn facts(view: &HoldView) -> Facts {
    let [id, started, command] = [&view.id, &view.started, &view.command].map(|text| escape(text));
    let by = format!("opened {started} by netfix {command} (pid {})", view.pid);
    let mut facts = vec![("window", format!("{id}, {}", progress(view))), ("", by)];
    facts.extend(commands(view));
    match &view.unit {
        None => facts.push(("kubelet", "not paused".to_owned())),
        Some(unit) => facts.extend(kubelet(view, &escape(unit))),
    }
    let next = view.next.as_ref();
    let next = next.filter(|now| now.next != NextStep::Nothing);
    facts.extend(next.map(|now| ("next", observed::next(now))));
    facts
}

/// The same in short: how far the window is, the command that runs or failed, and kubelet.
pub(in crate::report) fn short(view: &HoldView) -> Facts {
    let [id, command] = [&view.id, &view.command].map(|text| escape(text));
    let by = format!("{id}, {} ({command}, pid {})", progress(view), view.pid);
    let running = view.next.as_ref().and_then(|next| next.running.as_ref());
    let has_failed = |run: &Run| run.exit != Some(0);
    let mut commands = commands(view);
    if running.is_none() && !view.run.as_ref().is_some_and(has_failed) {
        commands.clear();
    }
    let mut facts = vec![("window", by)];
    facts.extend(commands);
    facts.extend(view.unit.as_deref().map(|unit| {
        let unit = escape(unit);
        let held = if view.held == Some(true) {
            "masked"
        } else {
            "paused"
        };
        let state = match (view.paused_for, view.deadline_in) {
            (Some(time), Some(left @ 1..)) => {
                let [time, left] = [time, left].map(seconds);
                format!("{unit} {held} for {time}; starts again in {left}")
            }
            _ => join(kubelet(view, &unit).iter().map(|(_, fact)| fact), ", "),
        };
        ("kubelet", state)
    }));
    facts
}

/// COMMAND and the rollback.
fn commands(view: &HoldView) -> Facts {
    let running = view.next.as_ref().and_then(|next| next.running.as_ref());
    let line = |run: &Run, name: CommandName| {
        let state = match running.filter(|running| running.name == name) {
            Some(RunningCommand { pid, for_ms, .. }) => {
                let time = for_ms.map(|ms| format!(" for {}", seconds(ms / 1000)));
                format!("pid {pid}, runs{}", time.unwrap_or_default())
            }
            None => words::end(run, ""),
        };
        format!("{}, {state}", words::argv(run))
    };
    let command = view
        .run
        .as_ref()
        .map(|run| ("command", line(run, CommandName::Command)));
    let rollback = view.rollback.as_ref().map(|one| &one.run);
    let rollback = rollback.map(|run| ("rollback", line(run, CommandName::Rollback)));
    command.into_iter().chain(rollback).collect()
}

/// How far the window has come.
fn progress(view: &HoldView) -> String {
    match (view.phase, view.exit) {
        _ if view.ended_by_reboot => {
            let phase = view.phase.map(|phase| format!(" in phase {phase}"));
            format!("ended by a reboot{}", phase.unwrap_or_default())
        }
        (_, Some(exit)) => format!("closed with exit code {exit}"),
        // A pause outlives its process.
        (None, None) if view.command == "pause" => "open".to_owned(),
        (Some(phase), None) if view.kept => format!("in phase {phase}"),
        (Some(phase), None) => format!("netfix died in phase {phase}"),
        (None, None) if view.kept => "open, between two phases".to_owned(),
        (None, None) => "open, its netfix is gone".to_owned(),
    }
}

fn kubelet(view: &HoldView, unit: &str) -> Facts {
    let paused_for = view.paused_for;
    if view.ended_by_reboot && view.unit_state.is_none() {
        return vec![("kubelet", format!("the reboot ended the pause of {unit}"))];
    }
    if view.exit.is_some() && !view.ended_by_reboot {
        let paused = paused_for.map(|time| format!(" after a pause of {}", seconds(time)));
        let paused = paused.unwrap_or_default();
        return vec![("kubelet", format!("{unit} runs again{paused}"))];
    }
    let held = match view.held {
        Some(true) => ", masked",
        Some(false) => ", not masked",
        None => "",
    };
    let now = escape(&or_dash(view.unit_state.as_ref()));
    let paused = paused_for.map(|time| {
        let [time, not_ready, eviction] = [time, NOT_READY_AFTER, EVICTION_AFTER].map(seconds);
        format!("paused for {time} (NotReady after {not_ready}, eviction after {eviction})")
    });
    let deadline = view.deadline_in.map(|left| match left {
        0 => "the deadline has passed".to_owned(),
        left => format!("systemd starts it again in {} (deadline)", seconds(left)),
    });
    let mut facts = vec![("kubelet", format!("{unit} is {now}{held}"))];
    if view.ended_by_reboot {
        return facts;
    }
    let runs_again = view.held == Some(false) && view.deadline_in.is_none();
    facts.push(match paused_for {
        Some(time) if runs_again => ("", format!("runs again after a pause of {}", seconds(time))),
        _ => ("", paused.unwrap_or_else(|| "not paused".to_owned())),
    });
    facts.extend(deadline.map(|deadline| ("", deadline)));
    facts
}
