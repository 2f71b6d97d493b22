//! Namespaces that are mounted in other mount namespaces than netfix's, such as a pod's own.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{is_gone, parse_mount, processes};

/// A pod can mount very much: no more is read of one table, and of all.
const LONGEST: u64 = 4 << 20;
const LONGEST_OF_ALL: u64 = 64 << 20;

/// What is mounted elsewhere.
#[derive(Default)]
pub(crate) struct MountedElsewhere {
    /// Inodes of namespaces, each with a path through the root of a process.
    pub found: Vec<(u64, PathBuf)>,
    /// Processes whose mounts were not all read.
    pub unread: Vec<u32>,
}

/// Reads the table of each mount namespace but netfix's once, through its first process.
pub(crate) fn mounted_elsewhere() -> io::Result<MountedElsewhere> {
    let mut all = MountedElsewhere::default();
    let mut seen = HashSet::from([fs::read_link("/proc/self/ns/mnt")?]);
    let mut left = LONGEST_OF_ALL;
    for pid in processes()? {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        // One that the kernel does not reveal is among the processes whose network namespace it does not reveal.
        let Ok(namespace) = fs::read_link(folder.join("ns/mnt")) else {
            continue;
        };
        if !seen.insert(namespace.clone()) {
            continue;
        }
        match read(&folder, left.min(LONGEST), &mut all.found) {
            Ok(length) if length < left.min(LONGEST) => left -= length,
            Ok(length) => {
                left -= length;
                all.unread.push(pid);
            }
            // Another process of it can be there still.
            Err(error) if is_gone(&error) => drop(seen.remove(&namespace)),
            Err(_) => all.unread.push(pid),
        }
    }
    Ok(all)
}

/// Reads at most `longest` bytes of a process's table; returns how many.
fn read(folder: &Path, longest: u64, found: &mut Vec<(u64, PathBuf)>) -> io::Result<u64> {
    let mut table = Vec::new();
    let mut file = File::open(folder.join("mountinfo"))?.take(longest);
    let length = file.read_to_end(&mut table)?;
    let mounts = table
        .split(|byte| *byte == b'\n')
        .filter_map(parse_mount)
        .filter_map(|(inode, path)| Some((inode, path.strip_prefix("/").ok()?.to_owned())));
    found.extend(mounts.map(|(inode, path)| (inode, folder.join("root").join(path))));
    Ok(length as u64)
}
