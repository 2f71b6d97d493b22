//! `upgrade`: the report of the window; of a window that is not opened, what it would do, and to which pods.

use super::pods::sorted;
use super::report::window;
use super::restore::restore;
use crate::kubelet::unit::UnitToPause;
use crate::model::window::command_line;
use crate::model::{Exit, State};
use crate::report::document::{Document, Extra, NodeView, PodView};
use crate::report::screen::Screen;
use crate::report::style::Style;
use crate::report::text::{count, duration, escape, lines, list_or_dash};
use crate::report::window::view::{ReportView, Standing};
use crate::upgrade::ledger::Upgraded;
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

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let body = match &document.extra {
        // For scripts, which give it to `netfix wait`.
        Some(Extra::Window(view)) => format!("{}\n", view.id),
        _ if style.is_quiet() => String::new(),
        Some(Extra::Report(view)) => return window(view, style),
        Some(Extra::DryRun(_)) if document.exit == 0 => {
            prospect(&document.node.steps, &document.pods)
        }
        _ => String::new(),
    };
    Screen::new(body, None)
}

/// So many pods are listed; a screen holds no more.
const MOST: usize = 20;

/// The course, one line a phase, and the pods that may lose their network.
pub(crate) fn prospect(course: &[String], pods: &[PodView]) -> String {
    let course = lines(course);
    if pods.is_empty() {
        return course + "\nNo pod has an interface on this host's links.\n";
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
    format!("{course}\n{pods} may lose the network while COMMAND runs:\n{shown}{more}")
}

/// The document of `upgrade --dry-run`.
pub(crate) fn preview(request: &UpgradeRequest<'_>, preview: Preview) -> Document {
    let pods = count(preview.pods.len(), "pod");
    let steps = phases(request, preview.unit.as_deref(), &pods);
    let pod = |pod| PodView::new(pod, State::Unknown);
    let node = NodeView {
        steps,
        ..NodeView::of(&preview.node)
    };
    let exit = if preview.is_refused {
        Exit::Refused
    } else {
        Exit::Done
    };
    Document::of(node, preview.pods.into_iter().map(pod), preview.problems).exits(exit)
}

/// The phases, one line each.
fn phases(request: &UpgradeRequest<'_>, unit: Option<&str>, pods: &str) -> Vec<String> {
    let [wait, timeout, settle] = [request.wait, request.timeout, request.settle].map(duration);
    let check = "check that every pod can be restored; otherwise stop here";
    let snapshot = "save the host and every pod, on disk and in memory";
    let resume = unit.map(|unit| format!("unmask and start {unit}"));
    let hold = if request.keep_paused {
        "; keep kubelet paused while a pod is not restored"
    } else {
        ""
    };
    let restore = format!("wait up to {wait} for the NIC, then restore up to {pods}{hold}");
    let verify = format!("probe every gateway, for up to {timeout}");
    let proof = format!("watch for {settle} that no pod is rebuilt");
    let rollback = request.rollback.map(|RollbackRequest { command, max_lost }| {
        let lost = count(max_lost, "pod");
        let command = escape(command);
        format!("only if the NIC is not back, or more than {lost} lost: {command}; then restore and verify again")
    });
    let lines = [
        ("check", Some(check.to_owned())),
        ("snapshot", Some(snapshot.to_owned())),
        ("before", request.before.map(escape)),
        ("pause", Some(pause(request, unit))),
        ("command", Some(command_line(request.command))),
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
