//! `upgrade`: the report of the window; of a window that is not opened, what it would do, and to which pods.

use super::pods::sorted;
use super::report::window;
use super::restore::restore;
use crate::kubelet::unit::UnitToPause;
use crate::model::problem::{Cause, WindowCause};
use crate::model::window::{WindowPod, command_line};
use crate::model::{Code, Exit, IfName, Nic, NodeIdentity, Problem, Severity, State};
use crate::refusal::Refusal;
use crate::report::document::{Document, Extra, NodeView, PodView};
use crate::report::problems::{programs_to_restart, word};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{
    count, duration, escape, expected_outage, join, lines, list_or_dash, milliseconds, rehearsed,
};
use crate::report::window::view::{ReportView, Standing};
use crate::upgrade::device_loss::DeviceLoss;
use crate::upgrade::ledger::Upgraded;
use crate::upgrade::limit;
use crate::upgrade::preview::Preview;
use crate::upgrade::request::{RollbackRequest, UpgradeRequest};

/// The document.
pub(crate) fn upgrade(upgraded: Upgraded) -> Document {
    let standing = if upgraded.is_open {
        Standing::Left
    } else {
        Standing::Closed
    };
    let report = upgraded
        .window
        .map(|window| Extra::Report(Box::new(ReportView::new(window, standing))));
    Document {
        exit: upgraded.end as u8,
        problems: upgraded.problems,
        extra: report,
        ..restore(upgraded.restored)
    }
}

/// The last line of a restore of `netfix guard`: the time is from the loss to the last answer of a gateway.
pub(crate) fn unplanned(upgraded: &Upgraded) -> String {
    let window = upgraded.window.as_ref();
    let pods = window.map_or(&[][..], |window| &window.pods);
    let is_good = |pod: &&WindowPod| pod.state.is_some_and(State::is_good);
    let good = pods.iter().filter(is_good).count();
    let longest = pods.iter().filter_map(WindowPod::outage).max();
    let outage = longest.map(|ms| format!(", longest outage {}", milliseconds(ms)));
    let is_unseen = |pod: &WindowPod| pod.steps > 0 && pod.lost.is_none();
    let unseen = window.filter(|_| pods.iter().any(is_unseen));
    let unseen = unseen.map(|window| format!(", lost before {}", window.started));
    let outage = outage.or(unseen).unwrap_or_default();
    let pods = count(pods.len(), "pod");
    let report = window.map_or_else(String::new, |window| {
        format!(": netfix report {}", window.id)
    });
    format!("{good} of {pods} restored{outage}{report}")
}

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let body = match &document.extra {
        // For scripts, which give it to `netfix wait`.
        Some(Extra::Window(view)) => format!("{}\n", view.id),
        _ if style.is_quiet() => String::new(),
        Some(Extra::Report(view)) => return window(view, style),
        Some(Extra::DryRun(_)) if document.exit == 0 && !document.node.steps.is_empty() => {
            prospect(&document.node, &document.pods)
        }
        _ => String::new(),
    };
    let verdict = document.verdict.as_ref();
    let last = verdict.map(|words| LastLine::new(words, false));
    Screen::new(body, last)
}

/// So many pods are listed; a screen holds no more.
const MOST: usize = 20;

/// The question before a window: the problems, the prospect, and whether it would begin.
pub(crate) fn question(shown: &Document) -> String {
    let problems = shown.problems.iter();
    let problems = lines(problems.map(|problem| format!("{}: {problem}", word(problem).0)));
    let prospect = prospect(&shown.node, &shown.pods);
    let verdict = shown.verdict.as_deref().unwrap_or_default();
    format!("{problems}{prospect}\n{verdict}\nContinue? [yes/no] ")
}

/// The course, one line a phase, and what may lose its network.
fn prospect(node: &NodeView, pods: &[PodView]) -> String {
    let course = lines(&node.steps);
    let figures = node.rehearsal.as_ref();
    let rehearsal = figures.map_or_else(String::new, |figures| {
        format!("\n{}\n{}\n", rehearsed(figures), expected_outage(figures))
    });
    let host = on_devices(&node.devices) + &rehearsal;
    if pods.is_empty() {
        return course + "\nNo pod has an interface on this host's links.\n" + &host;
    }
    let rows = sorted(pods).into_iter().map(|pod| {
        let addresses = list_or_dash(pod.interfaces.iter().flat_map(|i| &i.addresses));
        (escape(&pod.info.title()), escape(&addresses))
    });
    let rows: Vec<(String, String)> = rows.collect();
    let width = rows.iter().map(|(title, _)| title.chars().count()).max();
    let width = width.unwrap_or_default();
    let shown = rows.iter().take(MOST);
    let shown = lines(shown.map(|(title, addresses)| format!("  {title:<width$}  {addresses}")));
    let more = match rows.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    let pods = count(pods.len(), "pod");
    format!("{course}\n{pods} may lose the network while COMMAND runs:\n{shown}{more}{host}")
}

/// What the host loses and gets back, one line a device.
fn on_devices(devices: &[DeviceLoss]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let rows = devices.iter().map(|device| {
        let counts = [
            (device.links, "link"),
            (device.addresses, "address"),
            (device.routes, "route"),
            (device.settings, "setting"),
            (device.functions as usize, "virtual function"),
        ];
        let counts = counts.into_iter().filter(|(number, _)| *number > 0);
        let counts = join(counts.map(|(number, noun)| count(number, noun)), ", ");
        let driver = device.driver.as_deref().map(escape);
        let driver = driver.map_or_else(String::new, |driver| format!(" ({driver})"));
        let with = if counts.is_empty() { "" } else { ": " };
        format!("  {}{driver}{with}{counts}", device.name)
    });
    let shown = lines(rows.clone().take(MOST));
    let more = match rows.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    format!(
        "\nThe host may lose these devices with all on them; the window restores that:\n{shown}{more}"
    )
}

/// The document of `upgrade --dry-run`.
pub(crate) fn preview(request: &UpgradeRequest<'_>, preview: Preview) -> Document {
    let verdict = Some(verdict(&preview));
    let pods = count(preview.pods.len(), "pod");
    let steps = phases(request, preview.unit.as_deref(), &pods);
    let pod = |pod| PodView::new(pod, State::Unknown);
    let node = NodeView {
        steps,
        devices: preview.devices.clone(),
        rehearsal: preview.rehearsal,
        ..NodeView::of(&preview.node)
    };
    let exit = if preview.is_refused {
        Exit::Refused
    } else {
        Exit::Done
    };
    Document {
        verdict,
        extra: Some(Extra::DryRun(true)),
        ..Document::of(node, preview.pods.into_iter().map(pod), preview.problems).exits(exit)
    }
}

/// The document of a dry run that ended before the check, or found that no window is needed.
pub(crate) fn no_preview(node: &NodeIdentity, ended: Result<Problem, Refusal>) -> Document {
    let (exit, words, problems) = match ended {
        Ok(done) => {
            let words = "The window would not be opened: the upgrade is already done".to_owned();
            (Exit::Done, words, vec![done])
        }
        Err(Refusal { failed, problems }) => {
            let exit = if failed { Exit::Failed } else { Exit::Refused };
            (exit, refused(&problems), problems)
        }
    };
    Document {
        verdict: Some(words + &on_host(node)),
        extra: Some(Extra::DryRun(true)),
        ..Document::of(NodeView::of(node), [], problems).exits(exit)
    }
}

/// Whether the window would begin, and for which pods, devices and host.
fn verdict(preview: &Preview) -> String {
    let Preview {
        node,
        pods,
        nics,
        problems,
        ..
    } = preview;
    if preview.is_refused {
        return refused(problems) + &on_host(node);
    }
    let pods = match (pods.len(), nics.is_empty()) {
        (0, _) => "no pod has an interface on this host's links".to_owned(),
        (pods, true) => count(pods, "pod"),
        (pods, false) => format!("{} on {}", count(pods, "pod"), devices(nics)),
    };
    let lost = problems.iter().find_map(|problem| match &*problem.cause {
        Cause::Window(cause @ WindowCause::RestoresLost { .. }) => Some(format!("; {cause}")),
        _ => None,
    });
    let host = on_host(node);
    let programs = programs_to_restart(problems, Severity::Info);
    let programs = programs.map(|programs| format!("; after a loss, {programs}"));
    format!(
        "The window would begin: {pods}{host}{}{}",
        lost.unwrap_or_default(),
        programs.unwrap_or_default()
    )
}

/// What a window would be refused for.
fn refused(problems: &[Problem]) -> String {
    let (mut others, mut lost) = (0, None);
    let is_lost = |code| matches!(code, Code::Degraded | Code::CheckpointMissing);
    for problem in problems.iter().filter(|problem| problem.is_error()) {
        match &*problem.cause {
            Cause::Window(WindowCause::AlreadyLost { lost: found }) => {
                lost = Some(found.to_string());
            }
            // It counts the others.
            Cause::Window(WindowCause::NotRestorable { .. }) => {}
            cause if is_lost(cause.code()) => {}
            _ => others += 1,
        }
    }
    let others = (others > 0).then(|| count(others, "problem"));
    let reasons = join(others.into_iter().chain(lost), ", ");
    let reasons = if reasons.is_empty() {
        count(problems.len(), "problem")
    } else {
        reasons
    };
    format!("The window would be refused: {reasons}")
}

fn on_host(node: &NodeIdentity) -> String {
    let name = node.hostname.as_deref().map(escape);
    name.map_or_else(String::new, |name| format!(", {name}"))
}

/// The devices, those with the same driver together: `eth0, eth1 (i40e 2.8.20)`.
fn devices(nics: &[Nic]) -> String {
    let mut groups: Vec<(String, Vec<&IfName>)> = Vec::new();
    for nic in nics {
        let known = [nic.driver.as_deref(), nic.version.as_deref()];
        let driver = join(known.into_iter().flatten().map(escape), " ");
        match groups.iter_mut().find(|(known, _)| *known == driver) {
            Some((_, names)) => names.push(&nic.name),
            None => groups.push((driver, vec![&nic.name])),
        }
    }
    let groups = groups.into_iter().map(|(driver, names)| {
        let driver = if driver.is_empty() {
            driver
        } else {
            format!(" ({driver})")
        };
        join(names, ", ") + &driver
    });
    join(groups, " and ")
}

/// The phases, one line each.
fn phases(request: &UpgradeRequest<'_>, unit: Option<&str>, pods: &str) -> Vec<String> {
    let [wait, timeout, settle] = [request.wait, request.timeout, request.settle].map(duration);
    let checks = if request.rehearse {
        "check and rehearse"
    } else {
        "check"
    };
    let check = format!("{checks} the restore of every pod; otherwise stop here");
    let snapshot = "save the host and every pod, on disk and in memory";
    let resume = unit.map(|unit| format!("unmask and start {unit}"));
    let hold = if request.keep_paused {
        "; keep kubelet paused while a pod is not restored"
    } else {
        ""
    };
    let ends = limit::of_command(request) + request.wait;
    let late = unit.filter(|_| ends > request.deadline);
    let late = late.map(|unit| format!("; --deadline may start {unit} before that"));
    let late = late.unwrap_or_default();
    let restore = format!("wait up to {wait} for the NIC, then restore up to {pods}{hold}{late}");
    let verify = format!("probe every gateway, for up to {timeout}");
    let proof = format!("watch {settle} for lost links and rebuilt pods");
    let rollback = request.rollback.map(|RollbackRequest { command, max_lost }| {
        let lost = count(max_lost, "pod");
        let command = escape(command);
        format!("only if the NIC is not back, or more than {lost} lost: {command}; then restore and verify again")
    });
    let limit = duration(limit::of_command(request));
    let command = format!("{}, for at most {limit}", command_line(request.command));
    let lines = [
        ("check", Some(check)),
        ("snapshot", Some(snapshot.to_owned())),
        ("before", request.before.map(escape)),
        ("pause", Some(pause(request, unit))),
        ("command", Some(command)),
        ("restore", Some(restore)),
        ("verify", Some(verify)),
        ("rollback", rollback),
        (
            "resume",
            Some(resume.unwrap_or_else(|| "nothing".to_owned())),
        ),
        ("proof", Some(proof)),
        ("after", request.after.map(escape)),
    ];
    lines
        .into_iter()
        .filter_map(|(name, what)| Some((name, what?)))
        .zip(1..)
        .map(|((name, what), number)| format!("{number}. {name:<9} {what}"))
        .collect()
}

/// What becomes of kubelet.
fn pause(request: &UpgradeRequest<'_>, unit: Option<&str>) -> String {
    let deadline = duration(request.deadline);
    match unit {
        Some(unit) => {
            format!("stop and mask {unit}; systemd starts it again after {deadline} in any case")
        }
        None if request.pause == UnitToPause::Nothing => "nothing: --no-pause".to_owned(),
        None => "nothing: no kubelet runs here".to_owned(),
    }
}
