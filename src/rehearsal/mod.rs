//! The rehearsal of a restore: before anything is lost, every pod is built a second time from its record, and compared.
//!
//! [`rehearse`] has the order. The twin of the node is a set of namespaces that no file and no process leads to: only scratch threads
//! of this process are in them. What cannot be in two namespaces, such as a device, has a stand-in there.

mod compare;
mod findings;
mod host;
mod pods;
mod stage;
mod survivors;

use std::time::Instant;

use crate::kernel::{Error, netns};
use crate::model::problem::{RehearsalCause, Unrehearsed};
use crate::model::{PodId, Severity};
use crate::records::survey::Surveyed;
pub(crate) use crate::rehearsal::findings::Rehearsed;
use crate::rehearsal::host::HostTwin;

/// So many pods are in the twin of the node at a time: the kernel destroys their namespaces together, and others wait for that.
const AT_ONCE: usize = 32;

/// So many pods that differ stay in the twin of the node until nothing changes in them any more.
const MOST_OPEN: usize = 128;

/// How a difference of a pod counts.
pub(crate) type Weight<'a> = &'a (dyn Fn(&PodId) -> Option<Severity> + Sync);

/// Rehearses the restore of the host and of the pods that have a `weight`: a pod that is not as recorded differs for that reason.
///
/// # Errors
/// The twin of the host cannot be built.
pub(crate) fn rehearse(surveyed: &mut Surveyed, weight: Weight<'_>) -> Result<Rehearsed, Error> {
    let begin = Instant::now();
    let mut rehearsed = netns::in_new(|| on_stage(surveyed, weight))??;
    rehearsed.took = begin.elapsed();
    Ok(rehearsed)
}

/// The order of a rehearsal. The calling thread is in the namespace of the twin of the host.
fn on_stage(surveyed: &mut Surveyed, weight: Weight<'_>) -> Result<Rehearsed, Error> {
    let mut rehearsed = Rehearsed::default();
    // Build what stays of the host, with a stand-in for each device that was lost and returns.
    let mut twin = HostTwin::build(surveyed)?;
    // Restore the host from its record, and compare it.
    let restored = twin.restore(surveyed)?;
    rehearsed.restore += restored;
    rehearsed.host = surveyed.node_state.is_some();
    if rehearsed.host {
        let differences = twin.differences(surveyed)?;
        rehearsed.add(None, Severity::Error, differences);
    }
    for link in twin.unrehearsed() {
        let cause = RehearsalCause::NotRehearsed {
            why: Unrehearsed::Kind,
        };
        rehearsed.problems.push(cause.info(link));
    }
    // Restore the pods, a part of them at a time, and compare them.
    let (host, mut chosen) = (&surveyed.host, Vec::new());
    for matched in &mut surveyed.matched {
        if let Some(severity) = weight(&matched.info.id) {
            chosen.push((matched, severity));
        }
    }
    let mut open = Vec::new();
    for part in chosen.chunks_mut(AT_ONCE) {
        open.extend(pods::restore(part, host, &mut twin, &mut rehearsed)?);
        // One that differs may still change: others go on meanwhile.
        pods::compare(&mut open, MOST_OPEN, &twin.host, &mut rehearsed);
    }
    pods::compare(&mut open, 0, &twin.host, &mut rehearsed);
    Ok(rehearsed)
}
