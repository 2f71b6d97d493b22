//! The container of a process, from the name of its cgroup.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use crate::inventory::procfs;
use crate::model::pod::identity::Holder;
use crate::runtime::names::{KubeName, non_empty};

/// Container ids of every runtime are the hexadecimal digits of a SHA-256 sum or as many random ones.
const ID_LENGTH: usize = 64;
/// The shortest pod uid: a static pod's, which has no dashes.
const MIN_UID: usize = 32;

/// The container that a cgroup was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupContainer {
    /// Its whole id.
    pub id: String,
    /// The text before the id, such as `crio-`.
    prefix: String,
    /// The uid of its pod.
    pub uid: Option<String>,
    /// Whether its cgroup is in another container's, which may give it any name.
    is_nested: bool,
}

/// The pod in a namespace, as far as cgroups and the command line of conmon show it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Occupant {
    /// The sandbox, or the container that is its own sandbox.
    pub sandbox: Option<String>,
    pub uid: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub attempt: Option<u32>,
}

/// Whose cgroup a process is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CgroupOwner {
    /// A container's, of this pod where the cgroup names it; empty where only the pod is named.
    Container { id: String, uid: Option<String> },
    /// A unit's or a login session's, or the one of netfix or PID 1.
    System,
    /// Another program's, or there is no process.
    #[default]
    Unknown,
}

impl CgroupOwner {
    /// The owner of a process's cgroup.
    pub fn of(pid: u32, own: &BTreeSet<String>) -> Self {
        let read = |process: &str| procfs::text(format!("/proc/{process}/cgroup")).ok();
        let Some(text) = read(&pid.to_string()) else {
            return Self::Unknown;
        };
        let is_shared = ["self", "1"]
            .into_iter()
            .filter_map(read)
            .any(|of| of == text);
        Self::in_cgroups(&text, own, is_shared)
    }

    /// The owner by the text of `/proc/PID/cgroup`; `is_shared`: netfix or PID 1 is in the same cgroups.
    fn in_cgroups(text: &str, own: &BTreeSet<String>, is_shared: bool) -> Self {
        let paths: Vec<&str> = text.lines().filter_map(path_in).collect();
        let has =
            |is_it: fn(&str) -> bool| paths.iter().flat_map(|path| path.split('/')).any(is_it);
        if paths.iter().any(|path| is_rootless(path)) {
            return Self::System;
        }
        match container_in(text, own) {
            Some(CgroupContainer { id, uid, .. }) => Self::Container { id, uid },
            None if is_shared => Self::System,
            None if paths.iter().any(|path| is_of_pod(path, own)) => Self::Container {
                id: String::new(),
                uid: paths
                    .iter()
                    .flat_map(|path| path.rsplit('/'))
                    .find_map(pod_uid),
            },
            None if has(is_machine) => Self::Unknown,
            None if has(is_system) => Self::System,
            None => Self::Unknown,
        }
    }
}

/// Whether it is below the cgroup of all pods. A pod that is netfix's own machine has the container of `own` in its path.
fn is_of_pod(path: &str, own: &BTreeSet<String>) -> bool {
    let mut containers = path.split('/').filter_map(container_id);
    let is_own = containers.any(|(_, id)| own.contains(id));
    !is_own && path.contains("kubepods")
}

/// The cgroup of a machine container: systemd-nspawn, LXC, libvirt.
fn is_machine(component: &str) -> bool {
    component == "machine.slice" || component == "payload" || component.starts_with("lxc")
}

fn is_system(component: &str) -> bool {
    matches!(component, "system.slice" | "user.slice" | "init.scope")
        || component.ends_with(".service")
}

/// Whether it is below the service manager of a user other than root, who cannot use the host's links.
fn is_rootless(path: &str) -> bool {
    let user = |name: &str| {
        name.strip_prefix("user@")?
            .strip_suffix(".service")?
            .parse::<u32>()
            .ok()
    };
    path.split('/').filter_map(user).any(|user| user != 0)
}

/// The pods of the namespaces that these processes hold, by the namespaces' inodes.
///
/// A cgroup of netfix or of PID 1 does not count: this machine is a container itself then. Nor does one that several
/// namespaces share, or one inside a container's.
///
/// # Errors
/// A cgroup that cannot be read: the id of a pod would be another one.
pub(crate) fn occupants(holders: &BTreeMap<u64, Holder>) -> io::Result<BTreeMap<u64, Occupant>> {
    let own = own_ids();
    let mut containers: BTreeMap<u64, (CgroupContainer, Holder)> = BTreeMap::new();
    let mut times_seen: BTreeMap<String, usize> = BTreeMap::new();
    for (inode, holder) in holders {
        let text = match procfs::text(format!("/proc/{}/cgroup", holder.pid)) {
            Err(error) if procfs::is_gone(&error) => continue,
            text => text?,
        };
        // The process may have ended, and its pid be another's.
        let container = container_in(&text, &own).filter(|one| !one.is_nested);
        let Some(container) = container.filter(|_| procfs::is_alive(holder)) else {
            continue;
        };
        *times_seen.entry(container.id.clone()).or_default() += 1;
        containers.insert(*inode, (container, *holder));
    }
    Ok(containers
        .into_iter()
        .filter(|(_, (container, _))| times_seen.get(&container.id) == Some(&1))
        .map(|(inode, (container, holder))| (inode, occupant(container, holder.pid)))
        .collect())
}

/// Whether the cgroups of a process name this container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    Named,
    OfAnother,
    /// They name no container, or cannot be read.
    Unknown,
}

/// Whether a process is in this container; containers in `own` do not count.
pub(crate) fn membership(pid: u32, container: &str, own: &BTreeSet<String>) -> Membership {
    let ids = ids_of(&pid.to_string());
    if ids.contains(container) {
        Membership::Named
    } else if ids.is_subset(own) {
        Membership::Unknown
    } else {
        Membership::OfAnother
    }
}

/// The units of systemd that a process is in, such as `system.slice` and `kubelet.service`, outermost first; none without
/// systemd.
pub(crate) fn units(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    units_in(&String::from_utf8_lossy(&text))
}

fn units_in(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(path_in)
        .map(|path| -> Vec<String> {
            path.split('/')
                .filter(|name| is_unit(name))
                .map(str::to_owned)
                .collect()
        })
        // The hierarchies of cgroup v1 but systemd's have fewer of them, or none.
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

fn is_unit(name: &str) -> bool {
    let mut kinds = [".slice", ".service", ".scope"].into_iter();
    container_id(name).is_none() && kinds.any(|kind| name.ends_with(kind))
}

/// The containers that netfix or PID 1 is in.
pub(crate) fn own_ids() -> BTreeSet<String> {
    ["self", "1"].into_iter().flat_map(ids_of).collect()
}

fn occupant(container: CgroupContainer, pid: u32) -> Occupant {
    let CgroupContainer {
        id, prefix, uid, ..
    } = container;
    // The parent of the container's first process. One that is inside too may have any name.
    let monitor = procfs::parent(pid).filter(|parent| !ids_of(&parent.to_string()).contains(&id));
    let called = monitor.and_then(|monitor| procfs::conmon_name(monitor, &id));
    let kube = called.as_deref().and_then(KubeName::parse);
    // CRI-O may run no process for a sandbox: the oldest one is an application's then.
    let is_sandbox = !prefix.starts_with("crio")
        || procfs::is_pause(pid)
        || kube.as_ref().is_some_and(|kube| kube.is_sandbox);
    let sandbox = Some(id).filter(|_| is_sandbox);
    match kube {
        Some(KubeName {
            name,
            namespace,
            uid,
            attempt,
            ..
        }) => Occupant {
            attempt: Some(attempt).filter(|_| is_sandbox),
            sandbox,
            uid: non_empty(&uid),
            namespace: non_empty(&namespace),
            name: non_empty(&name),
        },
        None => Occupant {
            sandbox,
            uid,
            name: called.as_deref().and_then(non_empty),
            ..Occupant::default()
        },
    }
}

/// Every container id in the cgroups of a process; `process` is a pid or `self`.
fn ids_of(process: &str) -> BTreeSet<String> {
    let text = procfs::text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let components = text
        .lines()
        .filter_map(path_in)
        .flat_map(|path| path.split('/'));
    components
        .filter_map(container_id)
        .map(|(_, id)| id.to_owned())
        .collect()
}

/// The innermost container in `/proc/PID/cgroup` (cgroups(7)) that is not in `own`.
fn container_in(text: &str, own: &BTreeSet<String>) -> Option<CgroupContainer> {
    text.lines().filter_map(path_in).find_map(|path| {
        let ids: Vec<_> = path
            .split('/')
            .filter_map(container_id)
            .filter(|(_, id)| !own.contains(*id))
            .collect();
        let (prefix, id) = *ids.last()?;
        let uid = path.rsplit('/').find_map(pod_uid);
        Some(CgroupContainer {
            id: id.to_owned(),
            prefix: prefix.to_owned(),
            uid,
            is_nested: ids.iter().any(|(_, other)| *other != id),
        })
    })
}

/// The path in a line such as `4:memory:/docker/0123`.
fn path_in(line: &str) -> Option<&str> {
    line.splitn(3, ':').nth(2)
}

/// The text before the id, and the id, in `cri-containerd-ID.scope`, `kubepods-podUID.slice:cri-containerd:ID`,
/// `libpod-payload-ID` or a bare `ID`. A container's monitor has a cgroup beside the container's.
fn container_id(component: &str) -> Option<(&str, &str)> {
    let name = component.strip_suffix(".scope").unwrap_or(component);
    let (prefix, id) = name.split_at_checked(name.len().checked_sub(ID_LENGTH)?)?;
    let is_id = id
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_apart = prefix.is_empty() || prefix.ends_with(['-', ':']);
    (is_id && is_apart && !prefix.contains("conmon")).then_some((prefix, id))
}

/// The uid in `podUID`, or as systemd's slices spell it, `kubepods-burstable-podUID.slice` with `_` for `-`.
fn pod_uid(component: &str) -> Option<String> {
    let name = component
        .split_once(".slice")
        .map_or(component, |(name, _)| name);
    let uid = name
        .strip_prefix("pod")
        .or_else(|| name.rsplit_once("-pod").map(|(_, uid)| uid))?;
    let uid = uid.replace('_', "-");
    let is_uid = uid.len() >= MIN_UID
        && uid
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uid.then_some(uid)
}

#[cfg(test)]
mod tests;
