//! Directories of `testdata` with one case each: `case.json`, and files with the expected results.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// Every case below `testdata/NAME`, with its directory, sorted by name.
pub fn read<T: DeserializeOwned>(name: &str) -> Vec<(PathBuf, T)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    let mut folders: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let case = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("case.json")).unwrap();
        let case =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        (folder, case)
    };
    folders.into_iter().map(case).collect()
}

/// Compares the result of each case with its file `name`; with `NETFIX_BLESS` in the environment, writes the file.
pub fn compare<T>(
    cases: &[(PathBuf, T)],
    name: &str,
    why: impl Fn(&T) -> &str,
    answer: impl Fn(&T) -> String,
) {
    let bless = std::env::var_os("NETFIX_BLESS").is_some();
    let mut wrong = Vec::new();
    for (folder, case) in cases {
        assert!(
            !why(case).is_empty(),
            "{} has no reason to exist",
            folder.display()
        );
        let answer = answer(case);
        let expected = folder.join(name);
        if bless {
            fs::write(&expected, &answer).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != answer {
            wrong.push(format!("{} ({}):\n{answer}", folder.display(), why(case)));
        }
    }
    assert!(
        wrong.is_empty(),
        "these differ from {name}:\n{}",
        wrong.join("\n")
    );
}
