//! Which programs of the host have loaded what is attached to its links (tc-bpf, tcx, XDP), and install it again: those that have
//! the program open, or maps that it uses, as an agent such as Cilium has while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::inventory::procfs;
use crate::kernel::traffic::program_maps;
use crate::model::net::traffic::ProgramOwner;
use crate::model::{NetState, NodeState};

/// What a process may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BpfObject {
    Program(u32),
    Map(u32),
}

/// Notes the owners of the programs on the host's links.
pub(crate) fn find(host: &mut NetState) {
    let programs = host.links.iter().flat_map(|link| &link.traffic.programs.0);
    let numbers: BTreeSet<u32> = programs.map(|(_, number)| *number).collect();
    if numbers.is_empty() {
        return;
    }
    let mut wanted: BTreeMap<BpfObject, Vec<u32>> = BTreeMap::new();
    for number in numbers {
        let maps = program_maps(number).into_iter().map(BpfObject::Map);
        for object in maps.chain([BpfObject::Program(number)]) {
            wanted.entry(object).or_default().push(number);
        }
    }
    let mut owners: BTreeMap<u32, String> = BTreeMap::new();
    for pid in of_host() {
        for number in open_objects(pid)
            .iter()
            .filter_map(|one| wanted.get(one))
            .flatten()
        {
            let name = owners.entry(*number);
            name.or_insert_with(|| name_of(pid));
        }
    }
    for link in &mut host.links {
        let traffic = &mut link.traffic;
        for (what, number) in &traffic.programs.0 {
            if let Some(owner) = owners.get(number)
                && traffic.owners.iter().all(|one| one.what != *what)
            {
                let (what, owner) = (what.clone(), owner.clone());
                traffic.owners.push(ProgramOwner { what, owner });
            }
        }
    }
}

/// Removes the owners that do not run any more from what is recorded of the host.
pub(crate) fn forget_ended(recorded: &mut Option<NodeState>) {
    let Some(NodeState { state: host, .. }) = recorded else {
        return;
    };
    let owners = || host.links.iter().flat_map(|link| &link.traffic.owners);
    if owners().next().is_none() {
        return;
    }
    let names: BTreeSet<String> = of_host().map(name_of).collect();
    for link in &mut host.links {
        let owners = &mut link.traffic.owners;
        owners.retain(|one| names.contains(&one.owner));
    }
}

/// The other processes in the network namespace of this one: no container with a network of its own is there.
pub(super) fn of_host() -> impl Iterator<Item = u32> {
    let own = procfs::netns_inode("self").ok();
    let processes = procfs::of_processes().map(|(processes, _)| processes);
    let of_host = processes.unwrap_or_default().into_iter();
    let of_host = of_host
        .filter(move |(inode, holder)| Some(*inode) == own && holder.pid != std::process::id());
    of_host.map(|(_, holder)| holder.pid)
}

fn name_of(pid: u32) -> String {
    let name = procfs::comm(pid).unwrap_or_default();
    String::from_utf8_lossy(name.as_slice()).into_owned()
}

/// The programs and maps that a process has open, itself or by a link (`/proc/PID/fdinfo`).
fn open_objects(pid: u32) -> BTreeSet<BpfObject> {
    let mut found = BTreeSet::new();
    for (number, target) in procfs::open_files(pid) {
        if !target.to_string_lossy().starts_with("anon_inode:bpf") {
            continue;
        }
        let info = format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy());
        let info = fs::read_to_string(info).unwrap_or_default();
        found.extend(info.lines().filter_map(object));
    }
    found
}

/// The object of a line such as `prog_id: 17` or `map_id: 5`.
fn object(line: &str) -> Option<BpfObject> {
    let (key, number) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    match key {
        "prog_id" => Some(BpfObject::Program(number)),
        "map_id" => Some(BpfObject::Map(number)),
        _ => None,
    }
}
