//! systemd-udevd: whether it has finished with a network device, and its events.
//!
//! A new device has no final name until then: udevd renames it only while it is down (systemd.link(5)).

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use netlink_sys::Socket as RawSocket;
use netlink_sys::protocols::NETLINK_KOBJECT_UEVENT;
use nix::errno::Errno;

use super::Error;
use crate::checked;

/// The socket on which udevd takes commands while it runs.
const CONTROL: &str = "/run/udev/control";
/// The multicast group of the events that udevd sends when its rules have run (`MONITOR_GROUP_UDEV` of sd-device).
const GROUP_UDEV: u32 = 2;

/// A subscription to udevd's events, of all devices.
#[derive(Debug)]
pub struct UdevEvents(RawSocket);

impl UdevEvents {
    /// Subscribes; `None` where no udevd runs.
    pub fn subscribe() -> Result<Option<Self>, Error> {
        if !is_running() {
            return Ok(None);
        }
        let mut socket = RawSocket::new(NETLINK_KOBJECT_UEVENT)?;
        socket.bind_auto()?;
        socket.add_membership(GROUP_UDEV)?;
        Ok(Some(Self(socket)))
    }

    /// Takes all events that have arrived. What happened is read from udevd's database.
    pub(super) fn drain(&self) -> Result<(), Error> {
        loop {
            let mut start = [0_u8; 1];
            let received = self.0.recv(&mut &mut start[..], libc::MSG_DONTWAIT);
            match received.map_err(Error::from) {
                Ok(_) | Err(Error::Kernel(Errno::EINTR | Errno::ENOBUFS)) => {}
                Err(Error::Kernel(Errno::EAGAIN)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for UdevEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether udevd runs.
pub fn is_running() -> bool {
    Path::new(CONTROL).exists()
}

/// Whether udevd has applied its rules to a network device and is not renaming it.
pub fn has_finished(ifindex: u32) -> bool {
    checked::text(path(ifindex)).is_ok_and(|entry| is_final(&entry))
}

/// Entries of former devices in udevd's database. udevd removes such an entry when it handles the event of the removal: that may be later
/// than a new device has the ifindex, or never, if udevd did not receive the event. It writes each entry as a new file.
#[derive(Debug, Default)]
pub(crate) struct FormerEntries(BTreeSet<FileId>);

/// Inode and time of the last change.
type FileId = (u64, i64, i64);

impl FormerEntries {
    /// Those of these ifindexes, which no device has at the moment.
    pub(crate) fn of(indexes: impl Iterator<Item = u32>) -> Self {
        Self(indexes.filter_map(|one| file_id(&path(one))).collect())
    }

    /// Whether udevd has finished with the device that has the ifindex now.
    pub(crate) fn has_finished(&self, ifindex: u32) -> bool {
        let file = file_id(&path(ifindex));
        !file.is_some_and(|file| self.0.contains(&file)) && has_finished(ifindex)
    }
}

fn file_id(file: &Path) -> Option<FileId> {
    let file = file.symlink_metadata().ok()?;
    Some((file.ino(), file.ctime(), file.ctime_nsec()))
}

fn path(ifindex: u32) -> PathBuf {
    PathBuf::from(format!("/run/udev/data/n{ifindex}"))
}

/// The `.link` file that udevd uses for a device, and what is added to it.
pub(crate) fn link_files(ifindex: u32) -> Vec<PathBuf> {
    link_files_below(Path::new("/"), ifindex)
}

/// The same, from a database below this root.
pub(crate) fn link_files_below(root: &Path, ifindex: u32) -> Vec<PathBuf> {
    let entry = checked::text(root.join(format!("run/udev/data/n{ifindex}")));
    link_files_in(&entry.unwrap_or_default())
}

fn link_files_in(entry: &str) -> Vec<PathBuf> {
    let property = |name: &str| {
        let mut lines = entry.lines();
        lines.find_map(|line| line.strip_prefix("E:")?.strip_prefix(name))
    };
    let file = property("ID_NET_LINK_FILE=").into_iter();
    let added = property("ID_NET_LINK_FILE_DROPINS=").unwrap_or_default();
    let added = added.split(':').filter(|path| !path.is_empty());
    file.chain(added).map(PathBuf::from).collect()
}

/// A device is initialized from the first `I:` on; while it is renamed it has a property for that (sd-device).
fn is_final(entry: &str) -> bool {
    let is_initialized = entry.lines().any(|line| line.starts_with("I:"));
    is_initialized && !entry.lines().any(|line| line == "E:ID_RENAMING=1")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{file_id, is_final, link_files_in};

    #[test]
    fn an_entry_that_udevd_writes_anew_differs_from_the_former_one_of_the_same_text() {
        let folder = tempfile::tempdir().unwrap();
        let [entry, new] = ["n2", "n2.new"].map(|name| folder.path().join(name));
        fs::write(&entry, "I:1\n").unwrap();
        let former = file_id(&entry).unwrap();
        assert_eq!(file_id(&entry), Some(former));
        fs::write(&new, "I:1\n").unwrap();
        fs::rename(&new, &entry).unwrap();
        assert_ne!(file_id(&entry), Some(former));
        assert_eq!(file_id(&new), None);
    }

    #[test]
    fn the_link_file_of_a_device_comes_before_what_is_added_to_it() {
        let entry = "I:1\nE:ID_NET_LINK_FILE=/etc/systemd/network/10-a.link\nE:ID_NET_LINK_FILE_DROPINS=/run/a.conf:/etc/b.conf\n";
        let files = link_files_in(entry);
        assert_eq!(files.len(), 3);
        assert!(files[0].ends_with("10-a.link"));
        assert!(link_files_in("I:1\n").is_empty());
    }

    #[test]
    fn a_device_is_final_once_initialized_and_not_being_renamed() {
        assert!(!is_final(""));
        assert!(!is_final("E:ID_NET_DRIVER=e1000e\n"));
        assert!(!is_final("I:4152013\nE:ID_RENAMING=1\n"));
        assert!(is_final("I:4152013\nE:ID_NET_NAME=lan0\nG:systemd\n"));
    }
}
