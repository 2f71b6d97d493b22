//! What a restore needs beside checkpoints: the state folder, the kernel, rights, the NIC.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::check_in::{Ground, Matched};
use super::super::prepare::Surveyed;
use super::super::session::age;
use crate::kernel::ability;
use crate::model::{Code, IfName, Link, NodeIdentity, Parent, Problem};
use crate::observe::Host;
use crate::plan::{HostLinks, Plan};
use crate::store::Store;

/// Less than this many free bytes is too little for a snapshot of any size.
const LEAST_BYTES: u64 = 8 << 20;
/// Less than this many free inodes is too little.
const LEAST_FILES: u64 = 1024;

/// Whether another snapshot could be written.
pub(super) fn folder(store: &Store) -> Vec<Problem> {
    let room = match store.room() {
        Ok(room) => room,
        Err(error) if error.is_missing() => {
            let message = "nothing was ever written down here: run `netfix snapshot`, and from cron";
            return vec![Problem::error(Code::CheckpointMissing, "state folder", message)];
        }
        Err(error) => {
            let mut problem = error.problem();
            problem.code = Code::Unwritable;
            problem.message.push_str("; no snapshot can be written");
            return vec![problem];
        }
    };
    let mut problems = Vec::new();
    let need = LEAST_BYTES.max(room.used * 2);
    if room.bytes < need {
        let message = format!(
            "only {} KiB are free where the checkpoints are, and a snapshot may need {} KiB",
            room.bytes >> 10,
            need >> 10
        );
        problems.push(Problem::error(Code::NoSpace, "state folder", message));
    }
    if let Some(files) = room.files.filter(|files| *files < LEAST_FILES) {
        let message = format!("only {files} inodes are free where the checkpoints are");
        problems.push(Problem::error(Code::NoSpace, "state folder", message));
    }
    problems
}

/// Whether this process and this kernel could do what a restore does.
pub(super) fn abilities(surveyed: &Surveyed) -> Vec<Problem> {
    let mut problems = Vec::new();
    match ability::missing_capabilities() {
        Ok(missing) => problems.extend(missing.into_iter().map(|name| {
            let message = "is missing: netfix could not restore anything with the rights that it has now";
            Problem::error(Code::PermissionDenied, name, message)
        })),
        Err(error) => problems.push(Problem::error(Code::Unreadable, "/proc/self/status", error.to_string())),
    }
    let kinds: Vec<&str> = kinds(surveyed).into_iter().collect();
    match ability::missing_kinds(&kinds) {
        Ok(missing) => problems.extend(missing.into_iter().map(|kind| {
            let message = "this kernel can make no such link, nor load the module for it; pods that need one \
                           could not be restored";
            Problem::error(Code::Unsupported, kind, message)
        })),
        Err(error) => problems.push(Problem::error(Code::Unreadable, "kernel", error.to_string())),
    }
    problems
}

/// The kinds of link that a restore may have to make.
fn kinds(surveyed: &Surveyed) -> BTreeSet<&str> {
    let of_pods = surveyed.checked.matched.iter().filter_map(|matched| matched.checkpoint.netfix.as_ref());
    let links = of_pods.flat_map(|extension| &extension.state.links).chain(&surveyed.ground.state.links);
    links.filter(|link| link.kind.can_be_made()).map(|link| link.kind.name()).collect()
}

/// Whether a snapshot of everything was taken in this boot, and lately.
pub(super) fn last_snapshot(surveyed: &Surveyed, node: &NodeIdentity, max_age: Duration) -> Option<Problem> {
    let stored = surveyed.node_state.as_ref().filter(|stored| stored.node.is_same(node));
    let error = |code, message: String| Some(Problem::error(code, "last snapshot", message));
    let Some(complete) = stored.and_then(|stored| stored.complete.as_ref()) else {
        let message =
            "no snapshot of all pods was completed since this machine's boot: run `netfix snapshot`";
        return error(Code::CheckpointMissing, message.to_owned());
    };
    let age = Duration::from_secs(age(complete).into());
    if age <= max_age {
        return None;
    }
    let message = format!(
        "the last one that covered all pods was completed {} ago, at {complete}; run `netfix snapshot`",
        humantime::format_duration(age)
    );
    error(Code::CheckpointStale, message)
}

/// What is missing or differs in the host's own namespace.
pub(super) fn drift(plan: Plan) -> Vec<Problem> {
    let Plan { steps, later, mut problems } = plan;
    problems.extend(super::pods::drifted(steps.iter().chain(&later), "netfix diff"));
    problems
}

/// Links without carrier: under a pod that is as bad as a lost one; a port of a bond is a warning.
pub(super) fn carrier(host: &Host, ground: &Ground, matched: &[Matched], links: &HostLinks) -> Vec<Problem> {
    let extensions = matched.iter().filter_map(|matched| matched.checkpoint.netfix.as_ref());
    let parents =
        extensions.flat_map(|extension| &extension.state.links).filter_map(|link| match &link.parent {
            Some(Parent::Host(parent)) => Some(parent),
            _ => None,
        });
    let parents: BTreeSet<&IfName> = parents.collect();
    let silent = |then: &&IfName| {
        let was_up = ground.state.link(then).is_some_and(|link| link.flags.up);
        let is_silent = |now: &Link| now.flags.up && !now.flags.carrier;
        was_up && host.state.link(&links.name_now(then)).is_some_and(is_silent)
    };
    let below = parents.iter().copied().filter(silent).map(|name| {
        let message = "has no carrier, and pods stand on it: nothing reaches them";
        Problem::error(Code::NoCarrier, name.to_string(), message)
    });
    let devices = ground.devices.iter().filter(|name| !parents.contains(name)).filter(silent).map(|name| {
        let message = "has no carrier";
        Problem::warning(Code::NoCarrier, name.to_string(), message)
    });
    below.chain(devices).collect()
}
