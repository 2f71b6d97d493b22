//! What container runtimes say of the pods that the kernel shows.

use std::path::PathBuf;

use clap::ValueEnum;

use super::cgroup;
use crate::kernel::Netns;
use crate::model::window::{Container, Lives};
use crate::model::{Code, PodInfo, Problem};

/// Which runtimes to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Every one whose socket is there.
    Auto,
    /// Those that speak CRI: containerd, CRI-O.
    Cri,
    /// Those that speak Docker's API: Docker, podman.
    Docker,
    /// Nobody: processes and mounts have to do.
    None,
}

/// Whom to ask.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which runtimes.
    pub which: Which,
    /// A socket to ask instead of the usual ones.
    pub endpoint: Option<PathBuf>,
    /// Whether their containers are asked for as well.
    pub containers: bool,
}

/// One running sandbox with a network namespace of its own, as a runtime tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The whole sandbox or container id; never empty.
    pub id: String,
    /// Kubernetes namespace.
    pub namespace: Option<String>,
    /// Pod or container name.
    pub name: Option<String>,
    /// Pod uid.
    pub uid: Option<String>,
    /// How often the sandbox was made again.
    pub attempt: Option<u32>,
    /// Path of the network namespace.
    pub netns: Option<PathBuf>,
    /// A process that lives in it.
    pub pid: Option<u32>,
    /// The kind of runtime: `cri`, `docker` or `podman`.
    pub source: &'static str,
    /// Its running containers, sorted by name, where they were asked for.
    pub containers: Vec<Container>,
}

impl Sandbox {
    /// What would not stay the same if the pod were rebuilt.
    #[must_use]
    pub fn lives(&self) -> Lives {
        Lives { sandbox: self.id.clone(), attempt: self.attempt, containers: self.containers.clone() }
    }
}

/// One runtime that was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its socket.
    pub endpoint: PathBuf,
    /// The kind of runtime: `cri`, `docker` or `podman`; `None` for one that answers and offers no CRI, so that nothing
    /// is known of its containers.
    pub kind: Option<&'static str>,
    /// Name and version, as it says them.
    pub version: Option<String>,
    /// How many sandboxes with a network namespace of their own it runs.
    pub sandboxes: usize,
}

/// What all of them said.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Who was asked.
    pub asked: Vec<Asked>,
    /// Every running sandbox with a network namespace of its own, sorted by id.
    pub sandboxes: Vec<Sandbox>,
}

/// A living namespace, for runtimes to say whose it is.
#[derive(Debug)]
pub struct Resident<'a> {
    /// The open namespace.
    pub netns: &'a Netns,
    /// What is known of who lives there.
    pub info: &'a mut PodInfo,
}

impl Answer {
    /// The residents whose being there, if they have a macvlan, contradicts what the runtimes said: one in which
    /// processes live although no runtime knows any pod, and one whose cgroup is a container's that nobody knows
    /// although one runtime did not tell of its containers. To be asked after [`Answer::introduce`].
    #[must_use]
    pub fn doubts(&self, residents: &[Resident<'_>]) -> Vec<usize> {
        let none_known = self.asked.iter().any(|asked| asked.kind.is_some()) && self.sandboxes.is_empty();
        let incomplete = self.asked.iter().any(|asked| asked.kind.is_none());
        let is_doubtful = |resident: &Resident<'_>| {
            let unclaimed_container = resident.info.source == cgroup::SOURCE;
            (none_known && resident.netns.holder.is_some()) || (incomplete && unclaimed_container)
        };
        (0..residents.len()).filter(|at| is_doubtful(&residents[*at])).collect()
    }

    /// What is to be told when such residents do have a macvlan: nothing may be concluded from the answer.
    #[must_use]
    pub fn contradicted_by(&self, namespaces: &[PathBuf]) -> Problem {
        let list = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
            names.join(", ")
        };
        let silent = |asked: &&Asked| asked.kind.is_none() || self.sandboxes.is_empty();
        let message = format!(
            "tells of no pod in {}, and yet somebody lives there who has an interface on one of the host's; so it is \
             not known which pods run here. Look at the runtime and run this again, or if these are no pods of a \
             runtime, go on without asking: --runtime none",
            list(&mut namespaces.iter()),
        );
        let object = list(&mut self.asked.iter().filter(silent).map(|asked| &asked.endpoint));
        Problem::error(Code::RuntimeUnreachable, object, message)
    }
}
