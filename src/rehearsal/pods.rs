//! The twins of pods.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::inventory::observe::{Host, Pod};
use crate::inventory::unread;
use crate::inventory::visit::visit;
use crate::kernel::state::Needs;
use crate::kernel::{Error, reported};
use crate::model::problem::{RehearsalCause, Unrehearsed};
use crate::model::raw_object::RawObject;
use crate::model::{IfName, LinkKind, NetState, Parent, PodId, Severity};
use crate::plan::DaemonState;
use crate::plan::daemons::has_daemons;
use crate::records::matched::Matched;
use crate::records::survey::{Finding, Unmatched};
use crate::rehearsal::compare::{self as comparison, Difference, Side};
use crate::rehearsal::findings::{Rehearsed, SettlingTime, is_left_to_daemon, left_to_daemons};
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
    /// Whether all that it loses is rehearsed.
    is_whole: bool,
}

/// The twin of a pod, in which its record was restored.
pub(super) struct PodTwin {
    restored: RehearsedPod,
    seen: Seen,
    id: PodId,
    severity: Severity,
    settling: SettlingTime,
    /// What differed before the twin got what a restore leaves to daemons.
    without_daemons: Option<Vec<Difference>>,
}

impl AsMut<Pod> for PodTwin {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.restored.matched.pod
    }
}

/// Builds the twins of some pods together. One that cannot be read, or loses nothing, is left out.
pub(super) fn restore(
    part: &mut [Chosen<'_>],
    host: &Host,
    twin: &mut HostTwin,
    rehearsed: &mut Rehearsed,
) -> Result<Vec<PodTwin>, Error> {
    let seen = see(part, host, twin, rehearsed);
    let infos = seen.iter().map(|one| part[one.at].0.info.clone()).collect();
    // Build what stays of each pod.
    let pods = stage::pods(infos)?.into_iter().zip(&seen);
    let stays = pods.map(|(pod, one)| as_stays(pod, one, part[one.at].0));
    let built = build(stays.collect(), &seen, twin)?;
    // Restore each from its record.
    let begin = Instant::now();
    let records = built
        .into_iter()
        .zip(&seen)
        .map(|(pod, one)| from_record(pod, one, part[one.at].0));
    let restored = restore_pods(records.collect(), &mut twin.host, &twin.links)?;
    rehearsed.restore += begin.elapsed();
    let twins = restored.into_iter().zip(seen).map(|(restored, seen)| {
        let (matched, severity) = &part[seen.at];
        PodTwin {
            restored,
            id: matched.info.id.clone(),
            // What is withheld from it is told where it is found.
            severity: if matched.contested.is_empty() {
                *severity
            } else {
                Severity::Info
            },
            seen,
            settling: SettlingTime::begin(),
            without_daemons: None,
        }
    });
    Ok(twins.collect())
}

/// Compares pods with their twins, until no more than `most` are left that differ and may still change.
pub(super) fn compare(
    twins: &mut Vec<PodTwin>,
    most: usize,
    twin: &mut HostTwin,
    rehearsed: &mut Rehearsed,
) -> Result<(), Error> {
    loop {
        let is_due = |one: &mut PodTwin| one.settling.is_due();
        let mut due: Vec<PodTwin> = twins.extract_if(.., is_due).collect();
        let states = visit(&mut due, |one| look_at_twin(one, &twin.host));
        for (mut one, looked) in due.into_iter().zip(states) {
            let found = looked.and_then(|looked| looked);
            let daemons = one.restored.matched.daemons;
            let found = found.map(|looked| differences(&one.seen, looked, daemons));
            let is_equal = found
                .as_ref()
                .is_ok_and(|found| found.iter().all(is_left_to_daemon));
            if !is_equal && one.settling.goes_on() {
                twins.push(one);
                continue;
            }
            let left = one.restored.problems.iter().filter(|one| one.is_error());
            let found = found.map(|found| left.map(refused).chain(found).collect::<Vec<_>>());
            match found {
                // What comes back with what daemons own is left with that.
                Ok(found) if one.may_need_daemons() && !found.iter().all(is_left_to_daemon) => {
                    twins.push(one.with_daemons(found, twin)?);
                }
                found => rehearsed.count(&one, found),
            }
        }
        let Some(first) = twins.first().filter(|_| twins.len() > most) else {
            return Ok(());
        };
        first.settling.pause();
    }
}

impl PodTwin {
    /// Whether what differs may need an object that is left to a daemon.
    fn may_need_daemons(&self) -> bool {
        let matched = &self.restored.matched;
        matched.daemons == DaemonState::Leave && has_daemons(&matched.claims())
    }

    /// The twin once it was restored with what daemons own, after it `differed` without that.
    fn with_daemons(
        mut self,
        differed: Vec<Difference>,
        twin: &mut HostTwin,
    ) -> Result<Self, Error> {
        self.restored.matched.daemons = DaemonState::Restore;
        let pods = vec![self.restored.matched];
        let mut restored = restore_pods(pods, &mut twin.host, &twin.links)?;
        Ok(Self {
            restored: restored.remove(0),
            settling: SettlingTime::begin(),
            without_daemons: Some(differed),
            ..self
        })
    }
}

impl Rehearsed {
    /// Adds a pod with what was found in the end.
    fn count(&mut self, twin: &PodTwin, found: Result<Vec<Difference>, Error>) {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let error = error.to_string();
                let problem = RehearsalCause::Failed { error }.warning("netns");
                self.problems.push(problem.of(&twin.id));
                self.unproven += 1;
                return;
            }
        };
        let found = match &twin.without_daemons {
            Some(differed) => left_to_daemons(differed.clone(), &found),
            None => found,
        };
        let found = found.into_iter();
        let (of_daemons, differences): (Vec<_>, Vec<_>) = found.partition(is_left_to_daemon);
        if differences.is_empty() && !twin.seen.is_whole {
            self.unproven += 1;
        } else {
            self.pods += 1;
            let is_whole = of_daemons.is_empty();
            self.identical += usize::from(differences.is_empty() && is_whole);
            self.but_for_daemons += usize::from(differences.is_empty() && !is_whole);
        }
        self.leave_to_daemons(Some(&twin.id), of_daemons);
        self.add(Some(&twin.id), twin.severity, differences);
    }
}

/// The differences between a pod and its twin.
fn differences(pod: &Seen, (state, reported): Looked, daemons: DaemonState) -> Vec<Difference> {
    let reported = survivors::in_earnest(reported);
    let real = Side {
        reported: &pod.reported,
        state: &pod.state,
    };
    let twin = Side {
        reported: &reported,
        state: &state,
    };
    comparison::differences(real, twin, &pod.lost, &BTreeSet::new(), daemons)
}

/// What a namespace holds, and what the kernel reports of it.
type Looked = (NetState, Vec<RawObject>);

/// A pod as it was checked a moment ago, or as it is now. The calling thread is inside it.
fn look(matched: &mut Matched, host: &Host) -> Result<Looked, Error> {
    let kept = matched.pod.take_kept().map(Ok);
    let state = kept.unwrap_or_else(|| matched.observe_inside(host))?;
    Ok((state, reported::read(matched.pod.socket()?)?))
}

/// The calling thread is inside it.
fn look_at_twin(twin: &mut PodTwin, host: &Host) -> Result<Looked, Error> {
    let matched = &mut twin.restored.matched;
    // A restore limits the time for a pod.
    matched.pod.socket()?.limit(None);
    let links = matched.pod.observe_links_inside(host)?;
    let state = matched.complete_inside(links, Needs::all_in_twin(&twin.seen.state.links))?;
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
                let problem = unread("netns", &error).of(&matched.info.id);
                rehearsed.problems.push(problem);
                rehearsed.unproven += 1;
                continue;
            }
        };
        let id = &matched.info.id;
        let lost = survivors::lost_in_pod(&state, twin.lost());
        if matched.partial.is_some() {
            rehearsed.leave_out(id, "checkpoint", Unrehearsed::Partial);
            continue;
        }
        let mut is_whole = true;
        for (link, why) in left_out(&state, twin) {
            rehearsed.not_rehearsed(id, link, why);
            is_whole = false;
        }
        if lost.is_empty() {
            rehearsed.unproven += usize::from(!is_whole);
        } else {
            seen.push(Seen {
                at,
                state,
                reported,
                lost,
                is_whole,
            });
        }
    }
    seen
}

/// Counts the pods without a record that lose something.
pub(super) fn without_record(pods: &[Unmatched], twin: &HostTwin, rehearsed: &mut Rehearsed) {
    for one in pods.iter().filter(|one| one.finding != Finding::Private) {
        let is_left_out = left_out(&one.state, twin).next().is_some();
        if is_left_out || !survivors::lost_in_pod(&one.state, twin.lost()).is_empty() {
            rehearsed.leave_out(&one.pod.info.id, "checkpoint", Unrehearsed::NoRecord);
        }
    }
}

/// The links that cannot be in a twin.
fn left_out(state: &NetState, twin: &HostTwin) -> impl Iterator<Item = (IfName, Unrehearsed)> {
    state.links.iter().filter_map(|link| {
        let why = match (&link.kind, &link.parent) {
            (LinkKind::Physical, _) => Unrehearsed::Device,
            (_, Some(Parent::Host(parent))) if twin.unrehearsed().any(|one| one == parent) => {
                Unrehearsed::Below
            }
            (_, Some(Parent::Elsewhere)) if link.kind.can_be_made() => Unrehearsed::Elsewhere,
            _ => return None,
        };
        Some((link.name.clone(), why))
    })
}

/// A twin with what stays of a pod as its record.
fn as_stays(pod: Pod, seen: &Seen, matched: &Matched) -> Matched {
    let mut twin = with_record(pod, matched, survivors::without(&seen.state, &seen.lost));
    twin.daemons = DaemonState::Restore;
    twin
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
