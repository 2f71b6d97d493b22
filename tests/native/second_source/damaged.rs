//! Cache files that cannot be used: netfix reports them and restores the other pods.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

use super::{Subject, restore};
use crate::common::Node;

/// Two pods; `harm` changes the cache entry of one.
fn is_named(damage: impl Fn(&Subject<'_>), code: &str, words: &[&str]) {
    let node = Node::new();
    let (bad, good) = (
        Subject::plain(&node, "bad", &["10.88.2.10/16"]),
        Subject::plain(&node, "good", &["10.88.2.20/16"]),
    );
    damage(&bad);
    node.lose_and_reload();
    let file = bad.attached[0]
        .file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let errors = [(code, ""), ("checkpoint-missing", bad.pod.name())];
    let run = restore(&node)
        .exits(5)
        .errors(&errors)
        .names(code, "", &[&[&*file], words].concat())
        .lacks("panicked");
    good.assert_back(&run);
    assert!(!bad.pod.has_eth0(), "{}", run.transcript());
    // Also on a second run, and if nothing is lost.
    let run = restore(&node).exits(5).errors(&errors);
    run.names(code, "", &[&[&*file], words].concat());
}

#[test]
fn an_empty_file_is_reported_and_the_other_pods_are_restored() {
    is_named(
        |it| it.attached[0].overwrite(""),
        "checkpoint-corrupt",
        &["empty"],
    );
}

#[test]
fn a_truncated_file_is_reported_and_the_other_pods_are_restored() {
    let cut = |it: &Subject<'_>| {
        let text = it.attached[0].text();
        it.attached[0].overwrite(&text[..text.len() * 2 / 3]);
    };
    is_named(cut, "checkpoint-corrupt", &["EOF"]);
}

#[test]
fn an_invalid_configuration_is_reported() {
    let broken = |key: &'static str, value: serde_json::Value| {
        move |it: &Subject<'_>| {
            let mut entry: serde_json::Value =
                serde_json::from_str(&it.attached[0].text()).expect("JSON");
            entry[key] = value.clone();
            it.attached[0].overwrite(&entry.to_string());
        }
    };
    is_named(
        broken("config", json!("e30=")),
        "checkpoint-corrupt",
        &["type"],
    );
    is_named(
        broken("config", json!("%%%")),
        "checkpoint-corrupt",
        &["base64"],
    );
    is_named(
        broken("kind", json!("cniCacheV9")),
        "checkpoint-corrupt",
        &["cniCacheV9"],
    );
    is_named(
        broken("result", json!({"ips": [{"address": "10.0.0.256/8"}]})),
        "checkpoint-corrupt",
        &["result"],
    );
    is_named(
        broken("ifName", json!("../../etc")),
        "checkpoint-corrupt",
        &["interface"],
    );
}

#[test]
fn files_writable_by_other_users_are_reported() {
    let open = |it: &Subject<'_>| {
        fs::set_permissions(&it.attached[0].file, Permissions::from_mode(0o666)).expect("its mode");
    };
    is_named(open, "checkpoint-corrupt", &["root"]);
    let linked = |it: &Subject<'_>| {
        let file = &it.attached[0].file;
        let moved = file.with_extension("moved");
        fs::rename(file, &moved)
            .and_then(|()| symlink("/etc/hostname", file))
            .expect("a link");
        fs::remove_file(moved).expect("the file");
    };
    is_named(linked, "unreadable", &["symbolic link"]);
    let pipe = |it: &Subject<'_>| {
        let file = &it.attached[0].file;
        fs::remove_file(file).expect("the file");
        mkfifo(file, Mode::S_IRUSR).expect("a FIFO");
    };
    is_named(pipe, "checkpoint-corrupt", &["regular file"]);
}

#[test]
fn a_path_to_a_pipe_does_not_block_the_others() {
    let node = Node::new();
    let pipe = node.temp().join("pipe");
    mkfifo(&pipe, Mode::S_IRUSR).expect("a FIFO");
    let good = Subject::plain(&node, "good", &["10.88.2.10/16"]);
    let mut bad = Subject::plain(&node, "bad", &["10.88.2.20/16"]);
    bad.attached[0].cached.result["interfaces"][0]["sandbox"] = json!(pipe);
    bad.attached[0].write();
    node.lose_and_reload();
    let run = restore(&node)
        .exits(5)
        .errors(&[("checkpoint-missing", bad.pod.name())]);
    good.assert_back(&run);
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
