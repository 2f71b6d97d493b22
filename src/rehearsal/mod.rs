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
mod weights;

use std::time::{Duration, Instant};

use crate::kernel::{Error, netns};
use crate::model::Problem;
use crate::model::problem::{RehearsalCause, Unrehearsed};
use crate::records::survey::Surveyed;
pub(crate) use crate::rehearsal::findings::Rehearsed;
use crate::rehearsal::findings::is_left_to_daemon;
use crate::rehearsal::host::HostTwin;
use crate::rehearsal::weights::Part;
pub(crate) use crate::rehearsal::weights::Weights;

/// So many pods are in the twin of the node at a time: the kernel destroys their namespaces together, and others wait for that.
const AT_ONCE: usize = 32;

/// So many pods that differ stay in the twin of the node until nothing changes in them any more.
const MOST_OPEN: usize = 128;

/// After this time no further pod is rehearsed.
const LIMIT: Duration = Duration::from_secs(60);

/// Rehearses the restore of the host and of the pods that have a weight.
///
/// # Errors
/// The twin of the host cannot be built.
pub(crate) fn rehearse(surveyed: &mut Surveyed, weights: &Weights) -> Result<Rehearsed, Problem> {
    let begin = Instant::now();
    let rehearsed = netns::in_new(|| on_stage(surveyed, weights, begin));
    let mut rehearsed = rehearsed
        .and_then(|rehearsed| rehearsed)
        .map_err(|error| failed(&error))?;
    rehearsed.took = begin.elapsed();
    Ok(rehearsed)
}

/// A rehearsal that cannot take place proves nothing, and is no reason against a window.
fn failed(error: &Error) -> Problem {
    let error = error.to_string();
    RehearsalCause::Failed { error }.warning("host")
}

/// The order of a rehearsal. The calling thread is in the namespace of the twin of the host.
fn on_stage(
    surveyed: &mut Surveyed,
    weights: &Weights,
    begin: Instant,
) -> Result<Rehearsed, Error> {
    let mut rehearsed = Rehearsed::default();
    // Build what stays of the host, with a stand-in for each device that was lost and returns.
    let mut twin = HostTwin::build(surveyed)?;
    // Restore the host from its record, and compare it.
    let restored = twin.restore(surveyed, surveyed.baseline.daemons)?;
    rehearsed.restore += restored;
    rehearsed.host = surveyed.node_state.is_some();
    if rehearsed.host {
        let differences = twin.differences(surveyed)?.into_iter();
        let (left, differences) = differences.partition(is_left_to_daemon);
        rehearsed.leave_to_daemons(None, left);
        rehearsed.add(None, weights.host, differences);
    }
    for link in twin.unrehearsed() {
        let cause = RehearsalCause::NotRehearsed {
            why: Unrehearsed::Kind,
        };
        rehearsed.problems.push(cause.info(link));
    }
    pods::without_record(&surveyed.unmatched, &twin, &mut rehearsed);
    // Restore the pods, a part of them at a time, and compare them.
    let (host, mut chosen) = (&surveyed.host, Vec::new());
    for matched in &mut surveyed.matched {
        match weights.of(&matched.info.id) {
            Some(Part::Rehearsed(severity)) => chosen.push((matched, severity)),
            Some(Part::Lost) => rehearsed.leave_out(&matched.info.id, "netns", Unrehearsed::Lost),
            Some(Part::Unread) => rehearsed.unproven += 1,
            None => {}
        }
    }
    let (mut left, mut open) = (chosen.len(), Vec::new());
    for part in chosen.chunks_mut(AT_ONCE) {
        let known = rehearsed.counted() + open.len();
        let restored = if begin.elapsed() < LIMIT {
            pods::restore(part, host, &mut twin, &mut rehearsed).map_err(|error| failed(&error))
        } else {
            Err(RehearsalCause::TimeOver { limit: LIMIT }.warning("host"))
        };
        match restored {
            Ok(twins) => open.extend(twins),
            Err(problem) => {
                rehearsed.problems.push(problem);
                let counted = rehearsed.counted() + open.len() - known;
                rehearsed.unproven += left.saturating_sub(counted);
                break;
            }
        }
        left -= part.len();
        // One that differs may still change: others go on meanwhile.
        pods::compare(&mut open, MOST_OPEN, &mut twin, &mut rehearsed)?;
    }
    pods::compare(&mut open, 0, &mut twin, &mut rehearsed)?;
    Ok(rehearsed)
}
