//! The content of a node's state directory and its generations, read without netfix.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::node::Node;
use super::pod::Pod;
use super::tool;

/// Whether a netfix has the lock of this state directory, as the kernel lists it.
pub fn is_locked(state_dir: &Path) -> bool {
    let Ok(lock) = fs::metadata(state_dir.join("lock")) else {
        return false;
    };
    let inode = format!(":{} ", lock.ino());
    let held = fs::read_to_string("/proc/locks").expect("the kernel's locks");
    held.lines().any(|line| line.contains(&inode))
}

impl Node {
    pub fn generations_folder(&self) -> PathBuf {
        self.state_dir().join("generations")
    }

    pub fn generation(&self, number: u64) -> PathBuf {
        self.generations_folder().join(number.to_string())
    }

    /// Removes what could be used instead of a present file.
    pub fn remove_generations(&self) {
        fs::remove_dir_all(self.generations_folder()).expect("generations");
    }

    /// The numbers of all generations, oldest first. The directory must contain nothing else.
    pub fn generations(&self) -> Vec<u64> {
        let names = names(&self.generations_folder());
        let number = |name: &String| {
            name.parse()
                .unwrap_or_else(|_| panic!("{name} is no generation"))
        };
        let mut numbers: Vec<u64> = names.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The pod's file in one generation.
    pub fn kept_file(&self, number: u64, pod: &Pod<'_>) -> PathBuf {
        self.generation(number).join("checkpoints").join(pod.name())
    }

    /// The content of this pod's file in each generation that has one, oldest first.
    pub fn kept_of(&self, pod: &Pod<'_>) -> Vec<Vec<u8>> {
        let files = self
            .generations()
            .into_iter()
            .map(|number| self.kept_file(number, pod));
        files.filter_map(|file| fs::read(file).ok()).collect()
    }

    /// The content of the pod's checkpoint, byte for byte.
    pub fn stored_of(&self, pod: &Pod<'_>) -> Vec<u8> {
        fs::read(self.state_dir().join("checkpoints").join(pod.name())).expect("a checkpoint")
    }

    /// Every stored file loads: the current files, and every generation with all of its files.
    pub fn assert_all_loads(&self) {
        self.netfix("list").exits(0);
        let run = self.netfix("list --generations -o json").exits(0);
        assert_eq!(
            run.json()["problems"],
            Value::Array(Vec::new()),
            "{}",
            run.transcript()
        );
    }
}

/// `node.json` of a state directory or of a generation.
pub fn node_json(folder: &Path) -> Value {
    json(&fs::read(folder.join("node.json")).expect("node.json"))
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

/// The document as netfix writes it, with its checksum calculated by sha256sum(1).
pub fn with_checksum(mut document: Value, place: &str) -> String {
    let blank = "0".repeat(64);
    *document.pointer_mut(place).expect("a checksum") = format!("sha256:{blank}").into();
    let text = serde_json::to_string_pretty(&document).expect("JSON") + "\n";
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), &text).expect("the text");
    let sum = tool::run(tool::command("sha256sum", [file.path()]).arg("--zero"));
    text.replace(&blank, &sum[..64])
}
