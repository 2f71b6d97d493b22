//! The files of one folder of `/proc/sys` or sysfs: each holds one value as text.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{self, OFlag};
use nix::sys::stat::Mode;
use nix::unistd;

const OF_FOLDER: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

/// The folder, which is found once. Names in `/proc/sys/net` cost the more, the more namespaces there are: each has its own file of the same
/// name, and the kernel compares with all of them (`proc_sys_compare`).
pub(super) struct Files(OwnedFd);

impl Files {
    pub(super) fn of(folder: &Path) -> nix::Result<Self> {
        fcntl::open(folder, OF_FOLDER, Mode::empty()).map(Self)
    }

    /// Those in the folder of this path below another one.
    pub(super) fn below(above: &impl AsFd, path: &Path) -> nix::Result<Self> {
        fcntl::openat(above, path, OF_FOLDER, Mode::empty()).map(Self)
    }

    /// A file of this path, to be written.
    pub(super) fn open_to_write(&self, path: &str) -> nix::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        fcntl::openat(&self.0, path, flags, Mode::empty()).map(File::from)
    }

    /// The text of a file, trimmed and handed to `parse`; `None` as well where it cannot be read.
    pub(super) fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        /// The kernel makes no value longer: a page.
        const LONGEST: usize = 4096;
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = fcntl::openat(&self.0, name, flags, Mode::empty()).ok()?;
        let mut text = [0; LONGEST];
        let length = unistd::read(&file, &mut text).ok()?;
        parse(str::from_utf8(&text[..length]).ok()?.trim())
    }
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
