//! What was true before the window, and the pods that it leaves out.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::clock;
use crate::inventory::observe::Host;
use crate::matching::Selection;
use crate::model::next::{CommandName, RunningCommand};
use crate::model::problem::WindowCause;
use crate::model::text::join;
use crate::model::window::KernelNames;
use crate::model::{AnswerRecord, IfName, Link, NodeState, PodId, Problem, Window, stack};
use crate::plan::snapshot_quality;
use crate::records::stored::{Stored, load_in_part, load_node};
use crate::refusal::Refusal;
use crate::restore::{RestoreState, Restored, answering};
use crate::store::{Guard, Store, Whole};
use crate::window::facts::Silence;
use crate::window::observed::running;

/// What was true before the window, in memory: a restore from here needs no disk.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub stored: Stored,
    pub node: Option<NodeState>,
    /// Gateways and targets that did not answer.
    pub silent: Vec<Silence>,
    /// The sockets of the runtimes that answered.
    pub runtimes: Vec<PathBuf>,
}

impl Baseline {
    /// The devices of the host at the bottom of the pods' links.
    pub(crate) fn devices(&self) -> BTreeSet<IfName> {
        let checkpoints = self.stored.checkpoints.iter();
        let extensions = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        let devices = extensions.flat_map(|extension| stack::devices(&extension.stack));
        devices.cloned().collect()
    }

    /// Whether links of the pod are on this device of the host, or it has the device.
    pub(crate) fn is_on(&self, pod: &PodId, device: &IfName) -> bool {
        let own = self
            .stored
            .checkpoints
            .iter()
            .find(|(info, _)| info.id == *pod);
        let own = own.and_then(|(_, checkpoint)| checkpoint.netfix.as_ref());
        own.is_some_and(|own| {
            own.state.link(device).is_some_and(Link::is_device)
                || stack::devices(&own.stack).any(|one| one == device)
        })
    }

    /// The words by which the kernel's log names the recorded devices, of the host and of pods.
    pub(crate) fn kernel_names(&self) -> KernelNames {
        let checkpoints = self.stored.checkpoints.iter();
        let extensions = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        let states = extensions.map(|extension| &extension.state);
        let host = self.node.iter().map(|node| &node.state);
        let links = host.chain(states).flat_map(|state| &state.links);
        KernelNames::of(links, &self.devices())
    }

    /// The devices of the host that have another ifindex now: `eth0:2:7` each, with the former one and the present one.
    pub(crate) fn renumbered(&self) -> String {
        let recorded = self.node.as_ref().map(|node| &node.state);
        let Some((then, host)) = recorded.zip(Host::observe().ok()) else {
            return String::new();
        };
        let pairs = snapshot_quality::renumbered(then, &host.state);
        let words = pairs.map(|(then, now)| format!("{}:{}:{}", now.name, then.index, now.index));
        join(words, " ")
    }

    /// Notes what has answered, here and on disk; returns why that failed.
    pub(crate) fn note_answers(
        &mut self,
        found: Vec<AnswerRecord>,
        guard: Option<&Guard>,
    ) -> Option<Problem> {
        let node = self.node.as_mut()?;
        node.answers.take(found.clone(), &clock::hour_ago());
        answering::save(guard?, found, &[]).err()
    }
}

/// Reads the files of the interrupted window: in the middle of a loss netfix takes no snapshot.
pub(crate) fn recover(
    window: &Window,
    selection: &Selection,
    store: &Store,
) -> Result<(Baseline, LeftOut), Refusal> {
    // COMMAND may have outlived its netfix: two at once would upgrade the driver twice.
    if let Some(RunningCommand { name, pid, .. }) = running(window) {
        let cause = match name {
            CommandName::Command => WindowCause::CommandStillRuns { pid },
            CommandName::Rollback => WindowCause::RollbackStillRuns { pid },
        };
        return Err(cause.error(window.id.clone()).into());
    }
    let mut baseline = read_back(selection, store)?;
    baseline.silent = Silence::all_recorded(window);
    let left_out = LeftOut::of_window(window, &baseline.stored);
    Ok((baseline, left_out))
}

/// Reads everything that a restore needs.
pub(crate) fn read_back(selection: &Selection, store: &Store) -> Result<Baseline, Refusal> {
    let mut stored = load_in_part(store, selection)?;
    stored.whole.values_mut().for_each(Whole::hold);
    let mut problems = Vec::new();
    let node = load_node(store, &mut problems)?;
    problems.retain(Problem::is_error);
    // With a damaged file the host is that of a generation.
    if node.is_none() && !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(Baseline {
        stored,
        node,
        ..Baseline::default()
    })
}

/// The pods that a window leaves out of its verdict and counts. The restore still repairs one that loses its network.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    pods: BTreeSet<PodId>,
    /// Those that lost their network: the window includes them again.
    lost: BTreeSet<PodId>,
}

impl LeftOut {
    pub(crate) fn new(pods: BTreeSet<PodId>) -> Self {
        Self {
            pods,
            ..Self::default()
        }
    }

    /// Those of an interrupted window: pods that had a checkpoint and are not in its record.
    fn of_window(window: &Window, stored: &Stored) -> Self {
        let ids = stored.checkpoints.iter().map(|(info, _)| &info.id);
        Self::new(ids.filter(|id| !window.has_pod(id)).cloned().collect())
    }

    /// Leaves out these too.
    pub(crate) fn add(&mut self, pods: BTreeSet<PodId>) {
        self.pods.extend(pods);
    }

    pub(crate) fn has(&self, id: &PodId) -> bool {
        self.pods.contains(id)
    }

    /// Whether it was left out until it was lost.
    pub(crate) fn had(&self, id: &PodId) -> bool {
        self.lost.contains(id)
    }

    /// Removes them from what a restore did, but those that it found lost.
    pub(crate) fn leave(&mut self, restored: &mut Restored) {
        for pod in &restored.pods {
            let is_well = matches!(
                pod.state,
                RestoreState::InSync | RestoreState::CutOff | RestoreState::Unknown
            );
            if !is_well && let Some(id) = self.pods.take(&pod.pod.info.id) {
                self.lost.insert(id);
            }
        }
        restored.pods.retain(|pod| !self.has(&pod.pod.info.id));
        restored.problems.retain(|problem| !self.is_about(problem));
    }

    /// Whether a problem is about one of them.
    pub(crate) fn is_about(&self, problem: &Problem) -> bool {
        problem.pod.as_ref().is_some_and(|id| self.has(id))
    }
}
