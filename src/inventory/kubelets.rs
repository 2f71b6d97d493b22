//! The kubelets that run on this machine, by the names of their processes, and the units that they are in.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use crate::inventory::cgroup::{self, CgroupOwner};
use crate::inventory::procfs;

/// The processes that are a kubelet or have one in them: plain, k3s, RKE2, `MicroK8s`, k0s.
const NAMES: [&str; 7] = [
    "kubelet",
    "k3s",
    "k3s-server",
    "k3s-agent",
    "rke2",
    "kubelite",
    "k0s",
];

/// The programs among them that are also command line tools, and the commands of theirs that run a kubelet.
const TOOLS: [&str; 3] = ["k3s", "rke2", "k0s"];
const ROLES: [&str; 4] = ["server", "agent", "controller", "worker"];

/// A process that is a kubelet.
#[derive(Debug)]
pub(crate) struct Kubelet {
    pub name: &'static str,
    pub pid: u32,
    /// The units that it is in, such as `system.slice` and `kubelet.service`, outermost first.
    pub units: Vec<String>,
}

impl Kubelet {
    /// Whether a stop of the unit ends it. What a target stops is not in the names of cgroups.
    pub(crate) fn is_in(&self, unit: &str) -> bool {
        kind(unit) == "target" || self.units.iter().any(|name| name == unit)
    }

    /// The unit that it is in; `None` where it is in none but slices.
    pub(crate) fn unit(&self) -> Option<&str> {
        let unit = self.units.last()?;
        (kind(unit) != "slice").then_some(unit)
    }

    /// Its service, if the system's manager started it and not a user's.
    pub(crate) fn service(&self) -> Option<&str> {
        let is_of_user = self.units.iter().any(|unit| unit == "user.slice");
        let service = self.unit()?;
        (!is_of_user && kind(service) == "service").then_some(service)
    }
}

/// The kind of a unit: `service` for `kubelet.service`.
fn kind(unit: &str) -> &str {
    unit.rsplit_once('.').map_or("", |(_, kind)| kind)
}

/// The kubelets of this machine. A process in a container, in another pid namespace or of another user may have any name.
pub(crate) fn running() -> io::Result<Vec<Kubelet>> {
    let own = cgroup::own_ids();
    Ok(procfs::processes()?
        .into_iter()
        .filter_map(|pid| kubelet(pid, &own))
        .collect())
}

/// Whether a tool was started with a command that runs a kubelet. A command line that cannot be read is one.
fn has_role(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| {
        let mut words = line.split(|byte| *byte == 0);
        words.any(|word| ROLES.iter().any(|role| word == role.as_bytes()))
    })
}

fn kubelet(pid: u32, own: &BTreeSet<String>) -> Option<Kubelet> {
    let name = procfs::comm(pid).ok()?;
    let name = NAMES
        .into_iter()
        .find(|known| name.as_slice() == known.as_bytes())?;
    let is_tool = TOOLS.contains(&name) && !has_role(pid);
    if is_tool || !procfs::is_of_this_machine(pid) || !procfs::is_started_by_root(pid) {
        return None;
    }
    match CgroupOwner::of(pid, own) {
        CgroupOwner::Container { .. } => None,
        CgroupOwner::System | CgroupOwner::Unknown => Some(Kubelet {
            name,
            pid,
            units: cgroup::units(pid),
        }),
    }
}
