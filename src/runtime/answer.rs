//! The pods of the container runtimes, assigned to the namespaces that the kernel lists.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Deserialize;

use crate::model::fate::{Container, PodFingerprint};
use crate::model::{PodId, PodInfo};

/// Which runtimes to query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Every runtime whose socket exists
    Auto,
    /// Runtimes with CRI: containerd, CRI-O
    Cri,
    /// Runtimes with the Docker API: Docker, podman
    Docker,
    /// No runtime: names come from cgroups and mounts
    None,
}

/// Which runtimes to query, and for what.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    pub which: Which,
    /// A socket instead of the usual ones.
    pub endpoint: Option<PathBuf>,
    /// Whether to list containers too, and of which of those that ended to query how.
    pub containers: Option<BTreeSet<String>>,
}

impl RuntimeConfig {
    /// With the containers, and how those of `ran` ended.
    pub(crate) fn with_containers(&self, ran: BTreeSet<String>) -> Self {
        Self {
            containers: Some(ran),
            ..self.clone()
        }
    }

    /// Whether the usual sockets are queried, and not one that the user named.
    pub(crate) fn uses_usual_sockets(&self) -> bool {
        self.which != Which::None && self.endpoint.is_none()
    }
}

/// The socket that kubelet is configured for.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub path: PathBuf,
    /// Whether a kubelet that runs names it: then it must answer, even if there is no such file.
    pub is_certain: bool,
}

/// One running sandbox with its own network namespace, as its runtime reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sandbox {
    /// The full sandbox or container id; never empty.
    #[serde(rename = "sandbox")]
    pub id: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    /// How often the sandbox was recreated.
    pub attempt: Option<u32>,
    pub netns: Option<PathBuf>,
    /// A process in it.
    pub pid: Option<u32>,
    /// False for a container on Docker's network `none`, whose namespace never has an interface.
    #[serde(skip, default = "yes")]
    pub has_network: bool,
    /// The kind of runtime: `cri`, `docker` or `podman`.
    #[serde(skip)]
    pub source: &'static str,
    /// Its containers, running or not, where the query included them. kubelet keeps the one before a restart.
    pub containers: Vec<Container>,
}

fn yes() -> bool {
    true
}

impl Sandbox {
    /// What changes when the pod is rebuilt or one of its containers restarted.
    pub fn fingerprint(&self) -> PodFingerprint {
        let mut containers = self.containers.clone();
        let rank = |one: &Container| (Reverse(one.restarts), one.ended);
        containers.sort_by(|a, b| (&a.name, rank(a)).cmp(&(&b.name, rank(b))));
        containers.dedup_by(|later, first| later.name == first.name);
        PodFingerprint {
            sandbox: self.id.clone(),
            attempt: self.attempt,
            containers,
        }
    }

    /// The same as of a moment, in milliseconds since 1970: of a container that was made anew since then, the one before it.
    pub(crate) fn fingerprint_of(&self, moment: i64) -> PodFingerprint {
        let is_newer = |one: &Container| {
            one.created.is_some_and(|at| at >= moment)
                && one.restarts.is_some_and(|count| count > 0)
        };
        let containers = self.containers.iter().cloned();
        let (mut newer, mut containers): (Vec<_>, Vec<_>) = containers.partition(is_newer);
        newer.sort_by_key(|one| one.restarts);
        for one in newer {
            let older = containers.iter_mut().filter(|old| old.name == one.name);
            match older.max_by_key(|old| old.restarts) {
                // Its end made room for the next one.
                Some(old) => old.ended = false,
                // kubelet has removed it.
                None => containers.push(Container {
                    restarts: one.restarts.map(|count| count - 1),
                    ended: false,
                    ..one
                }),
            }
        }
        let containers = Self {
            containers,
            ..self.clone()
        };
        containers.fingerprint()
    }

    /// The last container of a name.
    pub(crate) fn last_container(&self, name: &str) -> Option<&Container> {
        let own = self.containers.iter().filter(|one| one.name == name);
        own.max_by_key(|one| (one.restarts, !one.ended))
    }
}

/// One runtime that answered.
#[derive(Debug, Clone)]
pub struct Queried {
    pub endpoint: PathBuf,
    /// The kind of runtime: `cri`, `docker` or `podman`; `None` for one that answers but offers no CRI, so that its
    /// containers are unknown.
    pub kind: Option<&'static str>,
    pub version: Option<String>,
    /// How many sandboxes with their own network namespace it runs.
    pub sandboxes: usize,
}

impl RuntimeAnswer {
    /// A socket of a runtime that listed its pods.
    pub(crate) fn answering(&self) -> Option<&Path> {
        let mut queried = self.queried.iter();
        let known = queried.find(|one| one.kind.is_some())?;
        Some(&known.endpoint)
    }

    /// Whether the runtime that reported a pod's sandbox has answered.
    pub(crate) fn knows(&self, info: &PodInfo) -> bool {
        let mut queried = self.queried.iter();
        info.sandbox.is_some() && queried.any(|one| one.kind == Some(info.source.as_str()))
    }

    /// The sandbox of a pod.
    pub(crate) fn sandbox(&self, info: &PodInfo) -> Option<&Sandbox> {
        let mut sandboxes = self.sandboxes.iter();
        sandboxes.find(|one| Some(&one.id) == info.sandbox.as_ref())
    }

    /// Those of these pods whose sandbox is not ready any more, or has no container left that runs: some runtimes end the containers
    /// first, then take the network away, and end the sandbox last. None of a runtime that has not answered. Needs the containers.
    pub(crate) fn torn_down<'a>(
        &self,
        pods: impl IntoIterator<Item = &'a PodInfo>,
    ) -> BTreeSet<PodId> {
        let is_ended = |sandbox: &Sandbox| {
            let containers = &sandbox.containers;
            !containers.is_empty() && containers.iter().all(|one| one.ended)
        };
        let known = pods.into_iter().filter(|info| self.knows(info));
        let torn = known.filter(|info| self.sandbox(info).is_none_or(is_ended));
        torn.map(|info| info.id.clone()).collect()
    }
}

/// The answers of all runtimes.
#[derive(Debug, Clone, Default)]
pub struct RuntimeAnswer {
    pub queried: Vec<Queried>,
    /// Sockets on which no process listens, each with the error. Another runtime answered, and kubelet is not configured
    /// for these.
    pub(crate) refused: Vec<(PathBuf, String)>,
    /// Every running sandbox with its own network namespace, sorted by id.
    pub sandboxes: Vec<Sandbox>,
}
