//! The files of one folder of `/proc/sys` or sysfs: each holds one value as text.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{self, OFlag};
use nix::sys::stat::{Mode, fstat};
use nix::unistd;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const OF_FOLDER: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

/// The folder, which is found once.
pub(crate) struct Files(OwnedFd);

impl Files {
    /// A new instance of a file system of the kernel, such as `sysfs`. It is mounted nowhere, and gone with this value.
    ///
    /// # Errors
    /// `ENOSYS` before Linux 5.2.
    pub(crate) fn mount(filesystem: &str) -> io::Result<Self> {
        let context = fsopen(filesystem, FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Ok(Self(fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?))
    }

    pub(crate) fn of(folder: &Path) -> nix::Result<Self> {
        fcntl::open(folder, OF_FOLDER, Mode::empty()).map(Self)
    }

    /// Those in the folder of this path below.
    pub(crate) fn below(&self, path: &Path) -> nix::Result<Self> {
        fcntl::openat(&self.0, path, OF_FOLDER, Mode::empty()).map(Self)
    }

    /// The inode of the folder.
    pub(crate) fn inode(&self) -> nix::Result<u64> {
        Ok(fstat(&self.0)?.st_ino)
    }

    /// A file of this path, to be written.
    pub(crate) fn open_to_write(&self, path: &str) -> nix::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        fcntl::openat(&self.0, path, flags, Mode::empty()).map(File::from)
    }

    /// What a symbolic link of this path leads to.
    pub(crate) fn target(&self, path: &str) -> Option<OsString> {
        fcntl::readlinkat(&self.0, path).ok()
    }

    /// The text of a file, trimmed and handed to `parse`; `None` as well where it cannot be read. For `/proc/sys` the kernel
    /// allocates and clears as much as the `LONGEST` text has (`proc_sys_call_handler`).
    pub(crate) fn read<const LONGEST: usize, T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = fcntl::openat(&self.0, name, flags, Mode::empty()).ok()?;
        let mut text = [0; LONGEST];
        let length = unistd::read(&file, &mut text).ok()?;
        parse(str::from_utf8(&text[..length]).ok()?.trim())
    }
}
