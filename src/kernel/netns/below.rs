//! What is mounted below the root of another process. A pod decides what is there: no link is followed, and no file system is
//! asked, for it may not answer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::checked;

/// The folder of the process, and the rest, of a path such as `/proc/4711/root/run/netns/inner`.
pub(super) fn split(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = path.strip_prefix("/proc").ok()?.components();
    let Component::Normal(pid) = parts.next()? else {
        return None;
    };
    let _: u32 = pid.to_str()?.parse().ok()?;
    let is_root = parts.next()?.as_os_str() == "root";
    is_root.then(|| (Path::new("/proc").join(pid), parts.as_path().to_owned()))
}

/// Opens the namespace that is mounted there.
///
/// # Errors
/// `ENOENT` if no namespace is mounted there, `EAGAIN` if a file system would have to be asked, `EINVAL` or `ENOSYS` before Linux
/// 5.12, which can only ask.
pub(super) fn open(process: &Path, below: &Path) -> io::Result<File> {
    let root = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(process.join("root"))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The kernel has in memory what leads to a mount.
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    let found = File::from(openat2(&root, below, flags, Mode::empty(), resolve)?);
    if is_namespace(process, &found)? {
        return checked::reopen(&found);
    }
    Err(Errno::ENOENT.into())
}

/// Whether the mount of an open file, which keeps its number while it is open, is that of a namespace.
fn is_namespace(process: &Path, found: &File) -> io::Result<bool> {
    const LONGEST: u64 = 4 << 20;
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", found.as_raw_fd()))?;
    let mut lines = about.lines();
    let number = lines.find_map(|line| line.strip_prefix("mnt_id:"));
    let number = number.ok_or(Errno::ENOENT)?.trim().as_bytes();
    let mut table = Vec::new();
    let mounts = File::open(process.join("mountinfo"))?;
    mounts.take(LONGEST).read_to_end(&mut table)?;
    let mut mounts = table.split(|byte| *byte == b'\n');
    Ok(mounts.any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        fields.next() == Some(number)
            && fields.any(|field| field == b"-")
            && fields.next() == Some(b"nsfs")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mounted_namespace_is_opened_and_no_link_is_followed() {
        let process = Path::new("/proc/self");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/self/ns/net", &link).unwrap();
        let errno = |path: &Path| {
            let opened = open(process, path.strip_prefix("/").unwrap());
            opened.unwrap_err().raw_os_error()
        };
        assert_eq!(errno(&file), Some(libc::ENOENT));
        assert_eq!(errno(&link), Some(libc::ENOENT));
        assert_eq!(errno(&link.join("x")), Some(libc::ELOOP));
    }

    #[test]
    fn a_path_through_the_root_of_a_process_is_known_as_one() {
        let path = Path::new("/proc/7/root/run/netns/a");
        let parts = ("/proc/7".into(), "run/netns/a".into());
        assert_eq!(split(path), Some(parts));
        for other in [
            "/proc/7/ns/net",
            "/proc/self/root/x",
            "/run/netns/a",
            "proc/7/root/x",
        ] {
            assert_eq!(split(Path::new(other)), None, "{other}");
        }
    }
}
