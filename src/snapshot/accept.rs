//! What a person gives up by name. Pure.

use std::collections::BTreeSet;

use super::facts::PodObservation;
use crate::model::problem::SnapshotCause;
use crate::model::{AnswerRecord, Bytes, PodId, PodInfo, Problem};

/// The word for the host on the command line.
const HOST: &[u8] = b"host";

/// What a person gives up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Accept<'a> {
    /// The names: pods, and `host`.
    pub names: &'a [Bytes],
    /// What answered just now, which is not given up: a pod at rest has nothing in its neighbour table.
    pub answers: &'a [AnswerRecord],
}

/// What is to be given up, and what of it has lost nothing.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    /// The host, until it has been found to have lost something.
    pub host: bool,
    pods: BTreeSet<PodId>,
    /// The names of those that have not been found to have lost something.
    unused: Vec<(PodId, Bytes)>,
    /// The pods, and the host as `None`, of which the earlier answers of silent neighbours are given up.
    pub silent: Vec<Option<PodId>>,
    problems: Vec<Problem>,
}

impl Accepted {
    /// The pods that these names mean.
    pub(super) fn new(names: &[Bytes], pods: &[PodObservation]) -> Self {
        let mut accepted = Self::default();
        for name in names {
            if name.as_slice() == HOST {
                accepted.host = true;
                continue;
            }
            let cause = match named(name, pods)[..] {
                [pod] => {
                    accepted.pods.insert(pod.id.clone());
                    accepted.unused.push((pod.id.clone(), name.clone()));
                    continue;
                }
                [] => SnapshotCause::NotRunning,
                ref all => SnapshotCause::Several { pods: all.len() },
            };
            accepted.problems.push(cause.error(name.to_string()));
        }
        accepted
    }

    /// Whether what this pod has lost is given up.
    pub(super) fn takes(&mut self, pod: &PodId) -> bool {
        self.unused.retain(|(id, _)| id != pod);
        self.pods.contains(pod)
    }

    /// Whose losses are given up, whose earlier answers, and why something cannot be.
    pub(super) fn end(mut self, host_has_lost: bool) -> ([Vec<Option<PodId>>; 2], Vec<Problem>) {
        let mut problems = self.problems;
        for (_, name) in self.unused {
            problems.push(SnapshotCause::NothingLost.error(name.to_string()));
        }
        if self.host && !host_has_lost {
            problems.push(SnapshotCause::NothingLost.error("host"));
        }
        let host = host_has_lost.then_some(None);
        self.silent.extend(host.clone());
        let pods = self.pods.into_iter().map(Some);
        ([pods.chain(host).collect(), self.silent], problems)
    }
}

/// The pods with this id or name; where there is none, those whose id begins with it.
fn named<'a>(name: &Bytes, pods: &'a [PodObservation]) -> Vec<&'a PodInfo> {
    let infos = || pods.iter().map(|pod| &pod.info);
    let is_it = |info: &&PodInfo| {
        let title = info.title();
        let own = info.name.as_ref().map(Bytes::as_slice);
        let texts = [
            Some(info.id.as_str().as_bytes()),
            own,
            Some(title.as_bytes()),
        ];
        texts.contains(&Some(name.as_slice()))
    };
    let whole: Vec<_> = infos().filter(is_it).collect();
    if !whole.is_empty() {
        return whole;
    }
    let begins = |info: &&PodInfo| info.id.as_str().as_bytes().starts_with(name.as_slice());
    infos().filter(begins).collect()
}
