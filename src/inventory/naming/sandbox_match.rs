//! From the sandboxes that runtimes report to their namespaces.
//!
//! A path may be a dead file and a pid another process's by now, so neither is taken for a namespace: what they lead to
//! is opened and compared with the open namespaces by device and inode. Two that lead to different ones cancel each
//! other, unless the process is the host's and so cannot be the sandbox's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::inventory::cgroup::{self, Membership, membership};
use crate::inventory::naming::pod_ids::Ids;
use crate::inventory::observe::Pod;
use crate::inventory::procfs;
use crate::kernel::{self, Netns};
use crate::matching::NetnsKey;
use crate::model::problem::{InventoryCause, NoNetns};
use crate::model::{Bytes, PodId, PodInfo, Problem};
use crate::runtime::names::plain;
use crate::runtime::{RuntimeAnswer, Sandbox};

/// The result of naming pods after sandboxes.
#[derive(Debug, Default)]
pub struct Introduction {
    /// Reported sandboxes whose namespace is not among the pods'.
    pub unfound: Vec<Unfound>,
    /// Namespaces in which several sandboxes are reported (notes).
    pub problems: Vec<Problem>,
}

/// A reported sandbox whose namespace is not among the pods'.
#[derive(Debug)]
pub struct Unfound {
    pub info: PodInfo,
    pub paths: Vec<PathBuf>,
    /// Inode of the namespace, where it can be opened.
    pub inode: Option<u64>,
    reason: NoNetns,
}

impl Unfound {
    /// Whether both are the same sandbox.
    pub(in crate::inventory) fn is_same(&self, other: &Self) -> bool {
        self.info.sandbox == other.info.sandbox
    }

    /// The problem that it is, if it persists.
    pub fn problem(&self) -> Problem {
        let object = self.paths.first().map(|path| shown(path));
        let cause = InventoryCause::SandboxNotFound {
            pod: self.info.clone(),
            reason: self.reason.clone(),
        };
        cause.error(object.unwrap_or_default()).of(&self.info.id)
    }
}

fn shown(path: &Path) -> String {
    plain(&Bytes::from(path).to_string())
}

/// The namespace of a sandbox.
#[derive(Debug)]
enum Home {
    /// In this namespace; not certain if only the number of a process shows it.
    In { key: NetnsKey, sure: bool },
    /// In the host's, so it is not a pod.
    Host,
    /// Not known, and why.
    Unknown(NoNetns),
}

/// The machine itself.
#[derive(Debug)]
struct Here {
    /// Its network namespaces.
    inodes: Vec<u64>,
    /// The containers that it is in, where it is one itself.
    containers: BTreeSet<String>,
}

impl Here {
    fn read() -> Self {
        let inodes = [procfs::netns_inode("self"), procfs::machine_inode()]
            .into_iter()
            .flatten()
            .collect();
        Self {
            inodes,
            containers: cgroup::own_ids(),
        }
    }
}

/// A sandbox that is reported in a namespace.
#[derive(Debug)]
struct SandboxClaim<'a> {
    id: PodId,
    sandbox: &'a Sandbox,
    /// False if only the number of a process shows it.
    sure: bool,
}

impl SandboxClaim<'_> {
    fn unfound(self, inode: Option<u64>, reason: NoNetns) -> Unfound {
        self.sandbox.unfound(self.id, inode, reason)
    }
}

impl RuntimeAnswer {
    /// Writes the names that the runtimes report into each pod.
    pub fn introduce<'a>(&self, pods: impl IntoIterator<Item = &'a mut Pod>) -> Introduction {
        let mut pods: Vec<&mut Pod> = pods.into_iter().collect();
        let mut ids = Ids::default();
        let mut introduction = Introduction::default();
        let mut claims = self.claims(&pods, &mut ids, &mut introduction);
        let mut unclaimed = Vec::new();
        for (at, pod) in pods.iter_mut().enumerate() {
            let (weak, mut strong) = sort(claims.remove(&pod.netns.key()).unwrap_or_default());
            for claim in weak {
                introduction
                    .unfound
                    .push(claim.unfound(None, NoNetns::InOtherPod));
            }
            match (strong.pop(), strong.is_empty()) {
                (Some(SandboxClaim { id, sandbox, .. }), true) => pod.info = sandbox.info(id),
                (Some(claim), false) => {
                    strong.push(claim);
                    introduction.problems.push(shared(pod, &strong));
                    unclaimed.push(at);
                }
                (None, _) => unclaimed.push(at),
            }
        }
        for at in unclaimed {
            let pod = &mut *pods[at];
            pod.info.id = ids.keep(&pod.info.id, pod.netns.key().1);
        }
        for ((_, inode), claims) in claims {
            for claim in claims {
                introduction
                    .unfound
                    .push(claim.unfound(Some(inode), NoNetns::NotDiscovered));
            }
        }
        introduction
    }

    fn claims(
        &self,
        pods: &[&mut Pod],
        ids: &mut Ids,
        introduction: &mut Introduction,
    ) -> BTreeMap<NetnsKey, Vec<SandboxClaim<'_>>> {
        let here = Here::read();
        let mut claims: BTreeMap<NetnsKey, Vec<SandboxClaim<'_>>> = BTreeMap::new();
        for sandbox in &self.sandboxes {
            let id = ids.of_sandbox(&sandbox.id);
            match sandbox.home(pods, &here) {
                Home::In { key, sure } => {
                    claims
                        .entry(key)
                        .or_default()
                        .push(SandboxClaim { id, sandbox, sure });
                }
                Home::Host => {}
                Home::Unknown(reason) => {
                    introduction.unfound.push(sandbox.unfound(id, None, reason));
                }
            }
        }
        claims
    }
}

/// The claims by a pid alone where others are better, and the others; of these a Kubernetes pod comes before containers
/// that were put into its namespace.
fn sort(claims: Vec<SandboxClaim<'_>>) -> (Vec<SandboxClaim<'_>>, Vec<SandboxClaim<'_>>) {
    let any_sure = claims.iter().any(|claim| claim.sure);
    let (weak, mut strong): (Vec<_>, Vec<_>) = claims
        .into_iter()
        .partition(|claim| any_sure && !claim.sure);
    let is_pod = |claim: &SandboxClaim<'_>| claim.sandbox.uid.is_some();
    if strong.iter().filter(|claim| is_pod(claim)).count() == 1 {
        strong.retain(is_pod);
    }
    (weak, strong)
}

fn shared(pod: &Pod, claims: &[SandboxClaim<'_>]) -> Problem {
    let ids = claims.iter().map(|claim| claim.sandbox.id.clone());
    let sandboxes = ids.collect();
    InventoryCause::SharedNetns { sandboxes }.info(pod.netns.shown())
}

impl Sandbox {
    /// The pod, under this id.
    pub(crate) fn info(&self, id: PodId) -> PodInfo {
        PodInfo {
            id,
            namespace: self.namespace.clone(),
            name: self.name.as_deref().map(Bytes::from),
            uid: self.uid.clone(),
            sandbox: Some(self.id.clone()),
            attempt: self.attempt,
            source: self.source.to_owned(),
        }
    }

    fn unfound(&self, id: PodId, inode: Option<u64>, reason: NoNetns) -> Unfound {
        let paths = self
            .netns
            .iter()
            .cloned()
            .chain(self.pid.map(procfs::netns_path))
            .collect();
        Unfound {
            info: self.info(id),
            paths,
            inode,
            reason,
        }
    }

    fn home(&self, pods: &[&mut Pod], here: &Here) -> Home {
        let is_host = |key: NetnsKey| here.inodes.contains(&key.1);
        // A path through a process proves no more than the process.
        let through = self.netns.as_deref().and_then(procfs::pid_in);
        let path = self.netns.as_deref().filter(|_| through.is_none());
        let by_path = path.map(|path| (path.to_owned(), key_of(path)));
        let by_pid = self
            .pid
            .or(through)
            .map(|pid| (procfs::netns_path(pid), self.key_of_process(pid, here)));
        match (&by_path, &by_pid) {
            (Some((path, Ok(a))), Some((process, Ok((b, _))))) if a != b && !is_host(*b) => {
                Home::Unknown(NoNetns::TwoNamespaces {
                    path: shown(path),
                    of_path: a.1,
                    process: shown(process),
                    of_process: b.1,
                })
            }
            (Some((_, Ok(key))), _) if is_host(*key) => Home::Host,
            (Some((_, Ok(key))), _) => Home::In {
                key: *key,
                sure: true,
            },
            (_, Some((_, Ok((key, _))))) if is_host(*key) => Home::Host,
            (_, Some((_, Ok((key, sure))))) => Home::In {
                key: *key,
                sure: *sure,
            },
            _ => self.by_cgroup(pods).unwrap_or_else(|| {
                let path_error = by_path
                    .iter()
                    .filter_map(|(path, key)| Some((path, key.as_ref().err()?)));
                let pid_error = by_pid
                    .iter()
                    .filter_map(|(path, key)| Some((path, key.as_ref().err()?)));
                nowhere(path_error.chain(pid_error))
            }),
        }
    }

    /// The namespace of the process that the runtime reports, and whether its cgroup confirms it.
    fn key_of_process(&self, pid: u32, here: &Here) -> io::Result<(NetnsKey, bool)> {
        let key = key_of(&procfs::netns_path(pid))?;
        match membership(pid, &self.id, &here.containers) {
            Membership::Named => Ok((key, true)),
            Membership::OfAnother => Err(io::Error::other("is a process of another container")),
            Membership::Unknown if here.inodes.contains(&key.1) => {
                Err(io::Error::other("is a process of the host"))
            }
            Membership::Unknown => Ok((key, false)),
        }
    }

    /// The pod whose oldest process is in a cgroup that has the name of this sandbox.
    fn by_cgroup(&self, pods: &[&mut Pod]) -> Option<Home> {
        let pod = pods
            .iter()
            .find(|pod| pod.info.sandbox.as_deref() == Some(&self.id))?;
        Some(Home::In {
            key: pod.netns.key(),
            sure: true,
        })
    }
}

fn nowhere<'a>(tried: impl Iterator<Item = (&'a PathBuf, &'a io::Error)>) -> Home {
    let reasons: Vec<String> = tried
        .map(|(path, error)| format!("{}: {}", shown(path), words(error)))
        .collect();
    Home::Unknown(if reasons.is_empty() {
        NoNetns::NothingReported
    } else {
        NoNetns::Unreachable(reasons)
    })
}

fn key_of(path: &Path) -> io::Result<NetnsKey> {
    // Opening anything else, such as a named pipe, may take for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(Errno::EINVAL.into());
    }
    Netns::open(path).map(|netns| netns.key())
}

fn words(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EINVAL) => "EINVAL: is no network namespace".to_owned(),
        _ => kernel::words(error),
    }
}
