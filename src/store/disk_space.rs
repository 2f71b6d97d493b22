//! Whether the state directory has space for another snapshot.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

use crate::store::{Store, StoreError, lock};

/// Free space on the state directory's file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub bytes: u64,
    /// Free inodes; `None` where the file system has no inode limit.
    pub files: Option<u64>,
    /// Bytes that the checkpoints use now.
    pub used: u64,
}

impl Store {
    /// Checks that the state directory exists and is writable, and returns the free space.
    pub(crate) fn room(&self) -> Result<Room, StoreError> {
        lock::check_folder(&self.folder)?;
        let errno = |errno: Errno| StoreError::write("cannot use", &self.folder)(errno.into());
        access(&self.folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(errno)?;
        let stat = statvfs(&self.folder).map_err(errno)?;
        if stat.flags().contains(FsFlags::ST_RDONLY) {
            return Err(errno(Errno::EROFS));
        }
        let files = Some(stat.files_available()).filter(|_| stat.files() > 0);
        let bytes = stat.blocks_available() * stat.fragment_size();
        Ok(Room {
            bytes,
            files,
            used: self
                .used()
                .map_err(StoreError::io("cannot read", &self.folder))?,
        })
    }

    fn used(&self) -> io::Result<u64> {
        let entries = match fs::read_dir(self.checkpoints()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        entries.map(|entry| Ok(entry?.metadata()?.len())).sum()
    }
}
