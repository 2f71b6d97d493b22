//! The watch after a restore: a network manager may recreate a parent of pods seconds later, and a driver may reset twice.
//!
//! Link events of the host and of the pods are watched. The last observation finds every other loss.

use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use crate::journal;
use crate::kernel::Netns;
use crate::kernel::events::LinkEvents;
use crate::model::Problem;
use crate::model::problem::{LostObjects, RestoreCause};
use crate::plan::Step;
use crate::progress::{Listener, Progress, Wait};
use crate::refusal::Refusal;
use crate::restore::facts::{Limits, Restored, RestoredPod};
use crate::restore::host::managed;
use crate::restore::host::wait_nic::WaitLimit;

/// So many losses let a restore, or the watch after it, begin anew: not those of a driver that resets without end.
pub(crate) const AGAIN: usize = 3;

/// How often a wait that can be interrupted checks for that.
const INTERVAL: Duration = Duration::from_millis(250);
/// One loss takes several links, one event each.
const BURST: Duration = Duration::from_millis(100);

/// The time to watch. It begins anew after a loss, but not for a driver that resets without end; events of links that no pod
/// needs do not shorten it.
pub(crate) struct Settle {
    length: Duration,
    until: Instant,
    losses: usize,
    /// How long a network manager that is at work then may take.
    grace: Duration,
}

impl Settle {
    pub(crate) fn begin(length: Duration, grace: Duration) -> Self {
        Self {
            grace,
            length,
            until: Instant::now() + length,
            losses: 0,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Everything was observed again, and pods had lost something.
    pub(crate) fn note_loss(&mut self) {
        if self.losses < AGAIN {
            self.losses += 1;
            self.until = Instant::now() + self.length;
        }
    }
}

/// Watches the links of the host and of pods for losses, from its start on. Where the kernel refuses events it only waits.
pub(crate) struct LossWatch(Option<LinkEvents>);

impl LossWatch {
    /// To be started after a restore: its own steps are events too.
    pub(crate) fn start(pods: &[RestoredPod]) -> Self {
        let mut events = LinkEvents::subscribe().ok();
        if let Some(events) = &mut events {
            let paths = pods.iter().filter_map(|pod| pod.pod.netns.as_ref());
            let open = paths.filter_map(|path| Netns::open(path.as_ref()).ok());
            // Linux before 4.2 has the host's events alone.
            let _ = events.include(open);
        }
        Self(events)
    }

    /// Whether links were lost since the last call, or are before the time is over, or may have been by a network manager
    /// that was at work then; ends early when `interrupted`.
    pub(crate) fn has_losses(&mut self, time: &mut Settle, interrupted: &dyn Fn() -> bool) -> bool {
        while !time.left().is_zero() && !interrupted() {
            if self.losses(time.left().min(INTERVAL)) {
                while self.losses(BURST) && !time.left().is_zero() && !interrupted() {}
                return true;
            }
        }
        // Once: a manager that never ends its work is no loss.
        managed::wait_until_idle(mem::take(&mut time.grace), interrupted)
    }

    fn losses(&mut self, limit: Duration) -> bool {
        let Some(events) = &mut self.0 else {
            thread::sleep(limit);
            return false;
        };
        // Events that the kernel dropped may have been of losses.
        events.losses(limit).map_or(true, |names| !names.is_empty())
    }
}

/// Watches for `limits.settle`, restores what is lost `again`, and observes everything a last time.
pub(super) fn settle(
    first: Restored,
    limits: Limits,
    progress: &mut dyn Listener,
    mut again: impl FnMut(WaitLimit<'_>, &mut dyn Listener) -> Result<Restored, Refusal>,
) -> Result<Restored, Refusal> {
    let mut watch = LossWatch::start(&first.pods);
    let (mut restored, mut notes) = (first, Vec::new());
    let mut time = Settle::begin(limits.settle, limits.manager_grace);
    journal::watches(limits.settle);
    progress.notice(Progress::Waiting(Wait::Loss, Vec::new(), limits.settle));
    while watch.has_losses(&mut time, &|| false) {
        let next = again(WaitLimit::new(limits, None), progress)?;
        let lost = next.lost_again_after(&restored, false);
        if !lost.is_empty() {
            time.note_loss();
        }
        notes.extend(lost);
        restored = restored.then(next);
        progress.notice(Progress::Waiting(Wait::Loss, Vec::new(), time.left()));
    }
    let at_once = Limits {
        wait: Duration::ZERO,
        ..limits
    };
    let last = again(WaitLimit::new(at_once, None), progress)?;
    notes.extend(last.lost_again_after(&restored, false));
    restored = restored.then(last);
    restored.problems.extend(notes);
    Ok(restored)
}

impl Restored {
    /// What was lost between the restores before and this one; `is_known` where a loss was seen. Else, where those left
    /// something, this one does their work, unless that was a loss too: a NIC that was just missing.
    pub(crate) fn lost_again_after(&self, before: &Self, is_known: bool) -> Vec<Problem> {
        let is_loss = is_known || before.was_complete || before.is_complete();
        if !is_loss {
            return Vec::new();
        }
        let host = self.host.iter().flat_map(|(steps, _)| steps);
        let pods = self.pods.iter().filter(|pod| !pod.done.is_empty());
        let (alone, others): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.lost_alone);
        let of_host = lost_objects(host.chain(others.iter().flat_map(|pod| &pod.done)));
        let of_host = of_host.map(|what| RestoreCause::LostAgain {
            what,
            pods: others.len(),
        });
        let of_pods = lost_objects(alone.iter().flat_map(|pod| &pod.done));
        let of_pods = of_pods.map(|what| RestoreCause::PodsLostAgain {
            what,
            pods: alone.iter().map(|pod| pod.pod.info.title()).collect(),
        });
        let causes = of_host.into_iter().chain(of_pods);
        causes.map(|cause| cause.warning("host")).collect()
    }

    /// Whether it could not even begin: only its problems are known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.host.is_none() && self.pods.is_empty()
    }

    /// What this restore and one for other pods after it did. What this one found and that one does not find again is kept, such as
    /// what was done for a network manager.
    pub(super) fn completed_by(mut self, second: Self) -> Self {
        if self.is_unknown() {
            return second;
        }
        let mut found = mem::take(&mut self.problems);
        found.retain(|problem| !problem.is_error() && !second.problems.contains(problem));
        let mut both = self.then(second);
        both.problems.extend(found);
        both
    }

    /// What this restore and the one after it did: the steps of both, and how the last one that could begin left everything.
    pub(crate) fn then(mut self, second: Self) -> Self {
        if second.is_unknown() {
            self.problems.extend(second.problems);
            return self;
        }
        let mut both = second;
        both.pending.add(mem::take(&mut self.pending));
        both.detection.add(mem::take(&mut self.detection));
        let mut settings = mem::take(&mut self.settings);
        both.note_settings(&mut settings);
        both.settings = settings;
        both.devices_lost = match (self.devices_lost.take(), both.devices_lost.take()) {
            (Some(first), Some(second)) => Some(&first | &second),
            (first, second) => first.or(second),
        };
        both.was_complete |= self.was_complete || self.is_complete();
        for pod in &mut both.pods {
            let mut first = self.pods.iter();
            let first = first.find(|first| first.pod.info.id == pod.pod.info.id);
            let Some(first) = first else { continue };
            pod.done.splice(..0, first.done.iter().cloned());
            pod.before.clone_from(&first.before);
            pod.state = pod.state.after(!pod.done.is_empty());
        }
        match (self.host, &mut both.host) {
            (Some((first, _)), Some((done, state))) => {
                done.splice(..0, first);
                *state = state.after(!done.is_empty());
            }
            (first, None) => both.host = first,
            (None, Some(_)) => {}
        }
        both
    }
}

/// What these steps brought back; `None` where there are none.
fn lost_objects<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<LostObjects> {
    let objects = steps.map(|step| match step {
        Step::AddLink(_) => LostObjects::Links,
        step if !step.added_addresses().is_empty() => LostObjects::Addresses,
        _ => LostObjects::Others,
    });
    objects.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Link, LinkKind, PodId, PodInfo, PodSummary, Rule};
    use crate::plan::NetlinkStep;
    use crate::restore::RestoreState;

    #[test]
    fn a_loss_that_is_seen_while_the_nic_is_missing_is_reported_once_it_is_restored() {
        let step = || Step::from(NetlinkStep::AddRule(Rule::default()));
        let of = |steps: Vec<Step>, state| Restored {
            host: Some((steps, state)),
            ..Restored::default()
        };
        let failed = || Restored {
            problems: vec![RestoreCause::NoCarrier.error("eth0")],
            ..of(Vec::new(), RestoreState::Failed)
        };
        let complete = of(vec![step()], RestoreState::Restored);
        let missing = failed();
        assert!(missing.lost_again_after(&complete, false).is_empty());
        let before = complete.then(missing);
        let again = of(vec![step()], RestoreState::Restored);
        assert!(!again.lost_again_after(&before, false).is_empty());
        assert!(again.lost_again_after(&failed(), false).is_empty());
        assert!(!again.lost_again_after(&failed(), true).is_empty());
    }

    #[test]
    fn addresses_that_are_lost_again_are_not_called_links() {
        let lost = |steps: &[Step]| lost_objects(steps.iter());
        let rule = || Step::from(NetlinkStep::AddRule(Rule::default()));
        let address = Address::plain("eth0".parse().unwrap(), [10, 3, 0, 17].into(), 16);
        let address = || Step::from(NetlinkStep::AddAddress(address.clone()));
        let link = Link::plain("eth0".parse().unwrap(), LinkKind::other("dummy"));
        assert_eq!(lost(&[]), None);
        assert_eq!(lost(&[rule()]), Some(LostObjects::Others));
        assert_eq!(lost(&[rule(), address()]), Some(LostObjects::Addresses));
        let all = [rule(), address(), Step::add_link(link)];
        assert_eq!(lost(&all), Some(LostObjects::Links));
        let pod = RestoredPod {
            pod: PodSummary::bare(&PodInfo::nameless(&PodId::from_text("web")), None),
            state: RestoreState::Restored,
            before: None,
            after: None,
            done: vec![address()],
            lost_alone: true,
        };
        let again = Restored {
            pods: vec![pod],
            ..Restored::default()
        };
        let problems = again.lost_again_after(&Restored::default(), true);
        let [problem] = &problems[..] else {
            panic!("{problems:?}")
        };
        let message = problem.message();
        assert!(
            message.starts_with("addresses of 1 pod were lost again"),
            "{message}"
        );
        assert!(!message.contains("CNI DEL"), "{message}");
    }

    #[test]
    fn a_second_restore_that_cannot_begin_hides_nothing_of_the_first() {
        let problem = || RestoreCause::NoCarrier.error("eth0");
        let first = Restored {
            host: Some((Vec::new(), RestoreState::Failed)),
            problems: vec![problem()],
            ..Restored::default()
        };
        let second = Restored {
            problems: vec![problem()],
            ..Restored::default()
        };
        let both = first.then(second);
        assert_eq!(both.host, Some((Vec::new(), RestoreState::Failed)));
        assert_eq!(both.problems.len(), 2);
    }
}
