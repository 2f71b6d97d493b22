//! Runs a case, and says how it ends.

use super::case::{Case, Chapter, Loss};
use super::named::Named;
use super::witness::Witness;
use super::{lines, scene};
use crate::common::{Node, Pod, Run};

/// The result of a case.
pub(super) enum Ending {
    /// Everything is as before, after so many lines that the kernel accepted.
    Equal(usize),
    /// What differs was named by the snapshot.
    Named,
    /// Something else differs, or netfix complains of what is as before.
    Different(String),
}

/// Everything that a case begins with.
struct Before {
    host: Witness,
    pod: Witness,
    named: Named,
    snapshot: Run,
}

pub(super) fn of(case: &Case) -> Ending {
    let node = Node::new();
    let pod = scene::pod_of(&node, case);
    let accepted = lines::run(&node.ns, &case.host) + lines::run(&pod.ns, &case.lines);
    if case.has(Chapter::Flap) {
        // What does not survive this is not lost with the NIC.
        scene::flap(&node, &pod);
    }
    let (host, pod_before) = (Witness::of_node(&node), Witness::of_pod(&pod, &node));
    let snapshot = scene::snapshot(&node, case);
    let before = Before {
        host,
        pod: pod_before,
        named: Named::by(&snapshot),
        snapshot,
    };
    let young = case.has(Chapter::Young).then(|| node.pod("young").simple());
    scene::lose(&node, case);
    let accepted = accepted + lines::run(&pod.ns, &case.harm);
    lines::run(&node.ns, &case.host_harm);
    if case.has(Chapter::Half) {
        scene::make_by_hand(&node, &pod);
        node.netfix("snapshot");
    }
    let mut complaint = turn(&node, &pod, case, &before, young.as_ref());
    if case.has(Chapter::Twice) && complaint.is_none() {
        if case.has(Chapter::Saved) {
            node.netfix("snapshot");
        }
        scene::lose(&node, case);
        complaint = turn(&node, &pod, case, &before, young.as_ref())
            .map(|complaint| format!("after a second loss: {complaint}"));
    }
    match complaint {
        Some(complaint) => Ending::Different(complaint),
        None if before.named.is_empty() => Ending::Equal(accepted),
        None => Ending::Named,
    }
}

/// Restores, and says what is not as before.
fn turn(
    node: &Node,
    pod: &Pod<'_>,
    case: &Case,
    before: &Before,
    young: Option<&Pod<'_>>,
) -> Option<String> {
    let restore = scene::restore(node, case);
    if case.has(Chapter::Flap) {
        scene::flap(node, pod);
    }
    let is_aged = case.has(Chapter::Renewed);
    let mut lines = before.pod.becomes(is_aged, || Witness::of_pod(pod, node));
    lines.extend(before.host.becomes(is_aged, || Witness::of_node(node)));
    let (diff, check) = (node.netfix_json("diff"), node.netfix_json("check"));
    let mut named = before.named.clone();
    if case.has(Chapter::Half) || case.loss == Loss::None {
        named.left_over(&diff);
    }
    let is_told = [&restore, &diff, &check]
        .iter()
        .any(|run| run.code != Some(0));
    let mut lines = named.others(lines);
    if case.has(Chapter::Half) {
        // An index is never changed. The first restore names it, a later snapshot records it.
        lines.retain(|line| !line.contains("links.eth0.ifindex"));
    }
    let runs = [&before.snapshot, &restore, &diff, &check];
    let mut complaints = named.complaints(&runs, young.map(Pod::name));
    if let Some(young) = young.map(Pod::name)
        && !restore
            .coded("checkpoint-missing")
            .iter()
            .any(|it| it.pod.as_deref() == Some(young))
    {
        complaints.push(format!("{young} has nothing, and restore does not say so"));
    }
    if lines.is_empty() && complaints.is_empty() {
        return None;
    }
    let word = match (lines.is_empty(), is_told) {
        (true, _) => "COMPLAINT without a difference",
        (false, true) => "TOLD difference",
        (false, false) => "SILENT difference",
    };
    Some(format!(
        "{word}\n{}\n{}\n{}",
        lines.join("\n"),
        complaints.join("\n"),
        runs.map(Run::transcript).join("\n")
    ))
}
