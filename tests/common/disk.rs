//! A small file system under the state directory, for tests that fill it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::Node;
use super::tool;

/// Machines that start later see it too; it is unmounted with the test.
pub struct Disk {
    folder: PathBuf,
    size: usize,
}

impl Disk {
    /// A file system of this many bytes.
    pub fn under(node: &Node, size: usize) -> Self {
        let folder = node.state_dir();
        fs::create_dir_all(&folder).expect("the state folder");
        let disk = Self { folder, size };
        disk.mount(&[
            "-t",
            "tmpfs",
            "-o",
            &format!("size={size},mode=700"),
            "tmpfs",
        ]);
        disk
    }

    pub fn mount(&self, words: &[&str]) {
        tool::run(tool::command("mount", words).arg(&self.folder));
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Writes until the disk is full; returns the file that takes all the space.
    pub fn fill(&self) -> PathBuf {
        let path = self.filler();
        let mut file = fs::File::create(&path).expect("a filler");
        let is_full = [4096, 256].iter().all(|block| {
            (0..2 * self.size / block).any(|_| file.write_all(&vec![0; *block]).is_err())
        });
        assert!(
            is_full,
            "{} is not the small file system",
            self.folder.display()
        );
        path
    }

    /// The same, as shell text for a script.
    pub fn filling(&self) -> String {
        format!(
            "for block in 4096 256; do dd if=/dev/zero bs=$block 2>/dev/null; done >{}; true",
            self.filler().display()
        )
    }

    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("room again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = tool::try_run(tool::command("umount", ["-l"]).arg(&self.folder));
    }
}
