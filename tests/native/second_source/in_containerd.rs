//! A runtime that identifies the namespaces, against cache entries and files that contradict it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::cri::PodSpec;
use crate::common::{CriNode, CriPod, Run};

const CRI: &str = "--runtime cri --runtime-endpoint unix:///run/containerd/containerd.sock";

fn restore(node: &CriNode) -> Run {
    node.netfix(&format!("restore --source cni-cache {CRI} -o json"))
}

fn entry_of(node: &CriNode, pod: &CriPod) -> (PathBuf, Value) {
    let file = node.cached(pod).file;
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    (
        file,
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}")),
    )
}

/// The severities of the problems with one code that name the pod.
fn severities(run: &Run, code: &str, pod: &CriPod) -> Vec<String> {
    let of_pod = run
        .coded(code)
        .into_iter()
        .filter(|problem| problem.pod.as_deref() == Some(pod.short_id()));
    of_pod.map(|problem| problem.severity).collect()
}

/// The name of an entry as it would be for another sandbox.
fn renamed(file: &Path, pod: &CriPod, sandbox: &str) -> String {
    let name = file.file_name().expect("a name").to_string_lossy();
    name.replace(&pod.sandbox.id, sandbox)
}

/// The second pod has no entry, and a stale one of another sandbox has its path.
fn make_stale(node: &CriNode, [kept, robbed]: [&CriPod; 2], former: &str) {
    let (_, mut stale) = entry_of(node, kept);
    let (file, own) = entry_of(node, robbed);
    fs::remove_file(&file).expect("the pod's entry");
    stale["containerId"] = json!(former);
    stale["cniArgs"] = json!([["K8S_POD_NAME", "web-old"]]);
    stale["result"]["ips"] = json!([{"address": "10.88.9.9/16", "interface": 0}]);
    stale["result"]["interfaces"] = own["result"]["interfaces"].clone();
    let stale_file = file.with_file_name(renamed(&file, robbed, former));
    fs::write(stale_file, stale.to_string()).expect("a stale entry");
}

#[test]
fn entries_of_other_and_former_sandboxes_are_skipped_and_a_truncated_one_is_its_pods() {
    let node = CriNode::new();
    let mut pods = node.pods(4);
    let gone = pods.pop().expect("a pod");
    let [kept, robbed, cut] = &pods[..] else {
        panic!("three pods");
    };
    make_stale(&node, [kept, robbed], &"f".repeat(64));
    // A truncated entry, and an empty one of a former sandbox.
    let (file, entry) = entry_of(&node, cut);
    let text = entry.to_string();
    fs::write(&file, &text[..text.len() / 2]).expect("half of it");
    let name = renamed(&file, cut, &cut.sandbox.id);
    let former = renamed(&file, cut, &"e".repeat(64));
    fs::write(file.with_file_name(&former), "").expect("an empty entry");
    // The entry of a pod that is gone, as a failed DEL leaves it.
    let (file, entry) = entry_of(&node, &gone);
    node.remove(gone);
    fs::write(&file, entry.to_string()).expect("its entry");
    let before = node.capture(kept);
    node.node.lose_and_reload();
    let bare = node.capture(robbed);
    let run = restore(&node).exits(5);
    for (code, pod, expected) in [
        ("pod-replaced", robbed, &["info"][..]),
        ("checkpoint-missing", robbed, &["error"]),
        ("checkpoint-corrupt", cut, &["error"]),
        // It is not reported twice.
        ("checkpoint-missing", cut, &[]),
    ] {
        let found = severities(&run, code, pod);
        assert_eq!(found, expected, "{code}\n{}", run.transcript());
    }
    for (object, severity) in [(name, "error"), (former, "info")] {
        let corrupt = run.coded("checkpoint-corrupt");
        let found = corrupt.iter().find(|problem| problem.object == object);
        let found = found.map(|problem| &*problem.severity);
        assert_eq!(found, Some(severity), "{object}\n{}", run.transcript());
    }
    let gone = run.coded("netns-gone");
    assert!(
        gone.len() == 1 && gone[0].severity == "info",
        "{}",
        run.transcript()
    );
    bare.assert_same(&node.capture(robbed), &robbed.transcript());
    let addresses = [before, node.capture(kept)].map(|it| it.link("eth0")["addr_info"].clone());
    assert_eq!(addresses[0], addresses[1], "{}", run.transcript());
    assert!(!cut.ns.has_link("eth0"));
    node.netfix(&format!(
        "restore --source cni-cache {CRI} --pod {}",
        kept.short_id()
    ))
    .exits(0);
    node.assert_cni_check(&pods[..1]);
}

fn i40e_net_fix_file(pod: &CriPod, sandbox: &str, pid: u32) -> Value {
    let netns = format!("/proc/{pid}/ns/net");
    json!({
        "netns": netns, "podname": pod.sandbox.name, "sandbox": sandbox, "ifname": "eth0",
        "result": {
            "interfaces": [{"name": "eth0", "mac": "6e:92:1a:b4:fc:34", "sandbox": netns}],
            "ips": [{"version": "4", "interface": 0, "address": "10.88.9.9/16"}], "routes": [], "dns": {},
        },
    })
}

#[test]
fn a_file_of_i40e_net_fix_whose_pid_belongs_to_another_pod_now_is_neither_imported_nor_restored() {
    let node = CriNode::new();
    let pod = node.run(PodSpec::new(
        "shop",
        "web-0",
        "0b8c61d2-1111-4000-8000-000000000001",
    ));
    let folder = node.node.temp().join("origin");
    fs::create_dir(&folder).expect("the directory of i40e_net_fix");
    // Its pid belongs to the running pod, as after a reuse; its sandbox does not.
    let former = "06c9b8d0a800735982222588c28e70140820acfd04a120264b87a20306322f55";
    let text = i40e_net_fix_file(&pod, former, pod.sandbox.pid).to_string();
    fs::write(folder.join(&former[..12]), &text).expect("the file of i40e_net_fix");
    let run = node
        .netfix(&format!("import {} {CRI} -o json", folder.display()))
        .exits(1);
    run.errors(&[("pod-replaced", &former[..12])]).names(
        "pod-replaced",
        &former[..12],
        &[&pod.sandbox.id, former],
    );
    let stored = node
        .node
        .state_dir()
        .join("checkpoints")
        .join(&former[..12]);
    assert!(!stored.exists(), "it was imported");
    fs::write(&stored, text).expect("a file put there by hand");
    node.node.lose_and_reload();
    let bare = node.capture(&pod);
    node.netfix(&format!("restore --source checkpoints --parent eth0 {CRI}"))
        .exits(1)
        .errors(&[("checkpoint-missing", pod.short_id())])
        .names("pod-replaced", &former[..12], &[&pod.sandbox.id]);
    bare.assert_same(&node.capture(&pod), &pod.transcript());
}
