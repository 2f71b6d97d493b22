//! netfix on pods that a real containerd created: real sandboxes, runc, the CNI macvlan plugin, libcni's cache.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Value, json};

use crate::common::capture::Capture;
use crate::common::cri::{PodSpec, Sandbox};
use crate::common::{CriNode, CriPod, Run};

pub const CRI: &str = "--runtime cri --runtime-endpoint unix:///run/containerd/containerd.sock";
const CNI_CACHE: &str = "--source cni-cache --cni-cache-dir /var/lib/cni";

pub fn captures(node: &CriNode, pods: &[CriPod]) -> Vec<Capture> {
    pods.iter().map(|pod| node.capture(pod)).collect()
}

/// What libcni and `i40e_net_fix` record of a pod: its interface, addresses and routes.
fn essence(capture: &Capture) -> Value {
    let link = capture.link("eth0");
    let kept = ["address", "mtu", "linkinfo", "operstate", "addr_info"];
    let link: serde_json::Map<_, _> = kept
        .iter()
        .map(|key| ((*key).to_owned(), link[*key].clone()))
        .collect();
    json!({"eth0": link, "route4": capture.section("route4"), "route6": capture.section("route6")})
}

/// Every pod has its former interface, addresses and routes, and the plugin's CHECK passes.
fn assert_networks_are_restored(node: &CriNode, pods: &[CriPod], before: &[Capture]) {
    for (pod, before) in pods.iter().zip(before) {
        assert_eq!(
            essence(before),
            essence(&node.capture(pod)),
            "{} (before, after)",
            pod.transcript()
        );
    }
    node.assert_cni_check(pods);
}

pub fn assert_all_lost(node: &CriNode, pods: &[CriPod]) {
    for pod in pods {
        assert!(
            !pod.ns.has_link("eth0"),
            "{} kept its eth0",
            pod.transcript()
        );
        node.cached(pod)
            .check(&node.machine)
            .expect_err("CHECK of a lost pod fails");
    }
}

fn text(value: &str) -> Value {
    Value::from(value)
}

/// The output and the checkpoint name the pod as CRI does.
pub fn assert_named_as_in_cri(node: &CriNode, pod: &CriPod, answer: &Run) {
    let Sandbox {
        id,
        namespace,
        name,
        uid,
        attempt,
        ..
    } = node.cri().status(&pod.sandbox.id);
    let entries = answer.json()["pods"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut entries = entries.iter().filter(|entry| entry["id"] == pod.short_id());
    let entry = entries.next().unwrap_or_else(|| {
        panic!(
            "no {} in the answer\n{}",
            pod.transcript(),
            answer.transcript()
        )
    });
    for (key, value) in [("namespace", &namespace), ("name", &name), ("uid", &uid)] {
        assert_eq!(
            entry[key],
            text(value),
            "{key} of {} in the answer",
            pod.transcript()
        );
    }
    let file = checkpoint(node, pod);
    assert_eq!(
        [&file["sandbox"], &file["podname"]],
        [&text(&id), &text(&name)],
        "{}",
        pod.transcript()
    );
    let expected = json!({
        "id": &id[..12], "namespace": namespace, "name": name, "uid": uid, "sandbox": id, "attempt": attempt,
        "source": "cri",
    });
    assert_eq!(file["netfix"]["pod"], expected, "{}", pod.transcript());
}

/// The pod's checkpoint; its file name is the first 12 characters of the sandbox id.
fn checkpoint(node: &CriNode, pod: &CriPod) -> Value {
    let path = node
        .node
        .state_dir()
        .join("checkpoints")
        .join(pod.short_id());
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn checkpoint_names(node: &CriNode) -> Vec<String> {
    let folder = node.node.state_dir().join("checkpoints");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<_> = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

pub fn short_ids<'p>(pods: impl IntoIterator<Item = &'p CriPod>) -> Vec<String> {
    let mut ids: Vec<_> = pods
        .into_iter()
        .map(|pod| pod.short_id().to_owned())
        .collect();
    ids.sort_unstable();
    ids
}

/// An error with one of these codes names the pod.
fn has_error(run: &Run, codes: &[&str], pod: &str) -> bool {
    let problems = run.json()["problems"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let is_it = |problem: &Value| {
        problem["severity"] == "error"
            && problem["pod"] == pod
            && codes.iter().any(|code| problem["code"] == *code)
    };
    problems.iter().any(is_it)
}

#[test]
fn a_failed_test_leaves_no_process_mount_namespace_or_file() {
    let mut seen = Vec::new();
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let node = CriNode::new();
        let pods = node.pods(2);
        assert_all_have_network(&node, &pods);
        let name = node.node.ns.name().to_owned();
        seen = vec![
            name,
            node.node.temp().display().to_string(),
            node.machine.init().to_string(),
        ];
        panic!("a test fails");
    }));
    failed.expect_err("the test has failed");
    let [name, folder, init] = seen.as_slice() else {
        panic!("the node did not come up")
    };
    assert!(!Path::new(folder).exists(), "{folder} is still there");
    assert!(
        !Path::new(&format!("/proc/{init}")).exists(),
        "the machine still runs"
    );
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    assert!(
        !mounts.contains(name.as_str()),
        "something of {name} is still mounted:\n{mounts}"
    );
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&line).contains(folder.as_str()),
            "{} still runs",
            process.path().display()
        );
    }
}

fn assert_all_have_network(node: &CriNode, pods: &[CriPod]) {
    assert!(
        pods.iter().all(|pod| pod.ns.has_link("eth0")),
        "a pod has no eth0"
    );
    node.assert_cni_check(pods);
}

/// Starts a sandbox that is not a pod to netfix; its id.
fn pod_on_the_hosts_network(node: &CriNode) -> String {
    let spec = PodSpec {
        host_network: true,
        ..PodSpec::new(
            "kube-system",
            "kube-proxy",
            "5d0f7f33-2222-4000-8000-000000000001",
        )
    };
    let [id] = node.cri().run(&[spec]).try_into().expect("one sandbox");
    let netns = node.cri().status(&id).netns;
    assert_eq!(netns, None, "it has a namespace of its own");
    id
}

#[test]
fn twenty_pods_have_their_cri_names_and_are_restored_in_the_same_sandboxes() {
    let node = CriNode::new();
    let pods = node.pods(20);
    assert_all_have_network(&node, &pods);
    let on_host = pod_on_the_hosts_network(&node);
    let (before, host, sandboxes) = (
        captures(&node, &pods),
        node.node.capture(),
        node.cri().list(),
    );
    let run = node.netfix(&format!("snapshot {CRI} -o json")).exits(0);
    for pod in &pods {
        assert_named_as_in_cri(&node, pod, &run);
    }
    run.lacks(&on_host[..12]).lacks("kube-proxy");
    assert_eq!(checkpoint_names(&node), short_ids(&pods));
    node.netfix(&format!("check {CRI}")).exits(0);
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    let check = node.netfix(&format!("check -v {CRI}")).exits(2);
    for pod in &pods {
        let Sandbox {
            namespace, name, ..
        } = &pod.sandbox;
        let title = format!("{namespace}/{name} ({})", pod.short_id());
        let mut lines = check
            .out
            .lines()
            .filter(|line| line.starts_with("CRITICAL"));
        assert!(
            lines.any(|line| line.contains(&title)),
            "{title} is not named\n{}",
            check.transcript()
        );
    }
    // The kernel's cookies identify the pods, so netfix queries no runtime.
    node.freeze();
    node.netfix(&format!("restore {CRI}"))
        .exits(0)
        .lacks(&on_host[..12]);
    node.thaw();
    node.assert_same_as(&pods, &before);
    node.node.assert_same_as(&host);
    node.assert_cni_check(&pods);
    assert_eq!(sandboxes, node.cri().list(), "a sandbox was made anew");
    assert!(
        sandboxes.iter().all(|sandbox| sandbox.is_ready),
        "{sandboxes:#?}"
    );
    for words in ["check", "verify --answer-wait 15s", "diff"] {
        node.netfix(words).exits(0);
    }
}

#[test]
fn pods_with_their_mode_and_mtu_are_restored_from_libcnis_cache_alone() {
    let node = CriNode::with_macvlan(&json!({"mode": "private", "mtu": 1400}));
    let pods = node.pods(4);
    let (before, sandboxes) = (captures(&node, &pods), node.cri().list());
    let link = before[0].link("eth0");
    assert_eq!(
        [&link["mtu"], &link["linkinfo"]["info_data"]["mode"]],
        [&json!(1400), &json!("private")]
    );
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    node.netfix(&format!("restore {CNI_CACHE} {CRI}")).exits(0);
    assert_networks_are_restored(&node, &pods, &before);
    assert_eq!(sandboxes, node.cri().list(), "a sandbox was made anew");
}

/// A file as the plugin of `i40e_net_fix` wrote it when it created the pod.
fn i40e_net_fix_file(node: &CriNode, pod: &CriPod) -> Value {
    let (sandbox, result) = (&pod.sandbox, node.cached(pod).result);
    let netns = format!("/proc/{}/ns/net", sandbox.pid);
    let interface = &result["interfaces"][0];
    let with_version = |ip: &Value| {
        let is_v6 = ip["address"]
            .as_str()
            .is_some_and(|address| address.contains(':'));
        json!({
            "version": if is_v6 { "6" } else { "4" }, "interface": 0, "address": ip["address"],
            "gateway": ip["gateway"],
        })
    };
    let ips: Vec<_> = result["ips"]
        .as_array()
        .into_iter()
        .flatten()
        .map(with_version)
        .collect();
    json!({
        "netns": netns, "podname": sandbox.name, "sandbox": sandbox.id, "ifname": interface["name"],
        "result": {
            "interfaces": [{"name": interface["name"], "mac": interface["mac"], "sandbox": netns}],
            "ips": ips, "routes": result["routes"], "dns": {},
        },
    })
}

#[test]
fn pods_are_restored_from_imported_files_of_i40e_net_fix() {
    let node = CriNode::new();
    let pods = node.pods(4);
    let (before, sandboxes) = (captures(&node, &pods), node.cri().list());
    let folder = node.node.temp().join("origin");
    fs::create_dir(&folder).expect("the directory of i40e_net_fix");
    for pod in &pods {
        fs::write(
            folder.join(pod.short_id()),
            i40e_net_fix_file(&node, pod).to_string(),
        )
        .expect("the file of i40e_net_fix");
    }
    node.netfix(&format!("import {} {CRI}", folder.display()))
        .exits(0);
    assert_eq!(checkpoint_names(&node), short_ids(&pods));
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    node.netfix(&format!("restore --parent eth0 {CRI}"))
        .exits(0);
    assert_networks_are_restored(&node, &pods, &before);
    assert_eq!(sandboxes, node.cri().list(), "a sandbox was made anew");
}

pub fn stateful_pod(uid: &str) -> PodSpec {
    PodSpec::new("default", "db-0", uid)
}

/// A pod of a stateful set: its sandbox is recreated under the same name and with another uid.
fn replace(node: &CriNode, old: CriPod) -> CriPod {
    node.remove(old);
    node.run(stateful_pod("0b8c61d2-1111-4000-8000-000000000002"))
}

#[test]
fn a_pod_recreated_under_the_same_name_gets_nothing_of_the_old_one() {
    let node = CriNode::new();
    let old = node.run(stateful_pod("0b8c61d2-1111-4000-8000-000000000001"));
    let bystanders = node.pods(1);
    let before = captures(&node, &bystanders);
    node.netfix(&format!("snapshot {CRI}")).exits(0);
    let old_id = old.short_id().to_owned();
    let new = replace(&node, old);
    node.node.lose_and_reload();
    let bare = node.capture(&new);
    let of_files = format!("restore --source checkpoints {CRI} -o json");
    let run = node.netfix(&of_files).exits(5);
    assert!(
        !run.coded("pod-replaced").is_empty() && !has_error(&run, &["pod-replaced"], &old_id),
        "{}",
        run.transcript()
    );
    assert!(
        has_error(&run, &["checkpoint-missing"], new.short_id()),
        "{}",
        run.transcript()
    );
    bare.assert_same(&node.capture(&new), "the new pod");
    node.assert_same_as(&bystanders, &before);
    assert!(node.cri().status(&new.sandbox.id).is_ready);
}

#[test]
fn a_recreated_pod_is_restored_from_its_own_cache_entry_not_from_a_stale_one() {
    let node = CriNode::new();
    let old = node.run(stateful_pod("0b8c61d2-1111-4000-8000-000000000001"));
    let (stale, kept) = (node.cached(&old).file, node.node.temp().join("stale"));
    fs::copy(&stale, &kept).expect("a copy of the old pod's entry");
    let new = replace(&node, old);
    fs::copy(&kept, &stale).expect("the old pod's entry, as a failed DEL leaves it");
    let pods = [new];
    let before = captures(&node, &pods);
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    node.netfix(&format!("restore {CNI_CACHE} {CRI}")).exits(0);
    assert_networks_are_restored(&node, &pods, &before);
}
