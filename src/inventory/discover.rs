//! The network namespaces of this machine, found from the kernel: every one that a process is in, and every one that
//! is mounted. Container runtimes only add names; without them the names of cgroups are used.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::inventory::cgroup::{self, CgroupOwner, Occupant};
use crate::inventory::naming::pod_ids::Ids;
use crate::inventory::procfs;
use crate::inventory::procfs::mounts::{MountedElsewhere, mounted_elsewhere};
use crate::inventory::visit::can_stay_open;
use crate::kernel::Netns;
use crate::matching::Selection;
use crate::model::pod::identity::Holder;
use crate::model::problem::InventoryCause;
use crate::model::{Bytes, PodId, PodInfo, Problem};
use crate::runtime::names;

/// A namespace that is neither the host's nor PID 1's.
#[derive(Debug)]
pub struct FoundNetns {
    pub netns: Netns,
    pub info: PodInfo,
    /// Every path known to lead to it.
    pub paths: Vec<PathBuf>,
    /// Whose cgroup its oldest process is in.
    pub(crate) owner: CgroupOwner,
}

/// Every selected namespace, each once, and the problems of those that cannot be opened. Fails when `/proc` or the
/// mount table cannot be read: then the running pods are unknown.
pub fn discover(selection: &Selection) -> io::Result<(Vec<FoundNetns>, Vec<Problem>)> {
    let excluded = [procfs::netns_inode("self")?, procfs::machine_inode()?];
    let (mut candidates, denied, unread) = candidates()?;
    candidates.retain(|inode, _| !excluded.contains(inode));
    let mut found = Vec::new();
    let mut problems: Vec<Problem> = denied
        .iter()
        .filter(|_| selection.wants_every_netns())
        .map(|pid| InventoryCause::NetnsHidden.error(format!("pid {pid}")))
        .collect();
    problems.extend(unread_mounts(&unread).filter(|_| selection.wants_every_netns()));
    let own = cgroup::own_ids();
    let host = Netns::host()?.owner();
    let is_transient = !can_stay_open(candidates.len());
    for (inode, (candidate, info)) in identify(candidates)? {
        let paths = candidate.paths();
        if !selection.wants_netns(&paths, inode) {
            continue;
        }
        match candidate.open(inode) {
            Ok(Some(mut netns)) => {
                // Only root can have mounted it.
                netns.is_foreign = candidate.mounts.is_empty()
                    && netns.owner().is_some_and(|owner| Some(owner) != host);
                netns.is_transient = is_transient;
                if is_transient {
                    netns.close();
                }
                let owner = netns
                    .holder
                    .map(|holder| CgroupOwner::of(holder.pid, &own))
                    .unwrap_or_default();
                found.push(FoundNetns {
                    netns,
                    info,
                    paths,
                    owner,
                });
            }
            // It was deleted meanwhile.
            Ok(None) => {}
            Err(error) => {
                let path = paths
                    .first()
                    .map(|path| Bytes::from(path.as_path()).to_string());
                let error = error.to_string();
                let cause = InventoryCause::CannotOpenNetns { error };
                let object = path.unwrap_or_default();
                // A pod decides what is at a path inside it.
                problems.push(match &candidate.inner {
                    Some(_) => cause.warning(object),
                    None => cause.error(object),
                });
            }
        }
    }
    Ok((found, problems))
}

fn unread_mounts(processes: &[u32]) -> Option<Problem> {
    let (first, more) = processes.split_first()?;
    let cause = InventoryCause::MountsUnread { more: more.len() };
    Some(cause.warning(format!("pid {first}")))
}

/// One namespace in `/proc` and the mount table.
#[derive(Debug, Default)]
struct Candidate {
    mounts: Vec<PathBuf>,
    holder: Option<Holder>,
    /// Where only another mount namespace has it, through a process there.
    inner: Option<PathBuf>,
}

/// Candidates by inode.
type Candidates = BTreeMap<u64, Candidate>;

/// The candidates, the processes whose namespace the kernel does not reveal, and those whose mounts were not all read.
fn candidates() -> io::Result<(Candidates, Vec<u32>, Vec<u32>)> {
    let mut candidates: BTreeMap<u64, Candidate> = BTreeMap::new();
    for (inode, path) in procfs::mounted()? {
        candidates.entry(inode).or_default().mounts.push(path);
    }
    let (holders, denied) = procfs::of_processes()?;
    for (inode, holder) in holders {
        let oldest = &mut candidates.entry(inode).or_default().holder;
        if oldest.is_none_or(|known| holder.start_time < known.start_time) {
            *oldest = Some(holder);
        }
    }
    let MountedElsewhere { found, unread } = mounted_elsewhere()?;
    for (inode, path) in found {
        let candidate = candidates.entry(inode).or_default();
        if candidate.paths().is_empty() {
            candidate.inner = Some(path);
        }
    }
    Ok((candidates, denied, unread))
}

/// Names the pod of every namespace, selected or not, as far as the kernel knows it: an id must not depend on the
/// selection. Sandboxes come first, for a mount may have any name.
fn identify(
    candidates: BTreeMap<u64, Candidate>,
) -> io::Result<BTreeMap<u64, (Candidate, PodInfo)>> {
    let holders = candidates
        .iter()
        .filter_map(|(inode, candidate)| Some((*inode, candidate.holder?)));
    let mut occupants = cgroup::occupants(&holders.collect())?;
    let mut ids = Ids::default();
    let sandbox_of = |occupant: Option<&Occupant>| occupant?.sandbox.clone();
    let (with_sandbox, without): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|(inode, _)| sandbox_of(occupants.get(inode)).is_some());
    let mut identified = BTreeMap::new();
    for (inode, candidate) in with_sandbox.into_iter().chain(without) {
        let occupant = occupants.remove(&inode);
        let id = match sandbox_of(occupant.as_ref()) {
            Some(sandbox) => ids.of_sandbox(&sandbox),
            None => ids.of_namespace(candidate.mount_name().as_ref(), inode),
        };
        let info = candidate.info(occupant, id);
        identified.insert(inode, (candidate, info));
    }
    Ok(identified)
}

impl Candidate {
    fn paths(&self) -> Vec<PathBuf> {
        let process = self.holder.map(|holder| procfs::netns_path(holder.pid));
        let mounts = self.mounts.iter().cloned().chain(process);
        mounts.chain(self.inner.clone()).collect()
    }

    /// Opens the namespace; `None` when it is gone.
    fn open(&self, inode: u64) -> io::Result<Option<Netns>> {
        if let Some(netns) = self.reach(inode)? {
            return Ok(Some(netns));
        }
        for path in &self.mounts {
            // Mounted and not reached: it was mounted only now, or it is under another mount.
            if procfs::is_mounted(inode, path)? {
                return self.reach(inode)?.map(Some).ok_or_else(|| {
                    io::Error::other("it is mounted there, and something else is mounted over it")
                });
            }
        }
        Ok(None)
    }

    /// Opens the namespace by the first path that still leads to it.
    fn reach(&self, inode: u64) -> io::Result<Option<Netns>> {
        let mut failure = None;
        for path in self.paths() {
            match Netns::open(&path) {
                Ok(mut netns) if netns.key().1 == inode => {
                    netns.is_mount = self.mounts.contains(&path) || self.inner.is_some();
                    // No other namespace gets its inode while it is open: a process with that inode is in it.
                    netns.holder = self.holder.filter(|holder| procfs::is_in(*holder, inode));
                    return Ok(Some(netns));
                }
                // Another mount or another process of that pid is there now.
                Ok(_) => {}
                Err(error) if procfs::is_gone(&error) => {}
                // A plain file, which a mount leaves behind until it is removed too, is no namespace.
                Err(_) if self.mounts.contains(&path) && !procfs::is_mounted(inode, &path)? => {}
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    fn mount_name(&self) -> Option<Bytes> {
        self.mounts.first()?.file_name().map(Bytes::from)
    }

    fn info(&self, occupant: Option<Occupant>, id: PodId) -> PodInfo {
        let mount = self.mount_name();
        let source = match (&occupant, &mount) {
            (Some(_), _) => names::SOURCE_CGROUP,
            (None, Some(_)) => "mount",
            (None, None) => "proc",
        };
        let Occupant {
            sandbox,
            uid,
            namespace,
            name,
            attempt,
        } = occupant.unwrap_or_default();
        // Runtimes give the mounts of their sandboxes random names.
        let mount = mount.filter(|_| sandbox.is_none());
        PodInfo {
            id,
            namespace,
            name: name.map(Bytes::from).or(mount),
            uid,
            sandbox,
            attempt,
            source: source.to_owned(),
        }
    }
}
