//! `status`: what a person needs first at night, on one screen.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::next::{LostPod, NextStep};
use crate::model::{LinkFault, Nic};
use crate::report::document::{Document, Extra, RuntimeView, StatusView};
use crate::report::messages::observed;
use crate::report::screen::Screen;
use crate::report::style::Style;
use crate::report::text::{
    self, Fact, Facts, MOST, bounded, count, escape, join, or_dash, others, seconds, verb,
};
use crate::report::verb::{guard, hold};
use crate::report::window::hold::{facts as of_window, short as of_window_in_short};
use crate::report::window::view::WindowView;
use crate::situation::guard_now::GuardState;
use crate::window::network::{FaultyLink, PodNetworks};
use crate::window::status::StatusPart;

/// The screen of a node has at most so many lines, on a terminal that is wide enough for its facts; `-v` prints all.
const LINES: usize = 12;

/// Printed with `--quiet` too; with `--follow`, the window that was closed.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Status(view)) => {
            let facts = facts(document, view, style);
            Screen::new(text::facts(facts, style.lines), None)
        }
        _ => hold::screen(document, style),
    }
}

/// One fact a line: those that every node has, and between them as many of the others as there is space for.
fn facts(document: &Document, status: &StatusView, style: Style) -> Facts {
    let is_all = style.is_verbose();
    let node = document.node.hostname.as_deref().map(escape);
    let mut facts = vec![("node", or_dash(node))];
    facts.extend(stored(status, style.now, is_all));
    facts.push(("network", networks(status)));
    let mut rest = nics(&status.nics);
    rest.extend(window(status, is_all));
    rest.push(("guard", guard::state(status)));
    let unused = config_error(status).map(|error| format!("not used: {}", escape(error)));
    rest.extend(unused.map(|unused| ("config", unused)));
    let next = ("next", next(status));
    let lines = |facts: &[Fact]| text::facts(facts.to_vec(), style.lines).lines().count();
    let needed = lines(&facts) + lines(&rest) + 1;
    let mut left = if is_all {
        usize::MAX
    } else {
        LINES.saturating_sub(needed)
    };
    let lost = fitting(&lost_together(status), left, is_all, lines);
    left -= lines(&lost);
    facts.extend(lost);
    facts.extend(rest);
    for fact in guard::details(status) {
        let needed = lines(std::slice::from_ref(&fact));
        if needed <= left {
            left -= needed;
            facts.push(fact);
        }
    }
    if is_all {
        facts.extend(details(status));
    }
    facts.push(next);
    facts
}

/// The losses with as many names of pods as the lines that are left hold: one line at least for each of the others.
fn fitting(
    lost: &[(String, Vec<String>)],
    mut left: usize,
    is_all: bool,
    lines: impl Fn(&[Fact]) -> usize,
) -> Facts {
    let mut facts = Facts::new();
    for (at, (why, pods)) in lost.iter().enumerate() {
        let space = left.saturating_sub(lost.len() - at - 1).max(left.min(1));
        let most = if is_all { pods.len() } else { MOST };
        let fitting = (1..=pods.len().min(most)).rev().find_map(|number| {
            let fact = ("lost", named(why, pods, number));
            let needed = lines(std::slice::from_ref(&fact));
            (needed <= space).then_some((fact, needed))
        });
        if let Some((fact, needed)) = fitting {
            left -= needed;
            facts.push(fact);
        }
    }
    facts
}

/// The lost pods by what each has lost first; the most frequent loss first.
fn lost_together(status: &StatusView) -> Vec<(String, Vec<String>)> {
    let mut together: BTreeMap<String, Vec<&LostPod>> = BTreeMap::new();
    let network = status.network.as_ref();
    for pod in network.iter().flat_map(|network| &network.which.pods) {
        together.entry(lost_what(pod)).or_default().push(pod);
    }
    let mut together: Vec<_> = together.into_iter().collect();
    together.sort_by_key(|(_, pods)| Reverse(pods.len()));
    let names = |mut pods: Vec<&LostPod>| {
        pods.sort_by(|a, b| text::by_name(&a.info, &b.info));
        pods.iter().map(|pod| escape(&pod.title())).collect()
    };
    let together = together.into_iter();
    together.map(|(why, pods)| (why, names(pods))).collect()
}

/// What a pod has lost, in few words.
fn lost_what(pod: &LostPod) -> String {
    let Some(loss) = &pod.loss else {
        return "no interface, no checkpoint".to_owned();
    };
    let what = match loss.what.word() {
        "link-gone" => "is gone",
        "link-down" => "is down",
        "link-replaced" => "was replaced",
        "addresses" => "has no address",
        "default-route" => "has no default route",
        "gateway-routes" => "has no gateway",
        "uplink-lost" => "has no uplink",
        "chain-broken" => "on the host carries nothing",
        _ => "has lost a way",
    };
    format!("{} {what}", escape(&loss.link))
}

/// A loss and the first names of the pods.
fn named(why: &str, pods: &[String], number: usize) -> String {
    let names = pods[..number].iter().cloned();
    let names = join(names.chain(text::more(pods.len() - number)), ", ");
    format!("{why}: {names}")
}

/// The devices under the pods that exist, those of one driver and state together.
fn nics(nics: &[Nic]) -> Facts {
    let mut together: Vec<(String, Vec<String>)> = Vec::new();
    for nic in nics {
        let carrier = if nic.carrier { "carrier" } else { "no carrier" };
        let driver = [&nic.driver, &nic.version].into_iter().flatten();
        let driver = join(driver.map(|word| escape(word)), " ");
        let what = format!(
            "{}, {carrier}",
            or_dash(Some(driver).filter(|driver| !driver.is_empty()))
        );
        let name = escape(&nic.name.to_string());
        match together.last_mut() {
            Some((known, names)) if *known == what => names.push(name),
            _ => together.push((what, vec![name])),
        }
    }
    let together = together.into_iter();
    let texts = together.map(|(what, names)| format!("{} ({what})", join(bounded(names), ", ")));
    let texts = join(bounded(texts), "; ");
    Some(("nic", texts))
        .filter(|(_, texts)| !texts.is_empty())
        .into_iter()
        .collect()
}

/// The open window, or how the newest one went.
fn window(status: &StatusView, is_all: bool) -> Facts {
    if let Some(window) = &status.window {
        let facts = if is_all {
            of_window
        } else {
            of_window_in_short
        };
        return facts(window);
    }
    let last = status.last.as_ref().map(ended);
    let last = last.unwrap_or_else(|| unread_or(status, StatusPart::Last, "none"));
    vec![
        ("window", unread_or(status, StatusPart::Window, "none open")),
        ("last", last),
    ]
}

/// The snapshots.
fn stored(status: &StatusView, now: Timestamp, is_all: bool) -> Facts {
    let is_future = |time: &str| time.parse().is_ok_and(|time: Timestamp| time > now);
    let last = match (&status.last_success, status.last_success_age) {
        (Some(time), Some(0)) if is_future(time) => {
            format!(
                "{}: in the future, because the clock was set back",
                escape(time)
            )
        }
        (Some(_), Some(age)) => format!("{} ago", seconds(age)),
        _ => unread_or(status, StatusPart::Snapshot, "no complete one in this boot"),
    };
    let checkpoints = count(status.checkpoints, "checkpoint");
    let without = status.running.saturating_sub(status.covered);
    let without_words = format!("{} without one", verb(without, "pod", "pods"));
    let numbers = [
        (status.damaged, "cannot be read".to_owned()),
        (without, without_words),
    ];
    let mut facts = vec![(
        "snapshot",
        format!("{last}; {checkpoints}{}", others(numbers)),
    )];
    let unread = unread(status, StatusPart::Generations);
    if is_all || unread.is_some() {
        let generations = match unread {
            Some(unread) => format!("generations {unread}"),
            None => count(status.generations.unwrap_or_default(), "generation"),
        };
        let at = status.last_success.as_deref().map(escape);
        let at = at.map(|at| format!(", last complete snapshot at {at}"));
        let at = at.unwrap_or_default();
        let folder = escape(&status.state_dir);
        facts.push(("stored", format!("{generations} in {folder}{at}")));
    }
    facts
}

/// What else is known of the node.
fn details(status: &StatusView) -> Facts {
    let namespaces = count(status.private_namespaces, "other network namespace");
    let running = count(status.running, "pod");
    let mut facts = vec![("pods", format!("{running}; {namespaces} (no pods)"))];
    facts.extend(configured(status));
    facts.extend(answered(&status.runtimes));
    let lock = status.lock.as_deref();
    let lock = lock.map(|by| format!("held by {}", escape(by)));
    facts.push(("lock", lock.unwrap_or_else(|| "free".to_owned())));
    facts
}

/// What the configuration file sets.
fn configured(status: &StatusView) -> Facts {
    let Some(config) = status
        .config
        .as_ref()
        .filter(|config| config.error.is_none())
    else {
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

/// What there is where nothing is shown: nothing, or what could not be read.
pub(super) fn unread_or(status: &StatusView, part: StatusPart, none: &str) -> String {
    unread(status, part).unwrap_or_else(|| none.to_owned())
}

/// The sign for a part that could not be read, and why.
fn unread(status: &StatusView, part: StatusPart) -> Option<String> {
    let one = status.unread.iter().find(|one| one.part == part)?;
    Some(format!("{} ({})", text::UNKNOWN, escape(&one.reason)))
}

/// How many pods have their network, and what of the host is broken.
fn networks(status: &StatusView) -> String {
    let Some(network) = &status.network else {
        return unread_or(status, StatusPart::Network, text::UNKNOWN);
    };
    let links = join(bounded(network.links.iter().map(fault)), ", ");
    let unknown = others([(network.cut_off, "cut off"), (network.unknown, "unknown")]);
    let complete = network.complete;
    let number = match network.pods {
        0 => "no pod is running".to_owned(),
        pods => {
            let have = verb(complete, "has its", "have their");
            format!(
                "{complete} of {} {have} network{unknown}",
                count(pods, "pod")
            )
        }
    };
    let joined = match (links.is_empty(), network.lost) {
        (true, _) => "",
        (_, 0) => ", but ",
        _ => ": ",
    };
    // A link that is gone has taken it along.
    let host = network.host.as_ref().filter(|_| links.is_empty());
    let host = host.map(|loss| format!("; the host's {} {}", escape(&loss.link), loss.what));
    format!("{number}{joined}{links}{}", host.unwrap_or_default())
}

/// The next command.
fn next(status: &StatusView) -> String {
    let window = status
        .window
        .as_ref()
        .and_then(|window| window.next.as_ref());
    let window = window.filter(|now| now.next != NextStep::Nothing);
    match (&status.lock, window) {
        // The netfix that has the lock is at work.
        (Some(by), now) if now.is_none_or(|now| now.next != NextStep::Wait) => {
            format!("wait for {}", escape(by))
        }
        (_, Some(now)) => observed::next(now),
        _ => load_driver(status).unwrap_or_else(|| next_of_pods(status).to_owned()),
    }
}

/// A device that its driver has to bring back: a restore alone waits for it in vain.
fn load_driver(status: &StatusView) -> Option<String> {
    let links = &status.network.as_ref()?.links;
    let mut missing = links.iter().filter(|link| link.state == LinkFault::Missing);
    let (name, driver) = missing.find_map(|link| Some((&link.name, link.driver.as_ref()?)))?;
    let (name, driver) = (escape(&name.to_string()), escape(driver));
    Some(format!(
        "load the driver of {name} (`modprobe {driver}`), then run `netfix restore`"
    ))
}

/// Why the configuration file is not used.
fn config_error(status: &StatusView) -> Option<&str> {
    status.config.as_ref()?.error.as_deref()
}

/// The next command where no window is open.
fn next_of_pods(status: &StatusView) -> &'static str {
    let network = status.network.as_ref();
    let can_restore =
        |network: &PodNetworks| network.which.pods.len() > network.which.without_checkpoint;
    let is_well = |network: &PodNetworks| {
        network.lost + network.cut_off + network.unknown == 0 && network.links.is_empty()
    };
    let can_restore_host =
        |network: &PodNetworks| network.host.is_some() && network.links.is_empty();
    let guard = status.guard.as_ref().map(|guard| guard.state);
    let is_read = status.unread.is_empty() && status.damaged == 0;
    let last = status.last.as_ref().and_then(|last| last.window.as_ref());
    let has_failed = last.is_some_and(|last| last.has_failed_since(status.last_success.as_deref()));
    let is_saved = status.last_success.is_some() && status.covered >= status.running;
    match guard {
        _ if network.is_some_and(|network| can_restore(network) || can_restore_host(network)) => {
            "Run `netfix restore`"
        }
        _ if network.is_some_and(|network| network.lost > 0) => {
            "rebuild the lost pods: nothing is stored for them"
        }
        Some(GuardState::GivenUp) => "Run `netfix restore`",
        _ if !is_read || !network.is_some_and(is_well) => "Run `netfix check`",
        Some(GuardState::Stopped) => "Run `systemctl restart netfix-guard`",
        _ if config_error(status).is_some() => "correct the configuration file",
        // What the newest window found may still be so.
        _ if has_failed => "Run `netfix verify`",
        _ if !is_saved => "Run `netfix snapshot`",
        _ => "nothing to do",
    }
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
