//! Checkpoints that cannot be used, of pods that no generation has: netfix reports each with its pod, changes nothing of that
//! pod, and restores the others.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Node, Pod, kept};

fn rewrite(file: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(file).expect("the checkpoint");
    let mut value: Value = serde_json::from_str(&text).expect("the checkpoint is JSON");
    change(&mut value);
    fs::write(file, value.to_string()).expect("the checkpoint can be rewritten");
}

/// Sets a value of the pod's link, with the right checksum.
fn exaggerate(file: &Path, key: &str, value: &Value) {
    let mut stored = kept::json(&fs::read(file).expect("the checkpoint"));
    let links = stored["netfix"]["state"]["links"].as_array_mut();
    let mut links = links.expect("links").iter_mut();
    links.find(|link| link["name"] == "eth0").expect("eth0")[key] = value.clone();
    let text = kept::with_checksum(stored, "/netfix/checksum");
    fs::write(file, text).expect("the checkpoint can be rewritten");
}

/// Damages the checkpoint of a pod in the way that the pod's name says; returns the code of the error.
fn harm(file: &Path, pod: &Pod<'_>, way: &str) -> &'static str {
    let text = fs::read_to_string(file).expect("the checkpoint");
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "the checkpoint does not hold {from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let bytes = match way {
        "truncated" => text.as_bytes()[..text.len() / 2].to_vec(),
        "empty" => Vec::new(),
        // 0 and 1 differ in one bit: the file stays valid JSON with another MAC in it.
        "flipped" => {
            let flipped = pod.mac().replacen("02:00:00", "02:10:00", 1);
            assert!(text.contains(&pod.mac()), "no {} in it", pod.mac());
            text.replace(&pod.mac(), &flipped).into_bytes()
        }
        // It does not become a file of i40e_net_fix.
        "key" => replaced("\"netfix\"", "\"netfiy\""),
        "binary" => vec![0xff, 0xfe, 0, 1, 2, 3],
        "foreign" => br#"{"hello":"world","list":[1,2,3]}"#.to_vec(),
        _ => {
            return harm_the_value(file, way);
        }
    };
    fs::write(file, bytes).expect("a damaged checkpoint");
    "checkpoint-corrupt"
}

fn harm_the_value(file: &Path, way: &str) -> &'static str {
    match way {
        "origin" => rewrite(file, |value| {
            value["result"]["ips"][0]["address"] = json!("10.88.1.254/16");
        }),
        "newer" => rewrite(file, |value| value["netfix"]["schema"] = json!(99)),
        "unheard" => rewrite(file, |value| {
            value["netfix"] = json!({"schema": 99, "unheard": "of"});
        }),
        // More than a netlink message can hold.
        "alias" => exaggerate(file, "alias", &json!("a".repeat(70_000))),
        "names" => {
            let names: Vec<String> = (0..20_000).map(|at| format!("alt{at}")).collect();
            exaggerate(file, "altnames", &json!(names));
        }
        "link" => {
            let elsewhere = file.with_file_name("../elsewhere");
            fs::rename(file, &elsewhere).expect("the checkpoint moves away");
            std::os::unix::fs::symlink("../elsewhere", file).expect("a symbolic link");
            return "unreadable";
        }
        "missing" => {
            fs::remove_file(file).expect("the checkpoint goes");
            return "checkpoint-missing";
        }
        _ => panic!("no such damage: {way}"),
    }
    "checkpoint-corrupt"
}

/// A newer schema is refused as such, by its own message.
#[test]
fn each_checkpoint_that_cannot_be_used_is_reported_with_its_pod_and_the_others_are_restored() {
    let node = Node::new();
    let ways = [
        "truncated",
        "empty",
        "flipped",
        "key",
        "binary",
        "foreign",
        "origin",
        "newer",
        "unheard",
        "alias",
        "names",
        "link",
        "missing",
    ];
    let good = node.simple_pods(2);
    let bad = ways.map(|way| node.pod(way).simple());
    let before: Vec<_> = good.iter().map(Pod::capture).collect();
    node.snapshot();
    node.remove_generations();
    let codes: Vec<_> = bad
        .iter()
        .zip(ways)
        .map(|(pod, way)| harm(&node.checkpoint_of(pod), pod, way))
        .collect();
    node.lose_and_reload();
    let bare = bad.each_ref().map(Pod::capture);
    let errors: Vec<_> = codes
        .iter()
        .copied()
        .zip(bad.iter().map(Pod::name))
        .collect();
    for command in ["plan", "restore"] {
        let mut run = node.netfix_json(command).exits(5).errors(&errors);
        for (code, pod) in &errors {
            let folder = match *code {
                "checkpoint-missing" => "/run/netns",
                _ => "checkpoints",
            };
            run = run.names(code, pod, &[&format!("{folder}/{pod}")]);
        }
    }
    for (pod, bare) in bad.iter().zip(&bare) {
        bare.assert_same(&pod.capture(), pod.name());
    }
    for (pod, before) in good.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_namespace_that_is_gone_replaced_or_a_plain_file_gets_nothing_and_the_others_are_restored() {
    let node = Node::new();
    let pods = node.simple_pods(4);
    let [good, gone, replaced, file] = &pods[..] else {
        panic!("four pods");
    };
    let before = good.capture();
    node.snapshot();
    gone.ns.delete();
    node.lose_and_reload();
    replaced.ns.replace();
    file.ns.delete();
    fs::write(file.ns.path(), "").expect("a dead file in place of the namespace");
    let fresh = replaced.capture();
    let runs = ["plan", "restore"].map(|command| node.netfix_json(command));
    fs::remove_file(file.ns.path()).expect("the dead file goes");
    for run in runs {
        run.exits(5)
            .errors(&[("checkpoint-missing", replaced.name())])
            .names("netns-replaced", replaced.name(), &[])
            .names("netns-gone", gone.name(), &[])
            .names("netns-gone", file.name(), &[]);
    }
    assert!(!gone.ns.path().exists(), "it came back from the dead");
    fresh.assert_same(&replaced.capture(), "the new namespace");
    good.assert_same_as(&before);
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
