//! Runs a case, and says how it ends.

use super::case::{Case, Chapter, Loss};
use super::daemons::{self, Left};
use super::forecast::{Forecast, Side};
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
    /// What else differs was foreseen by the rehearsal.
    Foreseen(String),
    /// Something else differs, or netfix complains of what is as before.
    Different(String),
}

/// Everything that a case begins with.
struct Before {
    host: Witness,
    pod: Witness,
    named: Named,
    snapshot: Run,
    /// What a restore leaves to daemons.
    left: Left,
}

impl Before {
    fn of(node: &Node, pod: &Pod<'_>, case: &Case) -> Self {
        // A link of the host wants what the pod's links want.
        let pod = Witness::of_pod(pod, node);
        let host = Witness::of_node(node);
        let snapshot = scene::snapshot(node, case);
        Self {
            host,
            pod,
            named: Named::by(&snapshot),
            snapshot,
            left: Left {
                has_other_nic: case.wire,
                ..Left::default()
            },
        }
    }

    /// Without what a restore leaves to daemons: they withdraw it before the loss.
    fn withdraw(&mut self, node: &Node, pod: &Pod<'_>, case: &Case) {
        self.left = Left::withdrawn(node, pod, case);
        if [&case.host, &case.lines]
            .into_iter()
            .flatten()
            .any(|line| daemons::adds(line))
        {
            self.pod = Witness::of_pod(pod, node);
            self.host = Witness::of_node(node);
        }
    }
}

pub(super) fn of(case: &Case) -> Ending {
    let node = Node::new();
    let pod = scene::pod_of(&node, case);
    let accepted = lines::run(&node.ns, &case.host) + lines::run(&pod.ns, &case.lines);
    if case.has(Chapter::Flap) {
        // What does not survive this is not lost with the NIC.
        scene::flap(&node, &pod);
    }
    let mut before = Before::of(&node, &pod, case);
    let _daemon = case.daemon.then(|| daemons::socket(&pod.ns));
    let mut forecast = forecast_of(&node, &pod, case);
    if case.is_lost() {
        before.withdraw(&node, &pod, case);
    }
    let young = case.has(Chapter::Young).then(|| node.pod("young").simple());
    scene::lose(&node, case);
    let accepted = accepted + lines::run(&pod.ns, &case.harm);
    lines::run(&node.ns, &case.host_harm);
    if case.has(Chapter::Half) {
        scene::make_by_hand(&node, &pod);
        let snapshot = node.netfix_json("snapshot");
        let mut kept = snapshot.coded("degraded").into_iter();
        if !kept.any(|problem| problem.pod.as_deref() == Some(pod.name())) {
            // The pod reaches what it reached before: what was made by hand is recorded, with the carrier that comes.
            if case.loss == Loss::Late {
                scene::arrive(&node, &pod);
            }
            before.pod = Witness::of_pod(&pod, &node);
            before.named = Named::by(&snapshot);
            before.left.pod = 0;
            forecast.forget_daemons_of_pod();
        }
    }
    let mut end = turn(&node, &pod, case, &before, young.as_ref(), &forecast);
    if case.has(Chapter::Twice) && matches!(end, Turn::Equal) {
        if case.has(Chapter::Saved) && case.has(Chapter::Half) {
            // With what somebody made: a link that was down is up.
            before = Before::of(&node, &pod, case);
        } else if case.has(Chapter::Saved) {
            node.netfix("snapshot");
        }
        if case.has(Chapter::Half) && !case.has(Chapter::Saved) {
            // The rehearsal compares with what is there: a link that somebody made by hand comes back as recorded.
            before.pod = Witness::of_pod(&pod, &node);
            before.host = Witness::of_node(&node);
        }
        before.left = before.left.withdrawn_before();
        forecast = forecast_of(&node, &pod, case);
        scene::lose(&node, case);
        end = turn(&node, &pod, case, &before, young.as_ref(), &forecast);
        if let Turn::Different(complaint) = &mut end {
            complaint.insert_str(0, "after a second loss: ");
        }
    }
    match end {
        Turn::Different(complaint) => Ending::Different(complaint),
        Turn::Foreseen(lines) => Ending::Foreseen(lines),
        Turn::Equal if before.named.is_empty() => Ending::Equal(accepted),
        Turn::Equal => Ending::Named,
    }
}

/// Where the NIC is lost: the rehearsal tells nothing of other harm.
fn forecast_of(node: &Node, pod: &Pod<'_>, case: &Case) -> Forecast {
    if case.is_lost() {
        Forecast::of(node, pod)
    } else {
        Forecast::default()
    }
}

enum Turn {
    Equal,
    Foreseen(String),
    Different(String),
}

/// Restores, and says what is not as before.
fn turn(
    node: &Node,
    pod: &Pod<'_>,
    case: &Case,
    before: &Before,
    young: Option<&Pod<'_>>,
    forecast: &Forecast,
) -> Turn {
    let restore = scene::restore(node, case);
    if case.has(Chapter::Flap) {
        scene::flap(node, pod);
    }
    let is_aged = case.has(Chapter::Renewed);
    let of_pod = before.pod.becomes(is_aged, || Witness::of_pod(pod, node));
    let mut of_host = before.host.becomes(is_aged, || Witness::of_node(node));
    if case.has(Chapter::Half) {
        // A link below the pod receives what the pod's link wants, which is no port and without a link-local address if it was made by hand.
        let wanted = ["{\"link\":\"", ".promiscuity: ", ".allmulti: "];
        of_host.retain(|line| !wanted.iter().any(|it| line.contains(it)));
    }
    let (diff, check) = (node.netfix_json("diff"), node.netfix_json("check"));
    let mut named = before.named.clone();
    if case.has(Chapter::Half) || case.loss == Loss::None {
        named.left_over(&diff);
    }
    let is_told = [&restore, &diff, &check]
        .iter()
        .any(|run| run.code != Some(0));
    let side = |all: Vec<String>| {
        let mut unnamed = named.others(all.clone());
        if case.has(Chapter::Half) {
            // An index is never changed. The first restore names it, a later snapshot records it.
            unnamed.retain(|line| !line.contains("links.eth0.ifindex"));
        }
        if case.harm.iter().any(|line| line.ends_with("mtu 1200")) {
            // A bridge has the lowest MTU of its ports. Below 1280 it has no IPv6, and what the kernel itself joined there is left.
            unnamed.retain(|line| !line.contains("groups.br0: "));
        }
        Side { all, unnamed }
    };
    let mut sides = [of_host, of_pod].map(side);
    let foreseen = forecast.take_foreseen(&mut sides);
    let runs = [&before.snapshot, &restore, &diff, &check];
    let mut complaints = forecast.complaints(&sides, &before.left);
    complaints.extend(before.left.complaints(&restore, pod.name()));
    if foreseen.is_empty() {
        complaints.extend(named.complaints(&runs, young.map(Pod::name)));
    }
    if let Some(young) = young.map(Pod::name)
        && !restore
            .coded("checkpoint-missing")
            .iter()
            .any(|it| it.pod.as_deref() == Some(young))
    {
        complaints.push(format!("{young} has nothing, and restore does not say so"));
    }
    let lines = sides.map(|side| side.unnamed).concat();
    if lines.is_empty() && complaints.is_empty() {
        return if foreseen.is_empty() {
            Turn::Equal
        } else {
            Turn::Foreseen(foreseen.join("\n"))
        };
    }
    let word = match (lines.is_empty(), is_told) {
        (true, _) => "COMPLAINT without a difference",
        (false, true) => "TOLD difference",
        (false, false) => "SILENT difference",
    };
    Turn::Different(format!(
        "{word}\n{}\n{}\n{}",
        lines.join("\n"),
        complaints.join("\n"),
        runs.map(Run::transcript).join("\n")
    ))
}
