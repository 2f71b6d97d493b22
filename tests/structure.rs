//! The arrows between the parts of `src`, as docs/architecture.md draws them: which part may use which. And the links of the documents.

#![allow(clippy::expect_used, reason = "a test that cannot read src fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A part of `src`, and the parts that it may use.
type Arrows = (&'static str, &'static [&'static str]);

/// Small shared parts that every engine may use.
const SHARED: &[&str] = &[
    "checked",
    "context",
    "fault",
    "journal",
    "model",
    "progress",
    "refusal",
    "side_by_side",
];
/// The parts that use the kernel, runtimes, systemd and disks.
const CLIENTS: &[&str] = &["cni", "kernel", "managers", "runtime", "systemd"];

const ARROWS: &[Arrows] = &[
    ("model", &[]),
    ("plan", &["model"]),
    ("matching", &["model", "plan"]),
    ("cni", &["model"]),
    ("checked", &[]),
    ("fault", &[]),
    ("side_by_side", &["fault"]),
    ("kernel", &["checked", "fault", "model", "side_by_side"]),
    ("runtime", &["fault", "kernel", "model"]),
    ("dbus", &["fault", "model"]),
    ("systemd", &["dbus", "fault", "model"]),
    ("managers", &["checked", "dbus", "model"]),
    ("store", &["fault", "model", "side_by_side"]),
    ("refusal", &["model", "store"]),
    ("progress", &["model"]),
    ("journal", &["kernel", "model", "plan"]),
    ("context", &["progress", "store"]),
    ("inventory", &["matching", "plan", "store"]),
    ("records", &["inventory", "matching", "plan", "store"]),
    (
        "gateways",
        &["inventory", "matching", "plan", "records", "store"],
    ),
    (
        "restore",
        &["inventory", "matching", "plan", "records", "store"],
    ),
    (
        "snapshot",
        &["inventory", "matching", "plan", "records", "store"],
    ),
    (
        "check",
        &[
            "inventory",
            "matching",
            "plan",
            "records",
            "restore",
            "snapshot",
            "store",
        ],
    ),
    ("window", &["inventory", "matching", "records", "store"]),
    ("kubelet", &["inventory", "store", "upgrade", "window"]),
    (
        "upgrade",
        &[
            "check",
            "gateways",
            "inventory",
            "kubelet",
            "matching",
            "plan",
            "records",
            "restore",
            "snapshot",
            "store",
            "window",
        ],
    ),
];

/// Parts that no part below them may use.
const ABOVE: &[&str] = &["cli", "commands", "fuzzing", "main", "report"];

/// Parts that only compute: no file, process, socket or clock.
const PURE: &[&str] = &["matching", "model", "plan"];
/// Single files that only compute. They use only parts that do.
const PURE_FILES: &[&str] = &[
    "snapshot/decide.rs",
    "snapshot/facts.rs",
    "snapshot/host_state.rs",
];
const IMPURE: &[&str] = &[
    "std::fs",
    "std::process",
    "std::net::Tcp",
    "std::net::Udp",
    "std::os::unix::net",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "tokio",
    "rtnetlink",
    "use nix::",
    "libc::",
    "zbus",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The code of a file: without comments, and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let text = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines()
        .filter(is_code)
        .fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        })
}

/// Every source file with its path below `src` and the part that it belongs to.
fn files() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    assert!(paths.len() > 50, "src was not found: {}", paths.len());
    let file = |path: PathBuf| {
        let name = path
            .strip_prefix(&root)
            .expect("below src")
            .display()
            .to_string();
        let part = name
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs")
            .to_owned();
        (name, part, code(&path))
    };
    paths.into_iter().map(file).collect()
}

/// The parts that a file names: `crate::PART` and each part of `crate::{PART, …}`.
fn used(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut parts = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            parts.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begin = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begin = true,
                _ if begin && !c.is_whitespace() => {
                    parts.insert(word(&group[at..]));
                    begin = false;
                }
                _ => {}
            }
        }
    }
    parts.retain(|part| part.chars().next().is_some_and(char::is_lowercase));
    parts
}

#[test]
fn every_part_uses_only_parts_below_it() {
    let mut wrong = Vec::new();
    for (name, part, code) in files() {
        if ABOVE.contains(&&*part) || part == "lib" {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == part) else {
            wrong.push(format!("{name}: {part} has no place in the map"));
            continue;
        };
        let is_engine = allowed.contains(&"inventory") || part == "inventory";
        for used in used(&code).into_iter().filter(|used| *used != part) {
            let shared = is_engine && (SHARED.contains(&&*used) || CLIENTS.contains(&&*used));
            if !allowed.contains(&&*used) && !shared {
                wrong.push(format!("{name}: {part} must not use {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_main_and_commands_use_the_command_line() {
    let wrong: Vec<String> = files()
        .into_iter()
        .filter(|(_, part, _)| !["cli", "commands", "lib", "main"].contains(&&**part))
        .filter(|(_, _, code)| {
            used(code)
                .iter()
                .any(|part| part == "cli" || part == "commands")
        })
        .map(|(name, ..)| name)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_parts_do_no_input_or_output() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, part, code) in files() {
        let is_single = PURE_FILES.contains(&&*name);
        if !is_single && !PURE.contains(&&*part) {
            continue;
        }
        let found = IMPURE.iter().filter(|word| code.contains(**word));
        wrong.extend(found.map(|word| format!("{name}: {word}")));
        if is_single {
            seen += 1;
            let used = used(&code).into_iter();
            let others = used.filter(|used| !PURE.contains(&&**used));
            wrong.extend(others.map(|used| format!("{name}: {used}")));
        }
    }
    assert_eq!(seen, PURE_FILES.len(), "a pure file is missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_kernel_uses_netlink_and_enters_namespaces() {
    let words = [
        "netlink_packet_route",
        "netlink_packet_core",
        "netlink_sys",
        "rtnetlink",
        "setns(",
    ];
    let mut wrong = Vec::new();
    for (name, _, code) in files().iter().filter(|(_, part, _)| part != "kernel") {
        let found = words.iter().filter(|word| code.contains(**word));
        wrong.extend(found.map(|word| format!("{name}: {word}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_small() {
    const MOST: usize = 450;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let lines = |path: &PathBuf| fs::read_to_string(path).expect("a file").lines().count();
    let large: Vec<String> = paths
        .iter()
        .filter(|path| lines(path) > MOST)
        .map(|path| format!("{}: {} lines", path.display(), lines(path)))
        .collect();
    assert!(large.is_empty(), "{}", large.join("\n"));
}

#[test]
fn every_native_test_that_a_virtual_machine_runs_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let scenario = root.join("vm/scenarios/native.sh");
    let scenario = fs::read_to_string(scenario).expect("the scenario");
    let names = scenario
        .lines()
        .filter_map(|line| line.trim().split_once("::"));
    let exists = |(module, name): &(&str, &str)| {
        let file = root.join("native").join(format!("{module}.rs"));
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("\nfn {name}()"))
    };
    let (found, missing): (Vec<_>, Vec<_>) = names.partition(exists);
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!found.is_empty(), "the scenario names no test");
}

/// The documents that readers start from, and what they link to.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("docs")).expect("docs").flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.push(root.join("README.md"));
    paths.push(root.join("contrib/kubernetes/README.md"));
    paths
}

/// The text without code blocks, whose `#` and brackets are not Markdown.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let outside = text.split("```").step_by(2);
    outside.collect()
}

/// The anchors of the headings, as GitHub and Forgejo make them.
fn anchors(path: &Path) -> BTreeSet<String> {
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let text: String = heading.trim().chars().filter(kept).collect();
        text.to_lowercase().replace(' ', "-")
    };
    let text = prose(path);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// The targets of `[text](target)`.
fn targets(text: &str) -> Vec<&str> {
    let starts = text.split("](").skip(1);
    starts.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = prose(&path);
        for target in targets(&text) {
            if target.contains("://") {
                continue;
            }
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let other = match file {
                "" => path.clone(),
                file => path.with_file_name(file),
            };
            if !other.exists() || !(anchor.is_empty() || anchors(&other).contains(anchor)) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} links were found");
}

/// A collection has no link to a file outside of it.
#[test]
fn the_role_of_ansible_has_the_units_of_the_packages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let units = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).expect("a folder").flatten();
        let texts = entries.map(|entry| {
            (
                entry.file_name(),
                fs::read_to_string(entry.path()).expect("a unit"),
            )
        });
        texts.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(
        units("contrib/ansible/roles/netfix/files"),
        units("contrib/systemd"),
        "copy contrib/systemd to contrib/ansible/roles/netfix/files"
    );
}
