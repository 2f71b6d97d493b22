//! What a restore needs besides checkpoints: the state directory, the kernel, capabilities, the NIC.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::inventory::cannot_observe;
use crate::kernel::{ability, link};
use crate::model::pod::past::PastFiles;
use crate::model::problem::{CheckCause, GuardCause};
use crate::model::{IfName, Link, LossCause, NodeState, Parent, Problem};
use crate::plan::{HostLinks, snapshot_quality};
use crate::records::matched::Matched;
use crate::records::stored::{age, shown};
use crate::records::survey::Surveyed;
use crate::situation::guard_now::{self, GuardNow, GuardState};
use crate::store::Store;

/// A snapshot of any size needs this many free bytes.
const LEAST_BYTES: u64 = 8 << 20;
/// A snapshot of any size needs this many free inodes.
const LEAST_FILES: u64 = 1024;

/// What of `netfix guard` needs a person: it does not run though it is to, or, asked only while something is lost, it restores pods on a link
/// no more, after too many losses.
pub(super) fn guard(store: &Store, is_calm: bool) -> Vec<Problem> {
    if is_calm && !guard_now::is_enabled() {
        return Vec::new();
    }
    let Ok(now) = GuardNow::read(store) else {
        return Vec::new();
    };
    let is_stopped = now.state == GuardState::Stopped;
    let stopped = is_stopped.then(|| GuardCause::Stopped.warning("netfix-guard.service"));
    let given_up = now.given_up.iter().filter(|_| !is_calm);
    let repeats = given_up.map(|link| {
        let attempts = link.attempts;
        GuardCause::Repeats { attempts }.error(&link.name)
    });
    stopped.into_iter().chain(repeats).collect()
}

/// Whether another snapshot could be written.
pub(super) fn folder(store: &Store) -> Vec<Problem> {
    let object = "state directory";
    let room = match store.room() {
        Ok(room) => room,
        Err(error) if error.is_missing() => return vec![CheckCause::NoFolder.error(object)],
        Err(error) => {
            let cause = CheckCause::FolderUnusable {
                error: error.to_string(),
            };
            return vec![cause.error(error.object())];
        }
    };
    let needed = LEAST_BYTES.max(room.used * 2);
    let bytes = (room.bytes < needed).then_some(CheckCause::TooFewBytes {
        free_kib: room.bytes >> 10,
        needed_kib: needed >> 10,
    });
    let files = room.files.filter(|files| *files < LEAST_FILES);
    let inodes = files.map(|free| CheckCause::TooFewInodes { free });
    let causes = bytes.into_iter().chain(inodes);
    causes.map(|cause| cause.error(object)).collect()
}

/// Whether this process and this kernel could carry out a restore.
pub(super) fn abilities(surveyed: &Surveyed) -> Vec<Problem> {
    let mut problems = Vec::new();
    match ability::missing_capabilities() {
        Ok(missing) => {
            let causes = missing.into_iter();
            problems.extend(causes.map(|name| CheckCause::CapabilityMissing.error(name)));
        }
        Err(error) => problems.push(cannot_observe("/proc/self/status", &error)),
    }
    let kinds: Vec<&str> = kinds(surveyed).into_iter().collect();
    match ability::missing_kinds(&kinds) {
        Ok(missing) => {
            let causes = missing.into_iter();
            problems.extend(causes.map(|kind| CheckCause::KindMissing.error(kind)));
        }
        Err(error) => problems.push(cannot_observe("kernel", &error)),
    }
    problems
}

/// The kinds of link that a restore may have to make.
fn kinds(surveyed: &Surveyed) -> BTreeSet<&str> {
    let of_pods = surveyed.matched.iter().flat_map(links_of);
    let links = of_pods.chain(&surveyed.baseline.state.links);
    links
        .filter(|link| link.can_be_made())
        .map(|link| link.kind.name())
        .collect()
}

/// The links in a pod's checkpoint.
fn links_of(matched: &Matched) -> &[Link] {
    let extension = matched.checkpoint.netfix.as_ref();
    extension.map_or(&[], |extension| extension.state.links.as_slice())
}

/// The generations, which have what is lost, where something is; and the problem with what the host has lost.
pub(super) fn held(
    loss: Option<(IfName, LossCause)>,
    has_lost_pod: bool,
    surveyed: &Surveyed,
    store: &Store,
) -> (Vec<PastFiles>, Option<Problem>) {
    if !has_lost_pod && loss.is_none() {
        return (Vec::new(), None);
    }
    let past = store.past();
    let problem = loss.map(|loss| {
        let problem = lost(loss, surveyed, &past);
        // What took the pods' links took this, too.
        if has_lost_pod {
            problem.demoted()
        } else {
            problem
        }
    });
    (past, problem)
}

/// The problem with what the host has lost.
fn lost((link, what): (IfName, LossCause), surveyed: &Surveyed, past: &[PastFiles]) -> Problem {
    let recorded = surveyed.node_state.as_ref();
    let generation =
        recorded.and_then(|recorded| PastFiles::newest_with_node(past, &recorded.created));
    CheckCause::HostLost { what, generation }.error(&link)
}

/// Whether a snapshot of all pods was completed in this boot, within the maximum age.
pub(super) fn last_snapshot(recorded: Option<&NodeState>, max_age: Duration) -> Option<Problem> {
    let cause = match recorded.and_then(NodeState::completed) {
        None => CheckCause::NoCompleteSnapshot,
        Some(completed) => CheckCause::SnapshotStale {
            age: Duration::from_secs(age(&completed).into()),
            completed: shown(&completed),
        },
    };
    match &cause {
        CheckCause::SnapshotStale { age, .. } if *age <= max_age => None,
        _ => Some(cause.error("last snapshot")),
    }
}

/// The problems of links without carrier among those under the pods, and those under them: under a pod that is as bad as a lost
/// one; a port of a bond is a warning. Returns also whether another has carrier, and the kernel has not declared it operational
/// yet.
pub(super) fn carrier(surveyed: &mut Surveyed, links: &HostLinks) -> (Vec<Problem>, bool) {
    let Surveyed {
        host,
        baseline,
        matched,
        node_state,
        ..
    } = surveyed;
    let parents: BTreeSet<&IfName> = matched
        .iter()
        .flat_map(links_of)
        .filter_map(|link| match &link.parent {
            Some(Parent::Host(parent)) => Some(parent),
            _ => None,
        })
        .collect();
    let silent = |then: &&IfName| {
        let was_up = baseline.state.link(then).is_some_and(|link| link.flags.up);
        let now = host.state.link(&links.name_now(then))?;
        (was_up && now.flags.up && !now.flags.carrier).then_some(now.index)
    };
    let devices = baseline.devices.iter();
    let silent: Vec<(&IfName, u32)> = parents
        .iter()
        .copied()
        .chain(devices.filter(|name| !parents.contains(name)))
        .filter_map(|name| Some((name, silent(&name)?)))
        .collect();
    let answers = node_state.as_ref().map(|node| node.answers.of_host());
    let answers = answers.unwrap_or_default();
    let below = snapshot_quality::silent_below_host(&baseline.state, &answers, &host.state);
    let (mut problems, mut is_coming) = (Vec::new(), false);
    for (name, index) in silent {
        if link::is_coming_up(&mut host.socket, index).unwrap_or_default() {
            is_coming = true;
        } else if parents.contains(name) {
            problems.push(CheckCause::NoCarrierUnderPods.error(name));
        } else {
            problems.push(CheckCause::NoCarrier.warning(name));
        }
    }
    // The host itself reaches nobody there.
    let below = below.filter(|name| !is_coming && !parents.contains(name));
    problems.extend(below.map(|name| CheckCause::NoCarrierUnderHost.error(name)));
    (problems, is_coming)
}
