//! Checkpoints that cannot be used, of pods that no generation has: netfix reports each with its pod, changes nothing of that
//! pod, and restores the others.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Node, Pod, Run, kept};

/// Three pods, a snapshot, `harm` for the second one's checkpoint, the loss; then a restore that must be
/// incomplete.
fn restore_with_one_bad(code: &str, harm: impl Fn(&Path, &Pod<'_>)) -> Run {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.remove_generations();
    let file = node.checkpoint_of(&pods[1]);
    harm(&file, &pods[1]);
    node.lose_and_reload();
    let bare = pods[1].capture();
    let as_json = node.netfix_json("plan");
    let errors = [(code, pods[1].name())];
    let run = node.netfix("restore").exits(5).errors(&errors);
    bare.assert_same(&pods[1].capture(), "the pod without a usable checkpoint");
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
    as_json.exits(5).errors(&errors);
    let folder = match code {
        "checkpoint-missing" => "/run/netns",
        _ => "checkpoints",
    };
    let object = format!("{folder}/{}", pods[1].name());
    run.names(code, pods[1].name(), &[&object])
}

fn rewrite(file: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(file).expect("the checkpoint");
    let mut value: Value = serde_json::from_str(&text).expect("the checkpoint is JSON");
    change(&mut value);
    fs::write(file, value.to_string()).expect("the checkpoint can be rewritten");
}

#[test]
fn a_truncated_checkpoint_is_corrupt() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        let text = fs::read(file).expect("the checkpoint");
        fs::write(file, &text[..text.len() / 2]).expect("a shorter checkpoint");
    });
}

#[test]
fn an_empty_checkpoint_is_corrupt_and_not_missing() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        fs::write(file, "").expect("an empty checkpoint");
    });
}

#[test]
fn a_checkpoint_with_one_flipped_bit_is_corrupt() {
    restore_with_one_bad("checkpoint-corrupt", |file, pod| {
        // 0 and 1 differ in one bit: the file stays valid JSON with another MAC in it.
        let text = fs::read_to_string(file).expect("the checkpoint");
        let flipped = pod.mac().replacen("02:00:00", "02:10:00", 1);
        assert!(
            text.contains(&pod.mac()),
            "the checkpoint does not hold {}",
            pod.mac()
        );
        fs::write(file, text.replace(&pod.mac(), &flipped)).expect("a flipped checkpoint");
    });
}

#[test]
fn a_flipped_bit_in_the_keys_of_i40e_net_fix_is_damage_too() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        rewrite(file, |value| {
            value["result"]["ips"][0]["address"] = json!("10.88.1.254/16");
        });
    });
}

#[test]
fn a_flipped_bit_in_the_name_of_our_key_does_not_turn_it_into_a_file_of_i40e_net_fix() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        let text = fs::read_to_string(file).expect("the checkpoint");
        fs::write(file, text.replacen("\"netfix\"", "\"netfiy\"", 1))
            .expect("a flipped checkpoint");
    });
}

#[test]
fn a_checkpoint_that_is_not_text_is_corrupt() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        fs::write(file, [0xff, 0xfe, 0, 1, 2, 3]).expect("a binary file");
    });
}

#[test]
fn json_that_is_not_a_checkpoint_is_corrupt() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        fs::write(file, r#"{"hello":"world","list":[1,2,3]}"#).expect("a foreign file");
    });
}

#[test]
fn a_checkpoint_of_a_newer_schema_is_refused_as_newer_not_as_damaged() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        rewrite(file, |value| value["netfix"]["schema"] = json!(99));
    });
}

#[test]
fn a_newer_schema_with_unknown_contents_is_refused_as_newer() {
    restore_with_one_bad("checkpoint-corrupt", |file, _| {
        rewrite(file, |value| {
            value["netfix"] = json!({"schema": 99, "unheard": "of"});
        });
    });
}

#[test]
fn a_checkpoint_that_is_a_symbolic_link_is_not_followed() {
    restore_with_one_bad("unreadable", |file, _| {
        let elsewhere = file.with_file_name("../elsewhere");
        fs::rename(file, &elsewhere).expect("the checkpoint moves away");
        std::os::unix::fs::symlink("../elsewhere", file).expect("a symbolic link");
    });
}

#[test]
fn a_missing_checkpoint_is_missing() {
    restore_with_one_bad("checkpoint-missing", |file, _| {
        fs::remove_file(file).expect("the checkpoint goes");
    });
}

#[test]
fn a_namespace_that_is_gone_is_reported_and_the_others_are_restored() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    pods[1].ns.delete();
    node.lose_and_reload();
    node.netfix_json("plan")
        .exits(0)
        .names("netns-gone", pods[1].name(), &[]);
    node.netfix("restore")
        .exits(0)
        .names("netns-gone", pods[1].name(), &[]);
    assert!(
        !pods[1].ns.path().exists(),
        "the namespace came back from the dead"
    );
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
}

#[test]
fn a_new_namespace_at_the_old_path_gets_nothing_of_the_old_one() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose_and_reload();
    pods[1].ns.replace();
    let fresh = pods[1].capture();
    let errors = [("checkpoint-missing", pods[1].name())];
    for words in ["plan -o json", "restore"] {
        node.netfix(words)
            .exits(5)
            .errors(&errors)
            .names("netns-replaced", pods[1].name(), &[]);
    }
    fresh.assert_same(&pods[1].capture(), "the new namespace");
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
}

#[test]
fn a_path_that_is_a_plain_file_is_reported() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[0].capture();
    node.snapshot();
    node.lose_and_reload();
    pods[1].ns.delete();
    fs::write(pods[1].ns.path(), "").expect("a dead file in place of the namespace");
    let run = node.netfix("restore");
    fs::remove_file(pods[1].ns.path()).expect("the dead file goes");
    run.exits(0).names("netns-gone", pods[1].name(), &[]);
    pods[0].assert_same_as(&before);
}

/// Runs a restore on a machine where the file `path` has another content.
fn restore_where(path: &str, code: &str) {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    node.netfix_elsewhere(path, "restore").exits(4).errors(&[
        (code, pods[0].name()),
        (code, pods[1].name()),
        ("checkpoint-missing", pods[0].name()),
        ("checkpoint-missing", pods[1].name()),
    ]);
    assert!(
        pods.iter().all(|pod| !pod.has_eth0()),
        "something was restored from another {code}"
    );
}

#[test]
fn checkpoints_of_another_boot_are_refused() {
    restore_where("/proc/sys/kernel/random/boot_id", "other-boot");
}

#[test]
fn checkpoints_of_another_machine_are_refused() {
    assert!(
        Path::new("/etc/machine-id").exists(),
        "this machine has no /etc/machine-id to differ from"
    );
    restore_where("/etc/machine-id", "other-machine");
}

#[test]
fn more_than_a_netlink_message_can_hold_is_refused_with_the_right_checksum_too() {
    let names: Vec<String> = (0..20_000).map(|at| format!("alt{at}")).collect();
    for (key, value) in [
        ("alias", json!("a".repeat(70_000))),
        ("altnames", json!(names)),
    ] {
        restore_with_one_bad("checkpoint-corrupt", |file, _| {
            let mut stored = kept::json(&fs::read(file).expect("the checkpoint"));
            let links = stored["netfix"]["state"]["links"].as_array_mut();
            let mut links = links.expect("links").iter_mut();
            links.find(|link| link["name"] == "eth0").expect("eth0")[key] = value.clone();
            let text = kept::with_checksum(stored, "/netfix/checksum");
            fs::write(file, text).expect("the checkpoint can be rewritten");
        });
    }
}
