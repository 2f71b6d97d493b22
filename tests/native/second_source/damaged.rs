//! Cache files that cannot be used: netfix reports them and restores the other pods.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::{Subject, restore, words};
use crate::common::Node;

/// The ways to damage an entry; the code of its error; a word of the message.
const WAYS: [(&str, &str, &str); 10] = [
    ("empty", "checkpoint-corrupt", "empty"),
    ("cut", "checkpoint-corrupt", "EOF"),
    ("config", "checkpoint-corrupt", "type"),
    ("base64", "checkpoint-corrupt", "base64"),
    ("kind", "checkpoint-corrupt", "cniCacheV9"),
    ("result", "checkpoint-corrupt", "result"),
    ("ifname", "checkpoint-corrupt", "interface"),
    ("open", "checkpoint-corrupt", "root"),
    ("link", "unreadable", "symbolic link"),
    ("pipe", "checkpoint-corrupt", "regular file"),
];

fn harm(it: &Subject<'_>, way: &str) {
    let entry = &it.attached[0];
    let text = entry.text();
    let broken = |key: &str, value: Value| {
        let mut document: Value = serde_json::from_str(&text).expect("JSON");
        document[key] = value;
        entry.overwrite(&document.to_string());
    };
    match way {
        "empty" => entry.overwrite(""),
        "cut" => entry.overwrite(&text[..text.len() * 2 / 3]),
        "config" => broken("config", json!("e30=")),
        "base64" => broken("config", json!("%%%")),
        "kind" => broken("kind", json!("cniCacheV9")),
        "result" => broken("result", json!({"ips": [{"address": "10.0.0.256/8"}]})),
        "ifname" => broken("ifName", json!("../../etc")),
        "open" => {
            let mode = Permissions::from_mode(0o666);
            fs::set_permissions(&entry.file, mode).expect("its mode");
        }
        "link" => {
            fs::remove_file(&entry.file).expect("the file");
            symlink("/etc/hostname", &entry.file).expect("a link");
        }
        "pipe" => {
            fs::remove_file(&entry.file).expect("the file");
            mkfifo(&entry.file, Mode::S_IRUSR).expect("a FIFO");
        }
        _ => panic!("no such damage: {way}"),
    }
}

/// The entry of the last pod leads to a pipe instead of a namespace.
#[test]
fn each_entry_that_cannot_be_used_is_reported_and_the_other_pods_are_restored() {
    let node = Node::new();
    let good = Subject::plain(&node, "good", &["10.88.2.1/16"]);
    let bad: Vec<_> = (10..)
        .zip(WAYS)
        .map(|(number, (way, ..))| Subject::plain(&node, way, &[&format!("10.88.2.{number}/16")]))
        .collect();
    for (it, (way, ..)) in bad.iter().zip(WAYS) {
        harm(it, way);
    }
    let pipe = node.temp().join("a-pipe");
    mkfifo(&pipe, Mode::S_IRUSR).expect("a FIFO");
    let mut lost = Subject::plain(&node, "lost", &["10.88.2.9/16"]);
    lost.attached[0].cached.result["interfaces"][0]["sandbox"] = json!(pipe);
    lost.attached[0].write();
    node.lose_and_reload();
    let missing = bad.iter().chain([&lost]);
    let mut errors: Vec<_> = missing
        .map(|it| ("checkpoint-missing", it.pod.name()))
        .collect();
    errors.extend([("checkpoint-corrupt", ""), ("unreadable", "")]);
    // Also on a second run, when nothing of the good one is lost.
    for _ in 0..2 {
        let run = node.netfix_json(&words(&node, "restore")).exits(5);
        let mut run = run.errors(&errors).lacks("panicked");
        for (it, (_, code, word)) in bad.iter().zip(WAYS) {
            let file = it.attached[0].file.file_name().expect("a name");
            run = run.names(code, "", &[&file.to_string_lossy(), word]);
        }
        good.assert_back(&run);
    }
    let has_eth0 = bad.iter().chain([&lost]).any(|it| it.pod.has_eth0());
    assert!(!has_eth0, "something was made of a damaged entry");
}

#[test]
fn if_every_file_is_damaged_the_command_fails() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    it.attached[0].overwrite("");
    node.lose_and_reload();
    restore(&node).exits(1).errors(&[
        ("checkpoint-corrupt", ""),
        ("checkpoint-missing", ""),
        ("checkpoint-missing", it.pod.name()),
    ]);
}
