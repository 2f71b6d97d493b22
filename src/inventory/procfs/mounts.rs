//! Namespaces in the mount table, of netfix's mount namespace and of others, such as a pod's own.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::namespaces::inode_in;
use super::{is_gone, processes};

/// Most tables fit: fewer reads.
const USUAL: usize = 64 << 10;
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
    let mut table = Vec::with_capacity(USUAL);
    let mut file = File::open(folder.join("mountinfo"))?.take(longest);
    let length = file.read_to_end(&mut table)?;
    let mounts = table
        .split(|byte| *byte == b'\n')
        .filter_map(parse_mount)
        .filter_map(|(inode, path)| Some((inode, path.strip_prefix("/").ok()?.to_owned())));
    found.extend(mounts.map(|(inode, path)| (inode, folder.join("root").join(path))));
    Ok(length as u64)
}

/// The namespaces that are mounted somewhere, with the mount point.
pub(crate) fn mounted() -> io::Result<Vec<(u64, PathBuf)>> {
    let table = fs::read("/proc/self/mountinfo")?;
    let lines = table.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(parse_mount).collect())
}

/// Whether a namespace is still mounted there.
pub(crate) fn is_mounted(inode: u64, path: &Path) -> io::Result<bool> {
    Ok(mounted()?
        .iter()
        .any(|(number, mount)| *number == inode && mount == path))
}

/// One line of mountinfo (proc(5)), if it is a mounted network namespace. The path may hold any byte.
fn parse_mount(line: &[u8]) -> Option<(u64, PathBuf)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let inode = inode_in(str::from_utf8(fields.next()?).ok()?, "net")?;
    let path = fields.next()?;
    // Optional fields end with a dash; the type of the file system follows.
    fields.find(|field| *field == b"-")?;
    (fields.next()? == b"nsfs").then(|| (inode, unescape(path)))
}

/// Undoes mountinfo's escapes: the kernel writes blanks, tabs, line breaks and backslashes as a backslash and three octal
/// digits.
fn unescape(mut text: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    while let Some((first, rest)) = text.split_first() {
        let digits = rest.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let escaped = escaped.filter(|_| *first == b'\\');
        path.push(escaped.unwrap_or(*first));
        text = if escaped.is_some() { &rest[3..] } else { rest };
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_namespace_is_read_from_mountinfo() {
        let line =
            b"350 25 0:4 net:[4026532281] /run/netns/a\\040b\xfc\\134 rw shared:1 - nsfs nsfs rw";
        assert_eq!(
            parse_mount(line),
            Some((
                4_026_532_281,
                OsString::from_vec(b"/run/netns/a b\xfc\\".to_vec()).into()
            ))
        );
    }

    #[test]
    fn other_mounts_are_passed_over() {
        for line in [
            "25 1 8:1 / / rw - ext4 /dev/vda rw",
            "350 25 0:4 mnt:[4026532281] /run/x rw - nsfs nsfs rw",
            "350 25 0:4 net:[4026532281] /run/x rw - tmpfs nsfs rw",
            "",
        ] {
            assert_eq!(parse_mount(line.as_bytes()), None, "{line}");
        }
    }
}
