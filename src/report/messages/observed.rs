//! What an open window leaves, and the next command: the same words on every screen.

use std::fmt;

use crate::model::next::{CommandName, KubeletNow, LostPods, NextStep, RunningCommand, WindowNow};
use crate::model::text::{count, escape};
use crate::report::messages::and;
use crate::report::text::{join, or_dash, others, verb};

impl fmt::Display for WindowNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = join(facts(self), "; ");
        let separator = if facts.is_empty() { "" } else { ". " };
        write!(f, "{facts}{separator}{}", next(self))
    }
}

/// What was observed, one fact each.
pub(in crate::report) fn facts(now: &WindowNow) -> Vec<String> {
    let lost = now.lost.as_ref().map(|lost| lost_pods(lost, false));
    let unread = matches!(now.next, NextStep::Restore | NextStep::WaitForCommand)
        .then(|| "the pods could not be read".to_owned());
    let running = now.running.as_ref().filter(|_| now.next != NextStep::Wait);
    let all = [running.map(still_runs), kubelet(now), lost.or(unread)];
    all.into_iter().flatten().collect()
}

/// The same for the refusal that concerns them: with the names of the pods.
pub(super) fn named(now: &WindowNow) -> String {
    let lost = now.lost.as_ref().filter(|lost| !lost.pods.is_empty());
    let lost = lost.map(|lost| lost_pods(lost, true));
    let running = now.running.as_ref().map(still_runs);
    join(running.into_iter().chain(lost), "; ")
}

fn still_runs(running: &RunningCommand) -> String {
    format!("{} still runs (pid {})", name(running.name), running.pid)
}

/// A command of a window in a sentence.
pub(in crate::report) fn name(command: CommandName) -> &'static str {
    match command {
        CommandName::Command => "COMMAND",
        CommandName::Rollback => "the rollback",
    }
}

fn kubelet(now: &WindowNow) -> Option<String> {
    let unit = unit(now);
    Some(match now.kubelet {
        KubeletNow::NotPaused => return None,
        KubeletNow::Running => format!("{unit} runs"),
        KubeletNow::Stopped => format!("{unit} is stopped"),
        KubeletNow::Masked => format!("{unit} is stopped and masked"),
        KubeletNow::Unknown => format!("{unit} was paused when the record was last written"),
    })
}

/// What a reboot leaves of a window.
pub(in crate::report) fn ended_by_reboot(now: &WindowNow) -> String {
    let pause = now
        .unit
        .as_deref()
        .map(|unit| format!(", and the pause of {}", escape(unit)));
    format!("a reboot ended the window{}", pause.unwrap_or_default())
}

fn unit(now: &WindowNow) -> String {
    or_dash(now.unit.as_deref().map(escape))
}

fn lost_pods(lost: &LostPods, has_names: bool) -> String {
    let unknown = others([(lost.unknown, "unknown")]);
    let names = and(lost.pods.iter().map(|pod| escape(&pod.title())));
    let names = if has_names && !names.is_empty() {
        format!(" ({names})")
    } else {
        String::new()
    };
    match lost.pods.len() {
        0 => format!("no pod has lost its network{unknown}"),
        some => format!(
            "{} {} network{names}{unknown}",
            count(some, "pod"),
            verb(some, "has lost its", "have lost their")
        ),
    }
}

/// The next command, as a sentence without its full stop.
pub(in crate::report) fn next(now: &WindowNow) -> String {
    match (now.next, &now.running) {
        (NextStep::Wait, _) => "Wait for its end: `netfix status --follow`".to_owned(),
        (NextStep::WaitForCommand, Some(running)) => format!(
            "Wait for {} or stop it (`kill {}`). Then run `netfix restore`, then `netfix resume`",
            name(running.name),
            running.pid
        ),
        (NextStep::WaitForCommand | NextStep::Restore, _) => {
            "Run `netfix restore`, then `netfix resume`".to_owned()
        }
        (NextStep::Force, _) => "Run `netfix resume --force`: no checkpoint has what they lost, and only kubelet can rebuild them"
            .to_owned(),
        (NextStep::Resume, _) => format!("Run `netfix resume`, which starts {}", unit(now)),
        (NextStep::Close, _) => "Run `netfix resume`, which closes the record".to_owned(),
        (NextStep::Nothing, _) => {
            "Nothing to do: the next command that takes the lock closes the record".to_owned()
        }
    }
}
