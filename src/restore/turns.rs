//! The turns in which pods are restored: which pods are next, and for how long.
//!
//! Pods that need little come first, so no pod delays the others. Each of the others has a budget of time, and when that is used
//! up, the rest of its work waits until all others are restored. Nothing is left out: the last turn has no limit.

use std::time::Duration;

use crate::restore::course::Removal;
use crate::restore::pods::pod::PodJob;

/// The pods of a turn in parts with so many addresses to probe, which takes a second: no pod waits for the probes of those after it.
pub(super) fn parts<'a, 'p>(
    pods: &'a mut [&'p mut PodJob],
    most: usize,
) -> impl Iterator<Item = &'a mut [&'p mut PodJob]> {
    let mut probes = 0;
    pods.chunk_by_mut(move |one, next| {
        probes += one.targets.len();
        let fits = probes + next.targets.len() <= most;
        probes = if fits { probes } else { 0 };
        fits
    })
}

/// The pods that are worked on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Those whose record is small, as long as they need little time.
    Small,
    /// All that are left, each for the time that one pod may cost.
    Budget(Duration),
    /// What is left after that time.
    Rest(Duration),
}

impl Turn {
    /// All turns, in their order; `budget` is the time that one pod may cost.
    pub(super) fn all(budget: Duration) -> [Self; 3] {
        [Self::Small, Self::Budget(budget), Self::Rest(budget)]
    }

    /// The time for one pod, with that of earlier turns.
    pub(super) fn limit(self) -> Option<Duration> {
        /// Hundreds of times what a pod with one interface needs.
        const LITTLE: Duration = Duration::from_millis(250);
        match self {
            Self::Small => Some(LITTLE),
            Self::Budget(budget) => Some(budget),
            Self::Rest(_) => None,
        }
    }

    /// The pods of this turn, in the order in which they are worked on.
    pub(super) fn take(self, pods: &mut [PodJob]) -> Vec<&mut PodJob> {
        let mut taken: Vec<&mut PodJob> =
            pods.iter_mut().filter(|pod| self.is_turn_of(pod)).collect();
        taken.sort_by_cached_key(|pod| pod.order());
        for pod in &mut taken {
            pod.begin_turn(match self {
                Self::Rest(budget) => Some(budget),
                Self::Small | Self::Budget(_) => None,
            });
        }
        taken
    }

    /// An earlier turn has left nothing to do, or nothing that can be done, in the pods that it did not find late.
    fn is_turn_of(self, pod: &PodJob) -> bool {
        /// Objects in a record. A pod of Kubernetes has a dozen.
        const SMALL: usize = 1000;
        let is_small = pod.size <= SMALL;
        match self {
            Self::Small => is_small,
            Self::Budget(_) => (!is_small || pod.is_late()) && pod.removal == Removal::None,
            Self::Rest(_) => pod.is_late(),
        }
    }
}
