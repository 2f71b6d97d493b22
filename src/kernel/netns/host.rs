//! The host of this container: the namespaces of process 1.

use std::env;
use std::fs::{self, File};
use std::io;
use std::process;

use nix::sched::{CloneFlags, setns};

/// In the order in which they are entered: after the last one `/proc` is another one. The process ids are those of the host already.
const NAMESPACES: [(&str, CloneFlags); 5] = [
    ("cgroup", CloneFlags::CLONE_NEWCGROUP),
    ("ipc", CloneFlags::CLONE_NEWIPC),
    ("uts", CloneFlags::CLONE_NEWUTS),
    ("net", CloneFlags::CLONE_NEWNET),
    ("mnt", CloneFlags::CLONE_NEWNS),
];

/// Moves this process into the namespaces of process 1, and to its root directory: for a program that it then becomes. The process
/// must have one thread.
///
/// # Errors
/// When the pid namespace is not the host's, or a right is missing.
pub fn enter_host() -> io::Result<()> {
    if process::id() == 1 {
        return Err(io::Error::other(
            "process 1 is netfix itself: the container needs the process ids of the host (hostPID: true)",
        ));
    }
    let mut files = Vec::new();
    for (name, kind) in NAMESPACES {
        let path = format!("/proc/1/ns/{name}");
        let failed = |error: io::Error| io::Error::other(format!("{path}: {error}"));
        // One that this process is in already needs no right.
        if fs::read_link(&path).map_err(failed)? != fs::read_link(format!("/proc/self/ns/{name}"))?
        {
            files.push((File::open(&path).map_err(failed)?, path, kind));
        }
    }
    for (file, path, kind) in files {
        setns(file, kind).map_err(|errno| io::Error::other(format!("{path}: {}", errno.desc())))?;
    }
    env::set_current_dir("/")
}
