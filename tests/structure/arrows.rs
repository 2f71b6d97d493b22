//! Which part of `src` may use which, and which parts only compute.

use std::collections::BTreeSet;

use super::source::{Source, sources};

/// A part of `src`, and the parts that it may use.
type Arrows = (&'static str, &'static [&'static str]);

/// Small shared parts that every engine may use.
const SHARED: &[&str] = &[
    "checked",
    "clock",
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
    ("clock", &[]),
    ("fault", &[]),
    ("side_by_side", &["fault"]),
    (
        "kernel",
        &["checked", "clock", "fault", "model", "side_by_side"],
    ),
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
        "situation",
        &["inventory", "matching", "plan", "records", "store"],
    ),
    (
        "restore",
        &[
            "inventory",
            "matching",
            "plan",
            "records",
            "situation",
            "store",
        ],
    ),
    (
        "snapshot",
        &["inventory", "matching", "plan", "records", "store"],
    ),
    (
        "rehearsal",
        &[
            "inventory",
            "matching",
            "plan",
            "records",
            "restore",
            "situation",
        ],
    ),
    (
        "check",
        &[
            "inventory",
            "matching",
            "plan",
            "records",
            "rehearsal",
            "restore",
            "snapshot",
            "situation",
            "store",
        ],
    ),
    (
        "window",
        &[
            "check",
            "gateways",
            "inventory",
            "matching",
            "plan",
            "records",
            "restore",
            "situation",
            "store",
        ],
    ),
    ("kubelet", &["inventory", "store", "window"]),
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
            "rehearsal",
            "restore",
            "snapshot",
            "situation",
            "store",
            "window",
        ],
    ),
    (
        "guard",
        &[
            "inventory",
            "kubelet",
            "matching",
            "plan",
            "records",
            "restore",
            "situation",
            "store",
            "upgrade",
            "window",
        ],
    ),
];

/// Parts that no part below them may use.
const ABOVE: &[&str] = &["cli", "commands", "fuzzing", "main", "report"];

/// Parts that only compute: no file, process, socket, clock, or state that outlives a call.
const PURE: &[&str] = &["matching", "model", "plan"];
/// Single files that only compute. They use only parts that do.
const PURE_FILES: &[&str] = &[
    "guard/decide.rs",
    "guard/judge.rs",
    "guard/pace.rs",
    "guard/sight.rs",
    "rehearsal/compare.rs",
    "rehearsal/survivors.rs",
    "snapshot/decide.rs",
    "snapshot/facts.rs",
    "snapshot/host_state.rs",
];
/// What a pure file has of these all the same. Equal settings share their memory, on which no result depends.
const EXCEPTIONS: &[&str] = &["model/net/link/settings.rs: thread_local!"];
const IMPURE: &[&str] = &[
    "std::fs",
    "std::process",
    "std::net::Tcp",
    "std::net::Udp",
    "std::os::unix::net",
    "std::thread",
    "thread_local!",
    "OnceLock",
    "OnceCell",
    "static mut",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "clock_gettime",
    "tokio",
    "rtnetlink",
    "use nix::",
    "libc::",
    "zbus",
];

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
    for source in sources() {
        let Source { name, part, .. } = &source;
        if ABOVE.contains(&&**part) || part == "lib" {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| known == part) else {
            wrong.push(format!("{name}: {part} has no place in the map"));
            continue;
        };
        let is_engine = allowed.contains(&"inventory") || part == "inventory";
        for used in used(&source.code()).iter().filter(|used| *used != part) {
            let shared = is_engine && (SHARED.contains(&&**used) || CLIENTS.contains(&&**used));
            if !allowed.contains(&&**used) && !shared {
                wrong.push(format!("{name}: {part} must not use {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files of which `is_there` holds, each with the forbidden words that its code has.
fn with_words(is_there: impl Fn(&Source) -> bool, words: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| is_there(source)) {
        let code = source.code();
        let found = words.iter().filter(|word| code.contains(**word));
        wrong.extend(found.map(|word| format!("{}: {word}", source.name)));
    }
    wrong
}

#[test]
fn only_main_and_commands_use_the_command_line() {
    let mut wrong = Vec::new();
    for source in sources() {
        let used = used(&source.code());
        let is_above = ["cli", "commands", "lib", "main"].contains(&&*source.part);
        if !is_above && (used.contains("cli") || used.contains("commands")) {
            wrong.push(source.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_parts_do_no_input_or_output() {
    let is_single = |source: &Source| PURE_FILES.contains(&&*source.name);
    let is_pure = |source: &Source| is_single(source) || PURE.contains(&&*source.part);
    let mut wrong = with_words(is_pure, IMPURE);
    wrong.retain(|one| !EXCEPTIONS.contains(&&**one));
    let sources = sources();
    let single: Vec<_> = sources.iter().filter(|source| is_single(source)).collect();
    for source in &single {
        let used = used(&source.code());
        let others = used.iter().filter(|used| !PURE.contains(&&***used));
        wrong.extend(others.map(|used| format!("{}: {used}", source.name)));
    }
    assert_eq!(single.len(), PURE_FILES.len(), "a pure file is missing");
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
    let wrong = with_words(|source| source.part != "kernel", &words);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
