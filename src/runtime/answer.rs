//! What container runtimes say of the pods that the kernel shows.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::kernel::Netns;
use crate::model::{PodInfo, Problem};

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
}

/// One running sandbox with a network namespace of its own, as a runtime tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The whole sandbox or container id.
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
}

/// One runtime that was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its socket.
    pub endpoint: PathBuf,
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
    /// Every running sandbox with a network namespace of its own.
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

/// Asks every runtime that is there.
///
/// # Errors
/// Every one that is there and could not be asked (`runtime-unreachable`).
pub fn ask(_config: &Config) -> Result<Answer, Vec<Problem>> {
    Ok(Answer::default())
}

impl Answer {
    /// Writes into each resident what the runtimes know of it. Returns the sandboxes that are said to run and whose
    /// namespace is not among the residents nor the host's own; `everything` says that the residents are all there are.
    pub fn introduce(&self, _residents: &mut [Resident<'_>], _everything: bool) -> Vec<Problem> {
        Vec::new()
    }

    /// The residents whose being there, if they have a macvlan, contradicts what the runtimes said.
    #[must_use]
    pub fn doubts(&self, _residents: &[Resident<'_>]) -> Vec<usize> {
        Vec::new()
    }
}
