//! The pods of the container runtimes, assigned to the namespaces that the kernel lists.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;

use crate::model::window::{Container, PodFingerprint};

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
pub struct Config {
    pub which: Which,
    /// A socket instead of the usual ones.
    pub endpoint: Option<PathBuf>,
    /// Whether to list containers too.
    pub containers: bool,
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
    /// Its running containers, sorted by name, where the query included them.
    pub containers: Vec<Container>,
}

fn yes() -> bool {
    true
}

impl Sandbox {
    /// What changes when the pod is rebuilt.
    pub fn fingerprint(&self) -> PodFingerprint {
        PodFingerprint {
            sandbox: self.id.clone(),
            attempt: self.attempt,
            containers: self.containers.clone(),
        }
    }
}

/// One runtime that answered.
#[derive(Debug, Clone)]
pub struct Asked {
    pub endpoint: PathBuf,
    /// The kind of runtime: `cri`, `docker` or `podman`; `None` for one that answers but offers no CRI, so that its
    /// containers are unknown.
    pub kind: Option<&'static str>,
    pub version: Option<String>,
    /// How many sandboxes with their own network namespace it runs.
    pub sandboxes: usize,
}

/// The answers of all runtimes.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub asked: Vec<Asked>,
    /// Every running sandbox with its own network namespace, sorted by id.
    pub sandboxes: Vec<Sandbox>,
}
