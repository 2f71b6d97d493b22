//! A state directory of the test, the records in `testdata/windows`, and netfix run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use netfix::model::Window;
use netfix::store::Store;
use serde_json::Value;

use crate::schema_file::faults;

pub const NAMES: [&str; 8] = [
    "well",
    "troubled",
    "killed",
    "pause",
    "rolled-back",
    "selected",
    "fates",
    "settings",
];

pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/windows")
        .join(name)
}

pub fn fixture(name: &str) -> Window {
    serde_json::from_str(&fs::read_to_string(testdata(&format!("{name}.json"))).unwrap()).unwrap()
}

/// A state directory of the test.
pub struct Machine {
    pub folder: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn with(windows: &[Window]) -> Self {
        let machine = Self::new();
        let guard = machine.store().lock("test").unwrap();
        for window in windows {
            guard.close_window(window).unwrap();
        }
        machine
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn store(&self) -> Store {
        Store::new(self.state())
    }

    pub fn netfix(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netfix"));
        command
            .args(words)
            .arg("--state-dir")
            .arg(self.state())
            .current_dir(self.folder.path());
        command
            .env_remove("NETFIX_STATE_DIR")
            .env("NO_COLOR", "1")
            .env("COLUMNS", "200")
            .output()
            .unwrap()
    }

    /// The output of a report of the newest window.
    pub fn text(&self) -> String {
        let output = self.netfix(&["report"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let output = self.netfix(&[words, &["-o", "json"]].concat());
        let document = serde_json::from_slice(&output.stdout).unwrap();
        let faults = faults(&document);
        assert!(faults.is_empty(), "{faults:#?}\n{document:#}");
        document
    }

    /// The page of the newest window.
    pub fn page(&self) -> String {
        let output = self.netfix(&["report", "--html", "page.html"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fs::read_to_string(self.folder.path().join("page.html")).unwrap()
    }
}
