//! The twins of pods.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::inventory::cannot_observe;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::visit::visit;
use crate::kernel::{Error, reported};
use crate::model::problem::{RehearsalCause, Unrehearsed};
use crate::model::raw_object::RawObject;
use crate::model::{IfName, LinkKind, NetState, Parent, Severity};
use crate::records::matched::Matched;
use crate::rehearsal::compare::{self, Difference, Side};
use crate::rehearsal::findings::{Rehearsed, SettlingTime};
use crate::rehearsal::host::{HostTwin, refused};
use crate::rehearsal::stage::{self, link_data};
use crate::rehearsal::survivors;
use crate::restore::rehearsed::{RehearsedPod, restore_pods};

/// A pod, and how a difference of it counts.
pub(super) type Chosen<'a> = (&'a mut Matched, Severity);

/// A pod as it is now.
struct Seen {
    /// Where it is in the part.
    at: usize,
    state: NetState,
    reported: Vec<RawObject>,
    /// What it loses with the host's links.
    lost: BTreeSet<IfName>,
}

/// Rehearses some pods together. One that cannot be read, or loses nothing, is left out.
pub(super) fn rehearse(
    part: &mut [Chosen<'_>],
    host: &Host,
    twin: &mut HostTwin,
    rehearsed: &mut Rehearsed,
) -> Result<(), Error> {
    let seen = see(part, host, twin, rehearsed);
    let infos = seen.iter().map(|one| part[one.at].0.info.clone()).collect();
    // Build what stays of each pod.
    let pods = stage::pods(infos)?;
    let mut all: Vec<(Pod, &Seen)> = pods.into_iter().zip(&seen).collect();
    let stays: Vec<Matched> = all
        .drain(..)
        .map(|(pod, one)| as_stays(pod, one, part[one.at].0))
        .collect();
    let built = build(stays, &seen, twin)?;
    // Restore each from its record.
    let begin = Instant::now();
    let records = built
        .into_iter()
        .zip(&seen)
        .map(|(pod, one)| from_record(pod, one, part[one.at].0));
    let mut restored = restore_pods(records.collect(), &mut twin.host, &twin.links)?;
    rehearsed.restore += begin.elapsed();
    // Compare, and again a moment later where that may have changed.
    let found = compare_all(&seen, &mut restored, &twin.host);
    for ((one, pod), found) in seen.iter().zip(restored).zip(found) {
        let (matched, severity) = &part[one.at];
        let left = pod.problems.iter().filter(|one| one.is_error());
        let differences: Vec<Difference> = left.map(refused).chain(found).collect();
        rehearsed.pods += 1;
        rehearsed.identical += usize::from(differences.is_empty());
        // What is withheld from it is told where it is found.
        let is_contested = !matched.contested.is_empty();
        let severity = if is_contested {
            Severity::Info
        } else {
            *severity
        };
        rehearsed.add(Some(matched), severity, differences);
    }
    Ok(())
}

/// The differences between each pod and its twin, once nothing changes in that any more.
fn compare_all(seen: &[Seen], restored: &mut [RehearsedPod], host: &Host) -> Vec<Vec<Difference>> {
    let mut found: Vec<Vec<Difference>> = restored.iter().map(|_| Vec::new()).collect();
    let mut moment = SettlingTime::begin();
    let mut open: Vec<usize> = (0..restored.len()).collect();
    while !open.is_empty() {
        let mut again: Vec<&mut RehearsedPod> = restored
            .iter_mut()
            .enumerate()
            .filter_map(|(at, pod)| open.contains(&at).then_some(pod))
            .collect();
        let states = visit(&mut again, |pod| look(&mut pod.matched, host));
        for (at, looked) in open.iter().zip(states) {
            found[*at] = differences(&seen[*at], looked.and_then(|looked| looked));
        }
        open.retain(|at| !found[*at].is_empty());
        if !moment.goes_on() {
            break;
        }
    }
    found
}

/// The differences between a pod and its twin.
fn differences(pod: &Seen, twin: Result<(NetState, Vec<RawObject>), Error>) -> Vec<Difference> {
    let (state, reported) = match twin {
        Ok(looked) => looked,
        Err(error) => {
            let error = error.to_string();
            return vec![("netns".to_owned(), RehearsalCause::Failed { error })];
        }
    };
    let reported = survivors::in_earnest(reported);
    let real = Side {
        reported: &pod.reported,
        state: &pod.state,
    };
    let twin = Side {
        reported: &reported,
        state: &state,
    };
    compare::differences(real, twin, &pod.lost, &BTreeSet::new())
}

impl AsMut<Pod> for RehearsedPod {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.matched.pod
    }
}

/// What a namespace holds, and what the kernel reports of it. The calling thread is inside it.
fn look(matched: &mut Matched, host: &Host) -> Result<(NetState, Vec<RawObject>), Error> {
    // A restore limits the time for a pod.
    matched.pod.socket()?.limit(None);
    let state = matched.observe_inside(host)?;
    Ok((state, reported::read(matched.pod.socket()?)?))
}

/// The pods that lose something, as they are now.
fn see(
    part: &mut [Chosen<'_>],
    host: &Host,
    twin: &HostTwin,
    rehearsed: &mut Rehearsed,
) -> Vec<Seen> {
    let mut pods: Vec<&mut Matched> = part.iter_mut().map(|(matched, _)| &mut **matched).collect();
    let states = visit(&mut pods, |matched| look(matched, host));
    let mut seen = Vec::new();
    for (at, (matched, looked)) in pods.into_iter().zip(states).enumerate() {
        let (state, reported) = match looked.and_then(|looked| looked) {
            Ok(looked) => looked,
            Err(error) => {
                let problem = cannot_observe("netns", &error).of(&matched.info.id);
                rehearsed.problems.push(problem);
                rehearsed.unproven += 1;
                continue;
            }
        };
        rehearsed.leave_out(matched, left_out(&state));
        let lost = survivors::lost_in_pod(&state, twin.lost());
        if matched.partial.is_some() {
            let why = Unrehearsed::Partial;
            let cause = RehearsalCause::NotRehearsed { why };
            rehearsed
                .problems
                .push(cause.info("checkpoint").of(&matched.info.id));
            rehearsed.unproven += 1;
        } else if !lost.is_empty() {
            seen.push(Seen {
                at,
                state,
                reported,
                lost,
            });
        }
    }
    seen
}

/// The links that cannot be in a twin.
fn left_out(state: &NetState) -> impl Iterator<Item = (IfName, Unrehearsed)> {
    state.links.iter().filter_map(|link| {
        let why = match (&link.kind, &link.parent) {
            (LinkKind::Physical, _) => Unrehearsed::Device,
            (_, Some(Parent::Elsewhere)) if link.kind.can_be_made() => Unrehearsed::Elsewhere,
            _ => return None,
        };
        Some((link.name.clone(), why))
    })
}

/// A twin with what stays of a pod as its record.
fn as_stays(pod: Pod, seen: &Seen, matched: &Matched) -> Matched {
    with_record(pod, matched, survivors::without(&seen.state, &seen.lost))
}

/// A twin with the record of the pod.
fn from_record(pod: Pod, seen: &Seen, matched: &Matched) -> Matched {
    let recorded = matched.recorded_state();
    let record = survivors::record(&recorded, &seen.lost, &BTreeSet::new());
    let mut twin = with_record(pod, matched, record);
    twin.withheld.clone_from(&matched.withheld);
    twin
}

fn with_record(pod: Pod, matched: &Matched, state: NetState) -> Matched {
    let mut checkpoint = matched.checkpoint.clone();
    if let Some(own) = &mut checkpoint.netfix {
        own.state = state;
    }
    Matched::of_twin(matched, checkpoint, pod)
}

/// Builds what stays of the pods, and returns their twins.
fn build(mut stays: Vec<Matched>, seen: &[Seen], twin: &mut HostTwin) -> Result<Vec<Pod>, Error> {
    let mut both: Vec<(&mut Matched, &Seen)> = stays.iter_mut().zip(seen).collect();
    let added = crate::kernel::netns::visit(
        &mut both,
        |(matched, _)| matched.pod.netns.reopen(),
        |(matched, one)| {
            let stay = matched.claims().into_owned();
            stage::add_to_pod(
                &mut matched.pod,
                &stay,
                &link_data(&one.reported),
                &twin.sink,
            )
        },
    );
    for result in added {
        result??;
    }
    twin.sink.give_carrier()?;
    let built = restore_pods(stays, &mut twin.host, &twin.links)?;
    Ok(built.into_iter().map(|one| one.matched.pod).collect())
}
