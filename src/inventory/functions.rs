//! Who uses virtual functions besides the kernel: programs that were given the device itself, and the operator that makes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::inventory::procfs;
use crate::model::net::link::nic::VirtualFunction;
use crate::model::net::link::socket::Program;
use crate::model::problem::SocketCause;
use crate::model::{Link, NetState, Problem};

/// The daemon of sriov-network-operator on each node, and where it keeps what it has set.
const DAEMON: &str = "sriov-network-config-daemon";
const FILES: &str = "/etc/sriov-operator/pci";

/// The virtual functions of the host's devices that programs hold: a reload takes the device away from them.
pub(crate) fn held(host: &NetState) -> Vec<Problem> {
    let mut wanted = BTreeMap::new();
    for link in &host.links {
        let functions = link.sriov().into_iter().flat_map(|sriov| &sriov.functions);
        for function in functions.filter(|one| one.is_passed_on()) {
            for node in nodes(Path::new("/sys/bus/pci/devices"), function) {
                let about: &mut Vec<_> = wanted.entry(node).or_default();
                about.push((&link.name, function));
            }
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (node, programs) in holders(&wanted.keys().cloned().collect::<Vec<_>>()) {
        for (device, function) in wanted.get(&node).into_iter().flatten() {
            let cause = SocketCause::FunctionEnds {
                index: function.index,
                driver: function.driver.clone().unwrap_or_default(),
                programs: programs.clone(),
            };
            problems.push(cause.warning(*device));
        }
    }
    problems
}

/// The device files by which a program has this function: that of its IOMMU group, and those of UIO.
fn nodes(devices: &Path, function: &VirtualFunction) -> Vec<PathBuf> {
    let Some(bus) = function.bus.as_ref().filter(|bus| !bus.contains('/')) else {
        return Vec::new();
    };
    let device = devices.join(bus);
    let group = fs::read_link(device.join("iommu_group")).ok();
    let group = group.and_then(|group| Some(Path::new("/dev/vfio").join(group.file_name()?)));
    let uio = fs::read_dir(device.join("uio")).into_iter().flatten();
    let uio = uio.filter_map(|entry| Some(Path::new("/dev").join(entry.ok()?.file_name())));
    group.into_iter().chain(uio).collect()
}

/// The programs that have these files open.
fn holders(nodes: &[PathBuf]) -> BTreeMap<PathBuf, Vec<Program>> {
    let mut found: BTreeMap<PathBuf, Vec<Program>> = BTreeMap::new();
    for pid in procfs::processes().unwrap_or_default() {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let targets = descriptors.into_iter().flatten();
        let mut targets: Vec<PathBuf> = targets
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| nodes.contains(target))
            .collect();
        targets.sort();
        targets.dedup();
        for target in targets {
            let name = procfs::comm(pid).unwrap_or_default();
            let programs = found.entry(target).or_default();
            programs.push(Program { pid, name });
        }
    }
    found
}

/// The operator of virtual functions, on a host that has some: it may drain the node, or make them itself, in the middle of a restore.
pub(crate) fn operator(host: &NetState) -> Option<Problem> {
    let mut devices = host.links.iter().filter_map(Link::sriov);
    if !devices.any(|sriov| sriov.vfs > 0) {
        return None;
    }
    let pid = daemon();
    let is_known = pid.is_some() || Path::new(FILES).is_dir();
    is_known.then(|| SocketCause::OperatorActs { pid }.info("host"))
}

/// The daemon, which runs in the host's network namespace.
fn daemon() -> Option<u32> {
    let own = procfs::netns_inode("self").ok()?;
    let is_daemon = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
        program.rsplit(|byte| *byte == b'/').next() == Some(DAEMON.as_bytes())
            && procfs::netns_inode(&pid.to_string()).ok() == Some(own)
    };
    procfs::processes().ok()?.into_iter().find(is_daemon)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_function_is_held_by_the_file_of_its_group_or_of_uio() {
        let root = std::env::temp_dir().join(format!("netfix-functions-{}", std::process::id()));
        let device = root.join("0000:01:10.0");
        fs::create_dir_all(device.join("uio/uio3")).unwrap();
        symlink("../../kernel/iommu_groups/17", device.join("iommu_group")).unwrap();
        let function = |bus: &str| VirtualFunction {
            bus: Some(bus.to_owned()),
            ..VirtualFunction::default()
        };
        let found = nodes(&root, &function("0000:01:10.0"));
        let strange = nodes(&root, &function("../0000:01:10.0"));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [Path::new("/dev/vfio/17"), Path::new("/dev/uio3")]);
        assert!(strange.is_empty());
    }
}
