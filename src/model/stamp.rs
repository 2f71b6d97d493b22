//! The time of a record.

use crate::model::checkpoint::Extension;
use crate::model::{NodeIdentity, NodeState, PodId};

/// When something was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The boot in which it was.
    pub node: NodeIdentity,
    /// In milliseconds since that boot (`CLOCK_BOOTTIME`); `None` where an older netfix recorded it.
    pub boottime: Option<u64>,
    /// By the wall clock (RFC 3339, UTC), as it was set then.
    pub wall: String,
}

impl Stamp {
    /// The order of times of one boot, whatever the wall clock was set to.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (self.boottime, self.wall.clone())
    }
}

impl Extension {
    /// The order of the records of one namespace: the last is the best one, of the same time one with a sandbox.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (self.stamp().order(), self.pod.sandbox.is_some())
    }

    /// When the state was read.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            node: self.node.clone(),
            boottime: self.created_boottime,
            wall: self.created.clone(),
        }
    }
}

impl NodeState {
    fn at(&self, wall: &str, boottime: Option<u64>) -> Stamp {
        Stamp {
            node: self.node.clone(),
            boottime,
            wall: wall.to_owned(),
        }
    }

    /// When the state was read.
    pub(crate) fn stamp(&self) -> Stamp {
        self.at(&self.created, self.created_boottime)
    }

    /// When a snapshot last verified a pod's checkpoint; `None` when unknown.
    pub(crate) fn seen(&self, pod: &PodId) -> Option<Stamp> {
        let boottime = self.seen_boottime.get(pod).copied();
        self.seen.get(pod).map(|wall| self.at(wall, boottime))
    }

    /// When the last snapshot of all pods was completed; `None` when none was.
    pub(crate) fn completed(&self) -> Option<Stamp> {
        let wall = self.complete.as_deref()?;
        Some(self.at(wall, self.complete_boottime))
    }

    /// Notes that a snapshot verified a pod's checkpoint.
    pub(crate) fn note_seen(&mut self, pod: &PodId, at: &Stamp) {
        self.seen.insert(pod.clone(), at.wall.clone());
        self.seen_boottime.remove(pod);
        self.seen_boottime
            .extend(at.boottime.map(|at| (pod.clone(), at)));
    }

    /// Notes that a snapshot of all pods was completed.
    pub(crate) fn note_complete(&mut self, at: &Stamp) {
        self.complete = Some(at.wall.clone());
        self.complete_boottime = at.boottime;
    }

    /// Forgets when checkpoints were verified, and what answered, of pods that are not stored any more.
    pub(crate) fn forget_unless(&mut self, is_stored: impl Fn(&PodId) -> bool) {
        self.seen.retain(|id, _| is_stored(id));
        self.seen_boottime.retain(|id, _| is_stored(id));
        self.answers.forget_unless(is_stored);
    }
}
