//! What a snapshot decides by: what runs now, and what is stored. Pure.

use std::collections::{BTreeMap, HashMap};

use crate::model::checkpoint::Extension;
use crate::model::pod::by_netns::ByNetns;
use crate::model::pod::empty::{EmptyNetns, Evidence};
use crate::model::pod::past::PastFiles;
use crate::model::{
    AnswerRecord, Bytes, Checkpoint, Hardware, IfName, Link, Loss, NetState, NetnsIdentity,
    NodeIdentity, NodeState, PodId, PodInfo, Problem, StackLink, Stamp,
};

/// What runs now.
#[derive(Debug)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Observation {
    pub moment: Moment,
    pub pods: Vec<PodObservation>,
    /// What is known to be wrong before anything is decided: what could not be found or read, and what several pods claim,
    /// with the one that has it by the generations and libcni's results.
    #[cfg_attr(test, serde(default))]
    pub problems: Vec<Problem>,
    /// The names of what a person gives up.
    #[cfg_attr(test, serde(default))]
    pub accept: Vec<Bytes>,
}

/// The machine, and how much of it was observed.
#[derive(Debug)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Moment {
    /// The time (RFC 3339).
    pub created: String,
    /// The same in milliseconds since the machine's boot.
    #[cfg_attr(test, serde(default))]
    pub created_boottime: Option<u64>,
    pub node: NodeIdentity,
    /// The host's namespace.
    #[cfg_attr(test, serde(default))]
    pub netns: Option<NetnsIdentity>,
    pub host: NetState,
    /// What has answered the pods and the host, by their neighbour tables.
    #[cfg_attr(test, serde(default))]
    pub answers: Vec<AnswerRecord>,
    /// The links that had these ifindexes, which something of the host still names.
    #[cfg_attr(test, serde(default))]
    pub former_indexes: BTreeMap<u32, IfName>,
    /// The host's links after everything else was read.
    pub links_after: Vec<Link>,
    /// The devices inside pods, where every namespace of the machine was read.
    #[cfg_attr(test, serde(default))]
    pub devices_inside: Option<Vec<Hardware>>,
    /// Whether all pods were to be observed.
    pub everything: bool,
    /// Whether every namespace and the host's links were found and opened.
    pub complete: bool,
}

impl Moment {
    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            node: self.node.clone(),
            boottime: self.created_boottime,
            wall: self.created.clone(),
        }
    }
}

/// A network namespace.
#[derive(Debug)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct PodObservation {
    /// Its pod, as runtimes and earlier checkpoints name it.
    pub info: PodInfo,
    pub identity: NetnsIdentity,
    /// A path that leads to it.
    pub path: Bytes,
    pub reading: Reading,
    /// What shows, of a namespace without interface and checkpoint, that it should have one.
    #[cfg_attr(test, serde(default))]
    pub evidence: Option<Evidence>,
    /// What it lacks of libcni's result for it.
    #[cfg_attr(test, serde(default))]
    pub lacks: Option<Loss>,
}

impl PodObservation {
    /// Whether the namespace was read, and has no interface.
    pub(crate) fn is_bare(&self) -> bool {
        match &self.reading {
            Reading::Whole(state) => state.links_but_loopback().next().is_none(),
            Reading::Torn { .. } | Reading::NoPod | Reading::Failed(_) => false,
        }
    }
}

/// What was read in a namespace.
#[derive(Debug)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[cfg_attr(test, serde(rename_all = "kebab-case"))]
pub(crate) enum Reading {
    Whole(NetState),
    /// This link vanished meanwhile.
    Torn {
        state: NetState,
        link: String,
    },
    /// By the runtimes and its processes it belongs to no pod; it has no interface and no checkpoint.
    NoPod,
    Failed(Problem),
}

/// The files of the state directory, and what its generations have beside them.
#[derive(Debug)]
pub(crate) struct Archive {
    /// The checkpoints by the names of their files, or why one cannot be read.
    checkpoints: BTreeMap<PodId, Result<Checkpoint, Problem>>,
    /// The host's state, if it was recorded in this boot of this machine.
    pub node: Option<NodeState>,
    by_netns: ByNetns<PodId>,
    /// What has answered the pods.
    answers: HashMap<PodId, Vec<AnswerRecord>>,
    /// The generations, newest first; read only where something of them is needed.
    pub past: Vec<PastFiles>,
}

/// The good record of a running pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoodRecord<'a> {
    pub own: &'a Extension,
    /// The newest generation that has it.
    pub generation: Option<u64>,
}

impl Archive {
    pub(crate) fn new(
        checkpoints: BTreeMap<PodId, Result<Checkpoint, Problem>>,
        node: Option<NodeState>,
    ) -> Self {
        let with_netns = checkpoints.iter().filter_map(|(id, checkpoint)| {
            let extension = checkpoint.as_ref().ok()?.netfix.as_ref()?;
            Some((&extension.identity, id.clone()))
        });
        Self {
            by_netns: ByNetns::new(with_netns),
            answers: node
                .as_ref()
                .map(|node| node.answers.by_pod())
                .unwrap_or_default(),
            checkpoints,
            node,
            past: Vec::new(),
        }
    }

    /// What has answered this pod.
    pub(crate) fn answers_of(&self, pod: &PodId) -> &[AnswerRecord] {
        self.answers.get(pod).map_or(&[], Vec::as_slice)
    }

    /// Whether something has answered this pod, or the host, and is not among what answers `now`.
    pub(super) fn has_silent(&self, pod: Option<&PodId>, now: &[AnswerRecord]) -> bool {
        let node = self.node.as_ref();
        node.is_some_and(|node| node.answers.has_silent(pod, now))
    }

    /// The file of this name.
    pub(crate) fn get(&self, id: &PodId) -> Option<&Result<Checkpoint, Problem>> {
        self.checkpoints.get(id)
    }

    pub(crate) fn has(&self, id: &PodId) -> bool {
        self.checkpoints.contains_key(id)
    }

    /// Every checkpoint that can be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = (&PodId, &Checkpoint)> {
        let all = self.checkpoints.iter();
        all.filter_map(|(id, checkpoint)| Some((id, checkpoint.as_ref().ok()?)))
    }

    /// All checkpoints of this namespace; one of them may come twice.
    pub(crate) fn about(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        info: &PodInfo,
    ) -> impl Iterator<Item = (&PodId, &Extension)> {
        let candidates = self.by_netns.candidates(identity);
        let own = candidates.filter_map(|id| {
            let checkpoint = self.checkpoints.get(id)?.as_ref().ok()?;
            Some((id, checkpoint.netfix.as_ref()?))
        });
        own.filter(|(_, extension)| extension.is_about(node, identity, info))
    }

    /// The good record of this namespace: its best checkpoint, or else that of the newest generation that has one.
    pub(crate) fn good(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        info: &PodInfo,
    ) -> Option<GoodRecord<'_>> {
        if let Some((id, own)) = best(self.about(node, identity, info)) {
            let generation = PastFiles::newest_with(&self.past, id, &own.created);
            return Some(GoodRecord { own, generation });
        }
        // What a person gave up is in older generations all the same.
        if self.empty(identity).is_some_and(|known| known.accepted) {
            return None;
        }
        self.past.iter().find_map(|past| {
            let all = past.checkpoints.iter();
            let own = all.filter_map(|(id, one)| Some((id, one.netfix.as_ref()?)));
            let (_, own) = best(own.filter(|(_, own)| own.is_about(node, identity, info)))?;
            Some(GoodRecord {
                own,
                generation: Some(past.number),
            })
        })
    }

    /// What earlier snapshots know of a namespace that had no interface.
    pub(crate) fn empty(&self, identity: &NetnsIdentity) -> Option<&EmptyNetns> {
        self.node.as_ref()?.empty(identity)
    }

    /// The newest generation that has the host's state.
    pub(crate) fn generation_of_node(&self) -> Option<u64> {
        let created = &self.node.as_ref()?.created;
        PastFiles::newest_with_node(&self.past, created)
    }

    /// The host's links under every checkpoint of this boot, with the checkpoint's name.
    pub(crate) fn stacks(&self, node: &NodeIdentity) -> impl Iterator<Item = (&PodId, &StackLink)> {
        let own = self
            .readable()
            .filter_map(|(id, checkpoint)| Some((id, checkpoint.netfix.as_ref()?)));
        own.filter(|(_, extension)| extension.node.is_same(node))
            .flat_map(|(id, extension)| extension.stack.iter().map(move |link| (id, link)))
    }
}

/// The newest of these, and of the same second the one with a sandbox.
fn best<'a>(
    about: impl Iterator<Item = (&'a PodId, &'a Extension)>,
) -> Option<(&'a PodId, &'a Extension)> {
    about.max_by_key(|(_, own)| own.rank())
}
