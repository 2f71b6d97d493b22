//! What a window would do, and to which pods.

use std::io::{self, Write};

use super::pods::sorted;
use super::text::{count, duration, escape, list_or_dash};
use super::view::{Document, NodeView, PodView};
use crate::maintenance::Request;
use crate::maintenance::preview::Preview;
use crate::model::State;
use crate::model::window::command_line;

/// So many pods are listed; a screen holds no more.
const MOST: usize = 20;

/// The course, one line a phase, and the pods that may lose their network.
///
/// # Errors
/// When writing fails.
pub(crate) fn prospect(course: &[String], pods: &[PodView], out: &mut dyn Write) -> io::Result<()> {
    course.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if pods.is_empty() {
        return writeln!(out, "\nNo pod has an interface on this host's links.");
    }
    let titles = sorted(pods)
        .into_iter()
        .map(|pod| (escape(&pod.info.title()), pod));
    let titles: Vec<(String, &PodView)> = titles.collect();
    let width = titles
        .iter()
        .map(|(title, _)| title.chars().count())
        .max()
        .unwrap_or_default();
    writeln!(
        out,
        "\n{} may lose the network while COMMAND runs:",
        count(pods.len(), "pod")
    )?;
    for (title, pod) in titles.iter().take(MOST) {
        let addresses = pod.interfaces.iter().flat_map(|i| &i.addresses);
        let addresses = list_or_dash(&addresses.collect::<Vec<_>>());
        writeln!(out, "  {title:<width$}  {}", escape(&addresses))?;
    }
    match titles.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// What `upgrade --dry-run` answers.
pub(crate) fn preview(request: &Request<'_>, preview: Preview) -> Document {
    let pods = count(preview.pods.len(), "pod");
    let steps = phases(request, preview.unit.as_deref(), &pods);
    let pod = |pod| PodView::new(pod, State::Unknown);
    Document {
        node: NodeView {
            hostname: preview.node.hostname,
            steps,
            ..NodeView::default()
        },
        pods: preview.pods.into_iter().map(pod).collect(),
        problems: preview.problems,
        ..Document::default()
    }
}

/// The phases, one line each.
fn phases(request: &Request<'_>, unit: Option<&str>, pods: &str) -> Vec<String> {
    let (pause, resume) = match unit {
        Some(unit) => (
            format!(
                "stop and mask {unit}; systemd starts it again after {} in any case",
                duration(request.deadline)
            ),
            format!("unmask and start {unit}"),
        ),
        None => (
            "nothing: no kubelet runs here".to_owned(),
            "nothing".to_owned(),
        ),
    };
    let hold = if request.keep_paused {
        "; keep kubelet paused while a pod is not restored"
    } else {
        ""
    };
    let restore = format!(
        "wait up to {} for the NIC, then restore up to {pods}{hold}",
        duration(request.wait)
    );
    let lines = [
        (
            "check",
            "check that every pod can be restored; otherwise stop here".to_owned(),
        ),
        (
            "snapshot",
            "save the host and every pod, on disk and in memory".to_owned(),
        ),
        ("pause", pause),
        ("command", command_line(request.command)),
        ("restore", restore),
        (
            "verify",
            format!(
                "probe every gateway, for up to {}",
                duration(request.timeout)
            ),
        ),
        ("resume", resume),
        (
            "proof",
            format!(
                "watch for {} that no pod is rebuilt",
                duration(request.settle)
            ),
        ),
    ];
    let numbered = lines.iter().zip(1..);
    numbered
        .map(|((name, what), number)| format!("{number}. {name:<9} {what}"))
        .collect()
}
