//! Exports to the code which source this build is of, for `env!`:
//!
//! - `NETFIX_BUILT_COMMIT`: the commit, such as `5d5c03e`; `unknown` without one
//! - `NETFIX_VERSION`: `0.1.0 (5d5c03e 2026-11-23)`, with the day of the commit
//!
//! From git where this folder is a checkout, else from the variable `NETFIX_COMMIT` of the build's environment, which holds the
//! commit and may hold its day: `NETFIX_COMMIT="5d5c03e 2026-11-23"`. That has another name than what is exported: cargo sets the
//! exported variables for tests, and a test that runs cargo would build everything anew, below the other tests.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NETFIX_COMMIT");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // A checkout around the folder of a packaged source has commits of something else.
    let of_git = folder.join(".git").exists().then(|| of_git(&folder));
    let commit = of_git
        .flatten()
        .or_else(|| env::var("NETFIX_COMMIT").ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "unknown".to_owned());
    let id = commit.split_whitespace().next().unwrap_or_default();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=NETFIX_BUILT_COMMIT={id}");
    println!("cargo::rustc-env=NETFIX_VERSION={version} ({commit})");
}

/// The commit that is checked out and its day; `None` where git does not run, or refuses a folder of another user.
fn of_git(folder: &Path) -> Option<String> {
    let commit = git(
        folder,
        &[
            "log",
            "-1",
            "--abbrev=7",
            "--format=%h %cd",
            "--date=format:%Y-%m-%d",
        ],
    )?;
    // Only what a commit or a checkout changes: cargo runs this build script again after every change of one of these files.
    let branch = git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    let mut files = vec!["HEAD", "logs/HEAD", "packed-refs"];
    files.extend(branch.as_deref());
    for file in files {
        let path = git(folder, &["rev-parse", "--git-path", file]).map(|path| folder.join(path));
        // A path that does not exist would count as changed each time.
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Some(commit)
}

/// What git prints, without the end of the line.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
