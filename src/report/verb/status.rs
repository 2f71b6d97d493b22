//! `status`: the snapshots, the pods, the runtimes, the lock and the open window on one screen; `pause` and `resume`: the window.

use jiff::Timestamp;

use crate::report::document::{Document, Extra, RuntimeView, StatusView, Verb};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{
    self, Facts, bounded, count, escape, join, or_dash, others, seconds, verb,
};
use crate::report::window::hold::{self, HoldView};
use crate::report::window::view::WindowView;
use crate::situation::guard_now::GuardState;
use crate::window::network::{FaultyLink, PodNetworks};
use crate::window::status::StatusPart;

/// Printed with `--quiet` too; with `--follow`, the window that was closed.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Status(view)) => {
            let facts = facts(document, view, style.now);
            Screen::new(text::facts(facts, style.lines), None)
        }
        _ => of_hold(document, style),
    }
}

/// One fact a line.
fn facts(document: &Document, status: &StatusView, now: Timestamp) -> Facts {
    let StatusView { lock, window, .. } = status;
    let node = document.node.hostname.as_deref().map(escape);
    let mut facts = vec![("node", or_dash(node))];
    facts.extend(stored(status, now));
    facts.extend(configured(status));
    facts.extend(running(status));
    facts.extend(answered(&status.runtimes));
    let lock = lock.as_deref().map(|by| format!("held by {}", escape(by)));
    facts.push(("lock", lock.unwrap_or_else(|| "free".to_owned())));
    match window {
        Some(window) => facts.extend(hold::facts(window)),
        None => facts.push(("window", unread_or(status, StatusPart::Window, "none open"))),
    }
    facts.extend(guard(status));
    let last = status.last.as_ref().map(ended);
    let last = last.unwrap_or_else(|| unread_or(status, StatusPart::Last, "none"));
    facts.push(("last", last));
    facts
}

/// What `netfix guard` does, and which pods it could not complete.
fn guard(status: &StatusView) -> Facts {
    let Some(guard) = &status.guard else {
        return vec![("guard", unread_or(status, StatusPart::Guard, text::UNKNOWN))];
    };
    let state = match guard.state {
        GuardState::Off => "not running".to_owned(),
        GuardState::Stopped => {
            "not running, though enabled. Run `systemctl restart netfix-guard`".to_owned()
        }
        GuardState::Held => format!("held until {}", or_dash(guard.hold.as_deref().map(escape))),
        GuardState::ReportOnly => format!(
            "reports only: {} would have been done",
            count(to_usize(guard.reported), "restore")
        ),
        GuardState::GivenUp => format!(
            "has given up on {}. Run `netfix restore`",
            join(guard.given_up.iter().map(|link| &link.name), ", ")
        ),
        GuardState::Watching => "watching the pods of the last restore".to_owned(),
        GuardState::Armed => "armed".to_owned(),
    };
    let last = guard.last.as_ref().map(|last| {
        let restores = count(to_usize(guard.restores), "restore");
        format!("; {restores}, the last at {}", escape(&last.at))
    });
    let mut facts = vec![("guard", state + &last.unwrap_or_default())];
    let pods = guard.incomplete.iter();
    let pods = pods.map(|pod| format!("{}: {}", escape(&pod.title), escape(&pod.why)));
    facts.extend(bounded(pods).into_iter().map(|pod| ("", pod)));
    let deeds = guard.deeds.iter();
    let deeds = deeds.map(|deed| ("", format!("{} {}", escape(&deed.at), escape(&deed.text))));
    facts.extend(deeds);
    facts
}

/// A count for people.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The snapshots.
fn stored(status: &StatusView, now: Timestamp) -> Facts {
    let is_future = |time: &str| time.parse().is_ok_and(|time: Timestamp| time > now);
    let last = match (&status.last_success, status.last_success_age) {
        (Some(time), Some(0)) if is_future(time) => {
            format!(
                "last complete one at {}: in the future, because the clock was set back",
                escape(time)
            )
        }
        (Some(time), Some(age)) => {
            format!("last complete one {} ago ({})", seconds(age), escape(time))
        }
        _ => unread_or(status, StatusPart::Snapshot, "no complete one in this boot"),
    };
    let damaged = match status.damaged {
        0 => String::new(),
        damaged => format!(", {damaged} cannot be read"),
    };
    let checkpoints = count(status.checkpoints, "checkpoint");
    let generations = match unread(status, StatusPart::Generations) {
        Some(unread) => format!("generations {unread}"),
        None => format!(
            "{} kept",
            count(status.generations.unwrap_or_default(), "generation")
        ),
    };
    vec![
        ("snapshot", last),
        ("stored", format!("{checkpoints}{damaged}; {generations}")),
        ("", format!("in {}", escape(&status.state_dir))),
    ]
}

/// What the configuration file sets.
fn configured(status: &StatusView) -> Facts {
    let Some(config) = &status.config else {
        return Vec::new();
    };
    let mut facts = vec![("config", escape(&config.file))];
    facts.extend(config.settings.iter().map(|one| {
        let command = one.command.as_deref().map(|command| format!("{command} "));
        let command = command.unwrap_or_default();
        let values = join(one.values.iter().map(|value| escape(value)), ", ");
        ("", format!("{command}--{} {values}", one.option))
    }));
    facts
}

/// The pods and their network.
fn running(status: &StatusView) -> Facts {
    let network = status.network.as_ref();
    let running = status.running;
    let has_lost = network.is_some_and(|network| network.lost > 0);
    let pods = match (running, running.saturating_sub(status.covered)) {
        (0, _) => "none running".to_owned(),
        (_, 0) => format!("{running} running, each with a checkpoint"),
        (_, missing) if has_lost => format!("{running} running, {missing} without a checkpoint"),
        (_, missing) => {
            format!("{running} running, {missing} without a checkpoint. Run `netfix snapshot`")
        }
    };
    let mut facts = vec![("pods", pods)];
    if status.private_namespaces > 0 {
        let namespaces = count(status.private_namespaces, "other network namespace");
        facts.push(("", format!("{namespaces} (no pods)")));
    }
    let network = network.map(|network| networks(network, status));
    let network = network.unwrap_or_else(|| unread_or(status, StatusPart::Network, text::UNKNOWN));
    facts.push(("network", network));
    facts
}

/// What there is where nothing is shown: nothing, or what could not be read.
fn unread_or(status: &StatusView, part: StatusPart, none: &str) -> String {
    unread(status, part).unwrap_or_else(|| none.to_owned())
}

/// The sign for a part that could not be read, and why.
fn unread(status: &StatusView, part: StatusPart) -> Option<String> {
    let one = status.unread.iter().find(|one| one.part == part)?;
    Some(format!("{} ({})", text::UNKNOWN, escape(&one.reason)))
}

/// How many pods have their network, what of the host is broken, and the next command.
fn networks(network: &PodNetworks, status: &StatusView) -> String {
    let PodNetworks {
        pods,
        complete,
        lost,
        cut_off,
        unknown,
        links,
        which,
    } = network;
    let links = join(bounded(links.iter().map(fault)), ", ");
    let unknown = others([(*cut_off, "cut off"), (*unknown, "unknown")]);
    let number = match pods {
        0 => "no pod is running".to_owned(),
        pods => {
            let have = verb(*complete, "has its own", "have theirs");
            format!("{complete} of {} {have}{unknown}", count(*pods, "pod"))
        }
    };
    let joined = match (links.is_empty(), *lost) {
        (true, _) => "",
        (_, 0) => ", but ",
        _ => ": ",
    };
    let next = match (*lost, &status.window) {
        (0, _) => "",
        // The netfix that has the lock is at work.
        _ if status.lock.is_some() => "",
        // The window has its own line for it.
        (_, Some(window)) if window.next.is_some() && !window.ended_by_reboot => "",
        _ => ". Run `netfix restore`",
    };
    let names = which.pods.iter().filter(|_| *complete > 0);
    let names = join(bounded(names.map(|pod| escape(&pod.title()))), ", ");
    let lost = if names.is_empty() {
        names
    } else {
        format!("; lost: {names}")
    };
    format!("{number}{joined}{links}{lost}{next}")
}

fn fault(link: &FaultyLink) -> String {
    format!("{} {}", escape(&link.name.to_string()), link.state)
}

/// How the newest closed window went.
fn ended(view: &WindowView) -> String {
    let id = escape(&view.id);
    let Some(line) = &view.window else {
        return id;
    };
    format!(
        "{id}  {} (exit {})",
        line.verdict.title(),
        or_dash(line.exit)
    )
}

/// The runtimes that answered.
fn answered(runtimes: &[RuntimeView]) -> Facts {
    if runtimes.is_empty() {
        return vec![("runtime", "none answered".to_owned())];
    }
    let facts = runtimes.iter().map(|runtime| {
        let version = runtime.version.as_deref().map(escape);
        let version = version.unwrap_or_else(|| "version unknown".to_owned());
        let pods = count(runtime.pods, "pod");
        let endpoint = escape(&runtime.endpoint);
        ("runtime", format!("{version}, {pods}, at {endpoint}"))
    });
    facts.collect()
}

/// `pause` and `resume`: the window, and the next command.
pub(super) fn of_hold(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        _ if style.is_quiet() => Screen::default(),
        Some(Extra::Window(view)) => {
            let next = next(document.command, view);
            let body = text::facts(hold::facts(view), style.lines) + &next;
            Screen {
                // Followed until its netfix was gone: the facts are those of the problem.
                listed: match document.command {
                    Verb::Status => &document.problems,
                    _ => &[],
                },
                ..Screen::new(body, None)
            }
        }
        // No window was open.
        None if document.exit == 0 => {
            let none = match document.command {
                Verb::Pause | Verb::Resume => "kubelet was not paused",
                _ => "no window is open",
            };
            Screen::new(String::new(), LastLine::well(none))
        }
        _ => Screen::default(),
    }
}

/// The next command after `pause`.
fn next(command: Verb, view: &HoldView) -> String {
    if command != Verb::Pause || view.held != Some(true) {
        return String::new();
    }
    let unit = or_dash(view.unit.as_deref().map(escape));
    format!("Run `netfix resume` to start {unit}.\n")
}
