//! Who lives in which network namespace.
//!
//! Namespaces are found from the kernel: every one that a process lives in, and every one that is mounted. Container
//! runtimes are asked only whose they are; where none is asked, the names of cgroups have to do.

mod answer;
mod ask;
mod call;
mod cgroup;
mod claims;
mod cri;
mod docker;
mod endpoints;
mod ids;
mod names;
mod ping;
mod procfs;

pub use answer::{Answer, Asked, Config, Resident, Sandbox, Which};
pub use ask::{LIMIT, ask, ask_until};
pub use claims::{Introduction, Unfound};

use cgroup::Occupant;
use ids::Ids;
use procfs::LivedIn;
pub use procfs::{is_alive, own, process};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::kernel::Netns;
use crate::model::identity::Holder;
use crate::model::{Code, PodId, PodInfo, Problem};

/// A namespace that is neither the host's nor PID 1's, with whoever lives there.
#[derive(Debug)]
pub struct Found {
    /// The open namespace.
    pub netns: Netns,
    /// Who lives there.
    pub info: PodInfo,
    /// Every path known to lead to it.
    pub paths: Vec<PathBuf>,
}

/// Which namespaces a command was told to look at.
pub trait Select {
    /// Whether a namespace with these paths and this device and inode number is wanted.
    fn wants(&self, paths: &[PathBuf], inode: u64) -> bool;

    /// Whether every namespace is wanted, known or not.
    fn wants_all(&self) -> bool;
}

/// Every namespace that `select` wants, each once, and those that could not be opened.
///
/// # Errors
/// When `/proc` or the mount table cannot be read: then it is not known who lives here.
pub fn discover(select: &dyn Select) -> io::Result<(Vec<Found>, Vec<Problem>)> {
    let excluded = [procfs::netns_inode("self")?, procfs::machine_inode()?];
    let (mut candidates, denied) = candidates()?;
    candidates.retain(|inode, _| !excluded.contains(inode));
    let mut found = Vec::new();
    let unknown = |pid: &u32| {
        let message = "the namespace of this process may not be asked for, so a pod may be missing here";
        Problem::error(Code::Unreadable, format!("pid {pid}"), message)
    };
    let mut problems: Vec<Problem> = denied.iter().filter(|_| select.wants_all()).map(unknown).collect();
    for (inode, (candidate, info)) in identify(candidates) {
        let paths = candidate.paths();
        if !select.wants(&paths, inode) {
            continue;
        }
        match candidate.open(inode) {
            Ok(Some(netns)) => found.push(Found { netns, info, paths }),
            // It went away between the look and the opening, as pods do.
            Ok(None) => {}
            Err(error) => problems.push(Problem::error(
                Code::Unreadable,
                paths.first().map(|path| path.display().to_string()).unwrap_or_default(),
                format!("the namespace cannot be opened: {error}"),
            )),
        }
    }
    Ok((found, problems))
}

/// What `/proc` and the mount table say of one namespace.
#[derive(Debug, Default)]
struct Candidate {
    mounts: Vec<PathBuf>,
    holder: Option<Holder>,
}

fn candidates() -> io::Result<(BTreeMap<u64, Candidate>, Vec<u32>)> {
    let mut candidates: BTreeMap<u64, Candidate> = BTreeMap::new();
    for (inode, path) in procfs::mounted()? {
        candidates.entry(inode).or_default().mounts.push(path);
    }
    let LivedIn { holders, denied } = procfs::lived_in()?;
    for (inode, holder) in holders {
        let oldest = &mut candidates.entry(inode).or_default().holder;
        if oldest.is_none_or(|known| holder.start_time < known.start_time) {
            *oldest = Some(holder);
        }
    }
    Ok((candidates, denied))
}

/// Says of every namespace, chosen or not, who lives there as far as the kernel knows: an id must not depend on what
/// else was chosen. Those of sandboxes come first, for a mount may have any name.
fn identify(candidates: BTreeMap<u64, Candidate>) -> BTreeMap<u64, (Candidate, PodInfo)> {
    let holders = candidates.iter().filter_map(|(inode, candidate)| Some((*inode, candidate.holder?)));
    let mut occupants = cgroup::occupants(&holders.collect());
    let mut ids = Ids::default();
    let has_sandbox = |inode: &u64, occupants: &BTreeMap<u64, Occupant>| {
        occupants.get(inode).is_some_and(|occupant| occupant.sandbox.is_some())
    };
    let (first, last): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|(inode, _)| has_sandbox(inode, &occupants));
    let identified = first.into_iter().chain(last).map(|(inode, candidate)| {
        let occupant = occupants.remove(&inode);
        let id = match occupant.as_ref().and_then(|occupant| occupant.sandbox.as_deref()) {
            Some(sandbox) => ids.of_sandbox(sandbox),
            None => ids.of_namespace(candidate.mount_name().as_deref(), inode),
        };
        let info = candidate.info(occupant, id);
        (inode, (candidate, info))
    });
    identified.collect()
}

impl Candidate {
    fn paths(&self) -> Vec<PathBuf> {
        let process = self.holder.map(|holder| procfs::netns_path(holder.pid));
        self.mounts.iter().cloned().chain(process).collect()
    }

    /// Opens the namespace; `None` when it is gone.
    fn open(&self, inode: u64) -> io::Result<Option<Netns>> {
        if let Some(netns) = self.reach(inode)? {
            return Ok(Some(netns));
        }
        for path in &self.mounts {
            // Mounted and not reached: it was mounted only now, or it lies under another mount.
            if procfs::is_mounted(inode, path)? {
                return self.reach(inode)?.map(Some).ok_or_else(|| {
                    io::Error::other("it is mounted there, and something else is mounted over it")
                });
            }
        }
        Ok(None)
    }

    /// Opens the namespace by whichever path still leads to it.
    fn reach(&self, inode: u64) -> io::Result<Option<Netns>> {
        let mut failure = None;
        for path in self.paths() {
            match Netns::open(&path) {
                Ok(mut netns) if netns.key().1 == inode => {
                    netns.is_mount = self.mounts.contains(&path);
                    // Now that the namespace is open nobody else gets its inode: a process that has it lives there.
                    netns.holder = self.holder.filter(|holder| procfs::lives_in(*holder, inode));
                    return Ok(Some(netns));
                }
                // Something else is there by now: another mount, another process of that pid.
                Ok(_) => {}
                Err(error) if procfs::is_gone(&error) => {}
                // A plain file, which a mount leaves behind until it is removed too, is no namespace.
                Err(_) if self.mounts.contains(&path) && !procfs::is_mounted(inode, &path)? => {}
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    fn mount_name(&self) -> Option<String> {
        self.mounts.first()?.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    fn info(&self, occupant: Option<Occupant>, id: PodId) -> PodInfo {
        let mount = self.mount_name();
        let source = match (&occupant, &mount) {
            (Some(_), _) => cgroup::SOURCE,
            (None, Some(_)) => "mount",
            (None, None) => "proc",
        };
        let Occupant { sandbox, uid, namespace, name, attempt } = occupant.unwrap_or_default();
        // Runtimes give the mounts of their sandboxes names that mean nothing to anybody.
        let name = name.or(mount.filter(|_| sandbox.is_none()));
        PodInfo { id, namespace, name, uid, sandbox, attempt, source: source.to_owned() }
    }
}
