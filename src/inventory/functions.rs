//! Who uses devices and their virtual functions besides the kernel: programs that have the device itself, and the operator that makes
//! functions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::inventory::procfs;
use crate::inventory::sockets::program;
use crate::model::net::link::nic::VirtualFunction;
use crate::model::net::link::socket::Program;
use crate::model::problem::SocketCause;
use crate::model::{Link, NetState, Problem};

/// The daemon of sriov-network-operator on each node, and where it keeps what it has set.
const DAEMON: &str = "sriov-network-config-daemon";
const FILES: &str = "/etc/sriov-operator/pci";
/// The devices of the bus, below `/`.
const DEVICES: &str = "sys/bus/pci/devices";

/// The host's devices, and virtual functions of them, that programs hold: a reload takes the device away from them.
pub(crate) fn held(host: &NetState) -> Vec<Problem> {
    held_below(Path::new("/"), host)
}

fn held_below(root: &Path, host: &NetState) -> Vec<Problem> {
    let mut wanted = BTreeMap::new();
    for link in &host.links {
        let hardware = link.hardware.as_ref().filter(|own| !own.is_representor());
        let bus = hardware.and_then(|own| own.bus.as_ref());
        for (folder, dev, using) in BESIDE {
            for node in beside(root, bus, folder, dev) {
                let about: &mut Vec<_> = wanted.entry(node).or_default();
                about.push((&link.name, using));
            }
        }
        let functions = link.sriov().into_iter().flat_map(|sriov| &sriov.functions);
        for function in functions.filter(|one| one.is_passed_on()) {
            for node in nodes(root, function) {
                let about: &mut Vec<_> = wanted.entry(node).or_default();
                about.push((&link.name, DeviceUse::Function(function)));
            }
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (node, programs) in holders(&wanted.keys().cloned().collect::<Vec<_>>()) {
        for (device, using) in wanted.get(&node).into_iter().flatten() {
            let programs = programs.clone();
            let cause = match using {
                DeviceUse::Function(function) => SocketCause::FunctionEnds {
                    index: function.index,
                    driver: function.driver.clone().unwrap_or_default(),
                    programs,
                },
                DeviceUse::Verbs => SocketCause::VerbsEnd { programs },
                DeviceUse::Clock => SocketCause::ClockEnds { programs },
            };
            problems.push(cause.warning(*device));
        }
    }
    problems
}

/// The device files by which a program has this function: that of its IOMMU group, and those of UIO.
fn nodes(root: &Path, function: &VirtualFunction) -> Vec<PathBuf> {
    let Some(bus) = function.bus.as_ref().filter(|bus| !bus.contains('/')) else {
        return Vec::new();
    };
    let device = root.join(DEVICES).join(bus);
    let group = fs::read_link(device.join("iommu_group")).ok();
    let group = group.and_then(|group| Some(root.join("dev/vfio").join(group.file_name()?)));
    let uio = below(&device.join("uio"), root.join("dev"));
    group.into_iter().chain(uio).collect()
}

/// What a program has of a device.
#[derive(Clone, Copy)]
enum DeviceUse<'a> {
    Function(&'a VirtualFunction),
    Verbs,
    Clock,
}

/// How programs use a device beside its driver, each with the folder of the device and that of its files: RDMA, DPDK and VMA, and its
/// clock (PTP).
const BESIDE: [(&str, &str, DeviceUse<'static>); 2] = [
    ("infiniband_verbs", "dev/infiniband", DeviceUse::Verbs),
    ("ptp", "dev", DeviceUse::Clock),
];

/// The device files of one such use.
fn beside(
    root: &Path,
    bus: Option<&String>,
    folder: &str,
    dev: &str,
) -> impl Iterator<Item = PathBuf> + use<> {
    let device = bus.filter(|bus| !bus.contains('/'));
    let folder = device.map(|bus| root.join(DEVICES).join(bus).join(folder));
    let dev = root.join(dev);
    folder
        .into_iter()
        .flat_map(move |folder| below(&folder, dev.clone()))
}

/// The device files in `dev` with the names of what is in this folder of sysfs.
fn below(folder: &Path, dev: PathBuf) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(move |entry| Some(dev.join(entry.ok()?.file_name())))
}

/// The programs that have these files open.
fn holders(nodes: &[PathBuf]) -> BTreeMap<PathBuf, Vec<Program>> {
    let mut found: BTreeMap<PathBuf, Vec<Program>> = BTreeMap::new();
    for pid in procfs::processes().unwrap_or_default() {
        let mut targets: Vec<PathBuf> = procfs::open_files(pid)
            .map(|(_, target)| target)
            .filter(|target| nodes.contains(target))
            .collect();
        targets.sort();
        targets.dedup();
        for target in targets {
            let programs = found.entry(target).or_default();
            programs.extend(program(pid));
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
    use crate::model::net::link::nic::{NicState, Sriov};
    use crate::model::problem::Cause;
    use crate::model::{Hardware, LinkKind};

    const DEVICE: &str = "0000:01:00.0";
    const FUNCTION: &str = "0000:01:10.0";

    /// A device with one virtual function that is passed on, both at these bus addresses.
    fn host(bus: &str, of_function: &str) -> NetState {
        let function = VirtualFunction {
            bus: Some(of_function.to_owned()),
            driver: Some("vfio-pci".to_owned()),
            ..VirtualFunction::default()
        };
        let sriov = Sriov {
            vfs: 1,
            functions: vec![function],
            ..Sriov::default()
        };
        let link = Link {
            hardware: Some(Hardware {
                bus: Some(bus.to_owned()),
                ..Hardware::default()
            }),
            nic: Some(Box::new(NicState {
                sriov: Some(sriov),
                ..NicState::default()
            })),
            ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
        };
        NetState {
            links: vec![link],
            ..NetState::default()
        }
    }

    /// Files of a machine on which programs have a function by its IOMMU group or by UIO, and a device by verbs.
    fn machine(root: &Path) -> Vec<fs::File> {
        let devices = root.join(DEVICES);
        for folder in [
            devices.join(DEVICE).join("infiniband_verbs/uverbs2"),
            devices.join(DEVICE).join("ptp/ptp1"),
            devices.join(FUNCTION).join("uio/uio3"),
            root.join("dev/infiniband"),
            root.join("dev/vfio"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        let group = devices.join(FUNCTION).join("iommu_group");
        symlink("../../kernel/iommu_groups/17", group).unwrap();
        let files = [
            "dev/infiniband/uverbs2",
            "dev/vfio/17",
            "dev/uio3",
            "dev/ptp1",
        ];
        files
            .map(|file| fs::File::create(root.join(file)).unwrap())
            .into()
    }

    #[test]
    fn a_device_and_a_function_are_named_with_the_programs_that_have_their_files_open() {
        let root = std::env::temp_dir().join(format!("netfix-functions-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let root = fs::canonicalize(root).unwrap();
        let files = machine(&root);
        let is_own =
            |programs: &[Program]| programs.iter().any(|one| one.pid == std::process::id());
        let named = |host: NetState| {
            let problems = held_below(&root, &host);
            let words = problems.into_iter().filter_map(|one| match &*one.cause {
                Cause::Socket(SocketCause::FunctionEnds {
                    driver, programs, ..
                }) => is_own(programs).then(|| driver.clone()),
                Cause::Socket(SocketCause::VerbsEnd { programs }) => {
                    is_own(programs).then(|| "verbs".to_owned())
                }
                Cause::Socket(SocketCause::ClockEnds { programs }) => {
                    is_own(programs).then(|| "clock".to_owned())
                }
                _ => None,
            });
            let mut words: Vec<_> = words.collect();
            words.sort();
            words
        };
        let whole = named(host(DEVICE, FUNCTION));
        let strange = named(host(&format!("../devices/{DEVICE}"), "../devices/x"));
        drop(files);
        let closed = named(host(DEVICE, FUNCTION));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(whole, ["clock", "verbs", "vfio-pci", "vfio-pci"]);
        assert!(strange.is_empty() && closed.is_empty());
    }
}
