//! Pods with names from a runtime: a pod that is deleted and recreated under the same name is another pod; a pod that
//! was first saved without its name is the same pod.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::reuse::{Taken, until_reused};
use crate::common::runtimes::{
    Container, FakeCri, FakeDocker, Sandbox, Script, auto, dead_socket, id, uid,
};
use crate::common::tenant::{Tenant, furnish};
use crate::common::{Node, Pod, Run};

fn cri(node: &Node, name: &str, sandboxes: &[&Sandbox]) -> FakeCri {
    let sandboxes = sandboxes.iter().map(|sandbox| (*sandbox).clone()).collect();
    FakeCri::start(
        &node.temp().join(name),
        Script {
            sandboxes,
            ..Script::default()
        },
    )
}

fn checkpoint(node: &Node, sandbox: &Sandbox) -> PathBuf {
    node.state_dir()
        .join("checkpoints")
        .join(sandbox.short_id())
}

/// The names of the checkpoints that a restore would read.
fn names(node: &Node) -> Vec<String> {
    let folder = node.state_dir().join("checkpoints");
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()));
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

fn who(node: &Node, file: &str) -> Value {
    let path = node.state_dir().join("checkpoints").join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let value: Value = serde_json::from_str(&text).expect("a checkpoint is JSON");
    value["netfix"]["pod"].clone()
}

fn expected_identity(sandbox: &Sandbox) -> Value {
    json!({"id": sandbox.short_id(), "namespace": sandbox.namespace, "name": sandbox.name, "uid": sandbox.uid,
        "sandbox": sandbox.id, "attempt": sandbox.attempt, "source": "cri"})
}

/// Which properties of a pod are the same after it is recreated.
#[derive(Clone, Copy)]
enum Same {
    Name,
    PathAndInode,
}

fn recreate<'n>(node: &'n Node, web: Pod<'n>, same: Same) -> Result<Pod<'n>, Taken> {
    match same {
        Same::Name => {
            drop(web);
            Ok(node.pod("web"))
        }
        Same::PathAndInode => {
            web.ns.replace_with_same_inode()?;
            Ok(web)
        }
    }
}

/// `shop/web-0` is deleted after the snapshot and recreated under its name; `run` is netfix.
fn recreate_web(run: impl Fn(&Node, &str) -> Run, same: Same) -> Result<(), Taken> {
    let node = Node::new();
    let (web, db) = (node.pod("web").simple(), node.pod("db").simple());
    let before = db.capture();
    let (old, other) = (Sandbox::of(&web, "web-0", 1), Sandbox::of(&db, "db-0", 2));
    let runtime = cri(&node, "before.sock", &[&old, &other]);
    run(&node, &format!("snapshot {}", auto(&runtime.socket))).exits(0);
    let text = fs::read_to_string(checkpoint(&node, &old)).expect("the old pod's checkpoint");
    drop(runtime);

    node.lose_and_reload();
    let web = recreate(&node, web, same)?;
    let bare = web.capture();
    let new = Sandbox::of(&web, "web-0", 3);
    let runtime = cri(&node, "after.sock", &[&new, &other]);
    let words = |verb: &str| format!("{verb} {}", auto(&runtime.socket));
    let of_both = ["shop/web-0", &old.uid, &new.uid, &old.id, &new.id];
    // The former pod is gone; the one that runs is counted.
    let errors = [("checkpoint-missing", new.short_id())];
    for (verb, queries) in [("plan", 1), ("restore", 2)] {
        run(&node, &words(verb))
            .exits(5)
            .errors(&errors)
            .stdout_has(&["of 2 selected pods"])
            .names("pod-replaced", old.short_id(), &of_both)
            .has_no("netns-gone");
        // For the pod that has the name now, and for the namespace without an interface.
        assert_eq!(runtime.lists(), queries, "queries after {verb}");
    }
    bare.assert_same(&web.capture(), "the recreated pod");
    db.assert_same_as(&before);

    furnish(&node, &web.ns, "10.88.7.7");
    let fresh = web.capture();
    run(&node, &words("snapshot")).exits(0).has_no("degraded");
    assert_eq!(who(&node, new.short_id()), expected_identity(&new));
    node.netfix_alone(&words("snapshot"))
        .exits(0)
        .has_no("degraded");
    assert_eq!(names(&node), [other.short_id(), new.short_id()]);
    assert!(
        node.state_files().iter().any(|(_, kept)| *kept == text),
        "the old checkpoint is nowhere any more"
    );
    node.lose_and_reload();
    run(&node, &words("restore")).exits(0).lacks(&old.uid);
    web.assert_same_as(&fresh);
    db.assert_same_as(&before);
    Ok(())
}

#[test]
fn a_pod_recreated_under_its_name_gets_nothing_of_its_predecessor() {
    until_reused(|| recreate_web(Node::netfix, Same::Name));
}

#[test]
fn a_pod_recreated_with_the_same_path_and_inode_gets_nothing_of_its_predecessor() {
    until_reused(|| recreate_web(Node::netfix, Same::PathAndInode));
}

#[test]
fn without_cookies_a_pod_recreated_with_the_same_path_and_inode_gets_nothing_of_its_predecessor() {
    until_reused(|| recreate_web(Node::netfix_on_old_kernel, Same::PathAndInode));
}

/// A pod without a mount whose oldest process ends: only the runtime can identify it.
struct Unproven<'n> {
    pod: Tenant<'n>,
    selectors: String,
}

fn unproven<'n>(node: &'n Node, sandbox: &Sandbox) -> Unproven<'n> {
    let mut pod = Tenant::new(node).simple("10.88.3.1").with_another_process();
    let then = Sandbox {
        pid: Some(pod.process_id()),
        ..sandbox.clone()
    };
    let runtime = cri(node, "before.sock", &[&then]);
    let first = pod.selector();
    let words = format!("snapshot {first} {}", auto(&runtime.socket));
    node.netfix_on_old_kernel(&words).exits(0);
    assert_eq!(who(node, sandbox.short_id()), expected_identity(sandbox));
    pod.lose_oldest();
    let selectors = format!("{first} {}", pod.selector());
    Unproven { pod, selectors }
}

#[test]
fn without_cookies_the_sandbox_id_alone_can_prove_the_identity() {
    let node = Node::new();
    let sandbox = Sandbox::nowhere("web-0", 1);
    let Unproven { pod, selectors } = unproven(&node, &sandbox);
    let before = pod.capture();
    let now = Sandbox {
        pid: Some(pod.process_id()),
        ..sandbox.clone()
    };
    let runtime = cri(&node, "after.sock", &[&now]);
    let words = |verb: &str| format!("{verb} {selectors} {}", auto(&runtime.socket));
    node.lose_and_reload();
    node.netfix_on_old_kernel(&words("snapshot"))
        .exits(1)
        .errors(&[("degraded", sandbox.short_id())]);
    node.netfix_on_old_kernel(&words("restore")).exits(0);
    pod.assert_same_as(&before);
}

#[test]
fn an_unreachable_runtime_stops_a_restore_only_if_it_is_needed() {
    let node = Node::new();
    let sandbox = Sandbox::nowhere("web-0", 1);
    let Unproven { pod, selectors } = unproven(&node, &sandbox);
    let dead = node.temp().join("dead.sock");
    dead_socket(&dead);
    let words = format!("restore {selectors} {}", auto(&dead));
    node.lose_and_reload();
    node.netfix_on_old_kernel(&words)
        .exits(4)
        .errors(&[("runtime-unreachable", "")]);
    assert!(!pod.has_eth0(), "a pod without proof was restored");
    // The checkpoint has no cookie: one with a cookie needs no other proof.
    node.ns.ip("link set eth0 up");
    // The host has lost its addresses: only the pod is saved.
    let proven = node.pod("db").simple();
    let before = proven.capture();
    node.netfix(&format!("snapshot --pod {}", proven.name()))
        .exits(5)
        .errors(&[("degraded", "")]);
    node.lose_and_reload();
    node.netfix(&format!("restore --pod {} {}", proven.name(), auto(&dead)))
        .exits(0);
    proven.assert_same_as(&before);
}

#[test]
fn a_pod_saved_without_its_name_gets_it_later_and_keeps_it() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let sandboxes = [
        Sandbox::of(&pods[0], "web-0", 1),
        Sandbox::of(&pods[1], "web-1", 2),
    ];
    let runtime = cri(&node, "runtime.sock", &[&sandboxes[0], &sandboxes[1]]);
    let named: Vec<_> = sandboxes
        .iter()
        .map(|sandbox| sandbox.short_id().to_owned())
        .collect();
    node.snapshot();
    assert_eq!(names(&node).len(), 2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();

    node.lose_and_reload();
    let snapshot = format!("snapshot {}", auto(&runtime.socket));
    node.netfix_json(&snapshot).exits(1).errors(&[
        ("degraded", sandboxes[0].short_id()),
        ("degraded", sandboxes[1].short_id()),
    ]);
    node.netfix(&format!("restore {}", auto(&runtime.socket)))
        .exits(0);
    node.netfix(&snapshot).exits(0);
    assert_eq!(names(&node), named);
    drop(runtime);

    for words in ["snapshot --runtime none", "snapshot --runtime none"] {
        pods[0].ip("link set eth0 alias changed");
        node.netfix(words).exits(0);
        assert_eq!(names(&node), named);
        for sandbox in &sandboxes {
            assert_eq!(who(&node, sandbox.short_id()), expected_identity(sandbox));
        }
        pods[0].ip("link set eth0 alias changed-again");
    }
    pods[0].ip("link set eth0 mtu 1400");
    let changed = [pods[0].capture(), before[1].clone()];
    node.snapshot();
    node.lose_and_reload();
    node.netfix("restore --pod shop/*")
        .exits(0)
        .has_no("netns-gone");
    for (pod, before) in pods.iter().zip(&changed) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_container_in_the_namespace_of_a_former_pod_inherits_only_the_network() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let sandbox = Sandbox::of(&pod, "web-0", 1);
    let runtime = cri(&node, "cri.sock", &[&sandbox]);
    node.netfix(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    drop(runtime);
    let container = Container {
        id: id(9),
        name: "database".to_owned(),
        network_mode: "bridge".to_owned(),
        pid: pod.process_id(),
        ..Container::default()
    };
    let docker = FakeDocker::start(&node.temp().join("docker.sock"), vec![container]);
    node.netfix(&format!("snapshot {}", auto(&docker.socket)))
        .exits(0)
        .lacks(&uid(1));
    assert_eq!(names(&node), [id(9)[..12].to_owned()]);
    let now = who(&node, &id(9)[..12]);
    assert_eq!(
        (&now["name"], &now["namespace"], &now["uid"]),
        (&json!("database"), &Value::Null, &Value::Null)
    );
}
