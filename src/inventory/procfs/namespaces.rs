//! Namespaces of processes, and those of the machine.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::text;

/// The file through which a process's network namespace is opened.
pub(crate) fn netns_path(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}

/// The inode of a process's network namespace; `process` is a pid or `self`.
pub(crate) fn netns_inode(process: &str) -> io::Result<u64> {
    namespace(process, "net")
}

/// The inode of a process's namespace of this kind (`namespaces(7)`); `process` is a pid or `self`.
pub(in crate::inventory) fn namespace(process: &str, kind: &str) -> io::Result<u64> {
    let link = fs::read_link(format!("/proc/{process}/ns/{kind}"))?;
    inode_in(&link.to_string_lossy(), kind)
        .ok_or_else(|| io::Error::other(format!("{} is no namespace", link.display())))
}

/// The number in `net:[4026531840]`.
pub(super) fn inode_in(text: &str, kind: &str) -> Option<u64> {
    let number = text.strip_prefix(kind)?.strip_prefix(":[")?;
    number.strip_suffix(']')?.parse().ok()
}

/// The network namespace of the machine itself.
pub(crate) fn machine_inode() -> io::Result<u64> {
    of_machine("net")
}

/// The namespace of this kind of the machine itself: PID 1's, or that of the first kernel thread where the kernel does not
/// reveal PID 1's.
pub(in crate::inventory) fn of_machine(kind: &str) -> io::Result<u64> {
    match namespace("1", kind) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_kernel_thread(2) => {
            namespace("2", kind)
        }
        other => other,
    }
}

/// A kernel thread has no command line and no visible parent.
fn is_kernel_thread(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
        && text(format!("/proc/{pid}/status")).is_ok_and(|status| {
            status
                .lines()
                .any(|line| line.strip_prefix("PPid:").is_some_and(|p| p.trim() == "0"))
        })
}
