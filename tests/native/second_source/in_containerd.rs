//! A runtime that identifies the namespaces, against cache entries and files that contradict it.

use std::fs;
use std::path::PathBuf;

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

fn two_pods(node: &CriNode) -> [CriPod; 2] {
    node.pods(2)
        .try_into()
        .unwrap_or_else(|_| panic!("two pods"))
}

/// The severities of the problems with one code that name the pod.
fn severities(run: &Run, code: &str, pod: &CriPod) -> Vec<String> {
    let of_pod = run
        .coded(code)
        .into_iter()
        .filter(|problem| problem.pod.as_deref() == Some(pod.short_id()));
    of_pod.map(|problem| problem.severity).collect()
}

#[test]
fn an_entry_whose_path_leads_to_another_sandbox_is_skipped() {
    let node = CriNode::new();
    let pods = two_pods(&node);
    // The second pod has no entry, and a stale entry has its path: nothing of the stale one may reach it.
    let (_, mut stale) = entry_of(&node, &pods[0]);
    let (file, own) = entry_of(&node, &pods[1]);
    fs::remove_file(&file).expect("the second pod's entry");
    let former = "f".repeat(64);
    stale["containerId"] = json!(former);
    stale["cniArgs"] = json!([["K8S_POD_NAME", "web-old"]]);
    stale["result"]["ips"] = json!([{"address": "10.88.9.9/16", "interface": 0}]);
    stale["result"]["interfaces"] = own["result"]["interfaces"].clone();
    let name = file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .replace(&pods[1].sandbox.id, &former);
    fs::write(file.with_file_name(name), stale.to_string()).expect("a stale entry");
    let before = node.capture(&pods[0]);
    node.node.lose_and_reload();
    let bare = node.capture(&pods[1]);
    let run = restore(&node).exits(5);
    assert_eq!(
        severities(&run, "pod-replaced", &pods[1]),
        ["info"],
        "{}",
        run.transcript()
    );
    assert_eq!(
        severities(&run, "checkpoint-missing", &pods[1]),
        ["error"],
        "{}",
        run.transcript()
    );
    bare.assert_same(&node.capture(&pods[1]), &pods[1].transcript());
    let [kept, changed] =
        [before, node.capture(&pods[0])].map(|it| it.link("eth0")["addr_info"].clone());
    assert_eq!(kept, changed, "{}", run.transcript());
}

#[test]
fn a_truncated_entry_is_reported_for_its_pod_and_ignored_for_a_former_pod() {
    let node = CriNode::new();
    let pods = two_pods(&node);
    let (file, _) = entry_of(&node, &pods[0]);
    let text = fs::read_to_string(&file).expect("the entry");
    fs::write(&file, &text[..text.len() / 2]).expect("half of it");
    let name = file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let former = name.replace(&pods[0].sandbox.id, &"f".repeat(64));
    fs::write(file.with_file_name(&former), "").expect("an empty entry");
    node.node.lose_and_reload();
    let run = restore(&node).exits(5);
    assert_eq!(
        severities(&run, "checkpoint-corrupt", &pods[0]),
        ["error"],
        "{}",
        run.transcript()
    );
    assert!(
        severities(&run, "checkpoint-missing", &pods[0]).is_empty(),
        "reported twice\n{}",
        run.transcript()
    );
    let corrupt = run.coded("checkpoint-corrupt");
    let named = |name: &str| {
        corrupt
            .iter()
            .find(|problem| problem.object == name)
            .map(|problem| problem.severity.as_str())
    };
    assert_eq!(
        [named(&name), named(&former)],
        [Some("error"), Some("info")],
        "{}",
        run.transcript()
    );
    assert!(pods[1].ns.has_link("eth0") && !pods[0].ns.has_link("eth0"));
    node.netfix(&format!(
        "restore --source cni-cache {CRI} --pod {}",
        pods[1].short_id()
    ))
    .exits(0);
}

#[test]
fn entries_of_former_pods_are_counted() {
    let node = CriNode::new();
    let pods = two_pods(&node);
    let (file, _) = entry_of(&node, &pods[0]);
    let text = fs::read_to_string(&file).expect("the entry");
    let [gone, kept] = pods;
    node.remove(gone);
    fs::write(&file, text).expect("the entry, as a failed DEL leaves it");
    node.node.lose_and_reload();
    let run = restore(&node).exits(0);
    let info = run.coded("netns-gone");
    assert!(
        info.len() == 1 && info[0].severity == "info",
        "{}",
        run.transcript()
    );
    node.assert_cni_check(&[kept]);
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
