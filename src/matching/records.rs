//! Which stored record belongs to which running pod: by identity, never by a name, and by a path only where nothing
//! better is known and nothing contradicts it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::selection::Selection;
use crate::model::{Checkpoint, NetnsIdentity, NodeIdentity, PodInfo};

/// Device and inode of a network namespace.
pub type NetnsKey = (u64, u64);

/// What is stored about one pod: a checkpoint, a file in the format of `i40e_net_fix`, or libcni's entries of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRecord {
    /// The pod that it is about.
    pub info: PodInfo,
    /// Paths that led to the pod's namespace.
    pub paths: Vec<PathBuf>,
    /// What only netfix records.
    #[serde(default)]
    pub proof: Option<Proof>,
}

/// What distinguishes a namespace from every other one, on every machine and in every boot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The machine and boot.
    pub node: NodeIdentity,
    /// The namespace.
    pub netns: NetnsIdentity,
    /// When the record was written (RFC 3339, UTC).
    pub created: String,
    /// The same in milliseconds since the machine's boot.
    #[serde(default)]
    pub created_boottime: Option<u64>,
}

/// A running pod.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodFacts {
    /// Its names, as the kernel and the runtimes report them.
    pub info: PodInfo,
    /// Its namespace.
    pub identity: NetnsIdentity,
    /// Every path known to lead to its namespace.
    pub paths: Vec<PathBuf>,
}

/// This machine as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The machine and boot.
    pub node: NodeIdentity,
    /// The running pods.
    pub pods: Vec<PodFacts>,
    /// Namespaces that exist and cannot be entered, so that no cookie is known.
    #[serde(default)]
    pub closed: Vec<NetnsIdentity>,
    /// The namespace to which each path of a record without proof leads.
    #[serde(default)]
    pub leads_to: BTreeMap<PathBuf, NetnsKey>,
}

/// Which record is used for which pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// One for each record, in their order.
    pub verdicts: Vec<Verdict>,
    /// Places of the selected pods that no record is about.
    pub unmatched: Vec<usize>,
    /// Places of the other pods that no record is about: they may have other names than those that are known.
    pub unselected: Vec<usize>,
}

/// What becomes of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is used for the pod at this place.
    Matched(usize),
    /// It is not used.
    Rejected(Rejection),
    /// The user selected other pods.
    NotSelected,
}

/// Why a record is not used. `pod` and `by` are places in the lists of pods and of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// It was written on another machine.
    OtherMachine,
    /// It was written before this machine's last boot.
    OtherBoot,
    /// Its namespace does not exist any more.
    NetnsGone,
    /// A namespace that may be its own cannot be entered.
    NetnsClosed,
    /// Another namespace is at its path.
    NetnsReplaced,
    /// Another pod has its namespace, or one with the same inode.
    PodReplaced {
        /// That pod.
        pod: usize,
    },
    /// A namespace has the same inode, and nothing proves that it is the same one: the kernel gives no cookies.
    Unproven {
        /// That pod.
        pod: usize,
    },
    /// The paths of several records lead to one namespace, and nothing shows which of them belongs to it.
    Ambiguous {
        /// The pod in that namespace.
        pod: usize,
        /// All these records, in their order.
        records: Vec<usize>,
    },
    /// Another record about the same pod is more complete.
    Superseded {
        /// That record.
        by: usize,
    },
}

impl StoredRecord {
    /// The record that a checkpoint is.
    #[must_use]
    pub fn of_checkpoint(info: &PodInfo, checkpoint: &Checkpoint) -> Self {
        let proof = checkpoint.netfix.as_ref().map(|extension| Proof {
            node: extension.node.clone(),
            netns: extension.identity.clone(),
            created: extension.created.clone(),
            created_boottime: extension.created_boottime,
        });
        Self {
            info: info.clone(),
            paths: vec![checkpoint.netns.clone().into()],
            proof,
        }
    }

    /// Whether it is about the sandbox or the namespace of the pod that it was found for, and not only about its path.
    fn is_sure(&self, pod: &PodFacts) -> bool {
        self.proof.is_some() || self.info.is_surely(&pod.info)
    }

    /// The best of several records about one pod has the highest rank: netfix's own are more complete than others, a
    /// younger one is truer, and one that has the sandbox's id has more names.
    fn rank(&self, pod: &PodFacts) -> impl Ord + use<> {
        let proof = self.proof.as_ref();
        let written = proof.map(|proof| {
            let time = (proof.created_boottime, proof.created.clone());
            (time, self.info.sandbox.is_some())
        });
        (self.is_sure(pod), written)
    }

    /// Whether the user selected the pod that it is about, which may not run any more.
    fn is_selected(&self, selection: &Selection) -> bool {
        let inode = self.proof.as_ref().map_or(0, |proof| proof.netns.inode);
        selection.wants_netns(&self.paths, inode) && selection.wants_pod(&self.info)
    }
}

/// Finds the pod of each record, and of several records about one pod the one that is used.
#[must_use]
pub fn match_records(
    records: &[StoredRecord],
    machine: &Machine,
    selection: &Selection,
) -> Matching {
    let mut of_pods: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut verdicts = Vec::with_capacity(records.len());
    for (at, record) in records.iter().enumerate() {
        verdicts.push(match machine.find(record) {
            Ok(pod) => {
                of_pods.entry(pod).or_default().push(at);
                Verdict::Matched(pod)
            }
            Err(rejection) if record.is_selected(selection) => Verdict::Rejected(rejection),
            Err(_) => Verdict::NotSelected,
        });
    }
    for (pod, about) in &of_pods {
        let facts = &machine.pods[*pod];
        let is_selected = selection.wants_pod(&facts.info)
            || about
                .iter()
                .any(|at| selection.wants_pod(&records[*at].info));
        let best = best(about, records, facts);
        for at in about {
            verdicts[*at] = match best {
                _ if !is_selected => Verdict::NotSelected,
                Some(best) if best == *at => Verdict::Matched(*pod),
                Some(by) => Verdict::Rejected(Rejection::Superseded { by }),
                None => Verdict::Rejected(Rejection::Ambiguous {
                    pod: *pod,
                    records: about.clone(),
                }),
            };
        }
    }
    let (unmatched, unselected) = (0..machine.pods.len())
        .filter(|at| !of_pods.contains_key(at))
        .partition(|at| selection.wants_pod(&machine.pods[*at].info));
    Matching {
        verdicts,
        unmatched,
        unselected,
    }
}

/// Selects one of several records for a pod; `None` if only a path leads from each record to the pod.
fn best(about: &[usize], records: &[StoredRecord], pod: &PodFacts) -> Option<usize> {
    let best = about
        .iter()
        .copied()
        .max_by_key(|at| records[*at].rank(pod))?;
    (about.len() == 1 || records[best].is_sure(pod)).then_some(best)
}

impl Machine {
    /// The place of the pod that a record is about.
    fn find(&self, record: &StoredRecord) -> Result<usize, Rejection> {
        let found = match &record.proof {
            Some(Proof { node, netns, .. }) => {
                if node.machine_id != self.node.machine_id {
                    return Err(Rejection::OtherMachine);
                }
                if !node.is_same(&self.node) {
                    return Err(Rejection::OtherBoot);
                }
                self.position(|pod| netns.may_be(&pod.identity))
            }
            None => self
                .position(|pod| record.info.is_surely(&pod.info))
                .or_else(|| self.at_path_of(record)),
        };
        let pod = found.ok_or_else(|| self.why_absent(record))?;
        let facts = &self.pods[pod];
        let is_proven = record.proof.as_ref().is_some_and(|proof| {
            proof.netns.is_same(&facts.identity) || record.info.is_surely(&facts.info)
        });
        if is_proven {
            Ok(pod)
        } else if record.info.contradicts(&facts.info) {
            Err(Rejection::PodReplaced { pod })
        } else if record.proof.is_some() {
            Err(Rejection::Unproven { pod })
        } else {
            Ok(pod)
        }
    }

    fn position(&self, is_it: impl Fn(&PodFacts) -> bool) -> Option<usize> {
        self.pods.iter().position(is_it)
    }

    /// The pod to whose namespace a path of the record leads, under whatever path it was discovered.
    fn at_path_of(&self, record: &StoredRecord) -> Option<usize> {
        record.paths.iter().find_map(|path| {
            let key = self.leads_to.get(path)?;
            self.position(|pod| (pod.identity.device, pod.identity.inode) == *key)
        })
    }

    fn why_absent(&self, record: &StoredRecord) -> Rejection {
        let mut known = self.pods.iter().flat_map(|pod| &pod.paths);
        if self.closed.iter().any(|closed| self.may_be(record, closed)) {
            Rejection::NetnsClosed
        } else if known.any(|path| record.paths.contains(path)) {
            Rejection::NetnsReplaced
        } else {
            Rejection::NetnsGone
        }
    }

    /// Whether a record may be of a namespace that cannot be entered.
    fn may_be(&self, record: &StoredRecord, closed: &NetnsIdentity) -> bool {
        if let Some(proof) = &record.proof {
            return proof.netns.may_be(closed);
        }
        let paths = record.paths.iter();
        let mut leads_to = paths.filter_map(|path| self.leads_to.get(path));
        leads_to.any(|key| *key == (closed.device, closed.inode))
    }
}
