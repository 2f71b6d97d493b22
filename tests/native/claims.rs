//! From a runtime's report of a sandbox to its namespace: a path may be a dead file, a pid may be another process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::runtime::{container, cri, expected_identity, pod_identity};
use crate::common::namespace::Namespace;
use crate::common::runtimes::{Container, FakeCri, FakeDocker, Sandbox, Script, auto, uid};
use crate::common::{Node, Pod};

#[test]
fn a_pid_identifies_the_namespace_if_the_path_is_missing_or_dead() {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
    ];
    let dead = node.temp().join("cni-1");
    std::fs::write(&dead, "").expect("a dead file");
    let sandboxes = [
        Sandbox {
            netns: None,
            pid: Some(pods[0].process_id()),
            ..Sandbox::of(&pods[0], "web-0", 1)
        },
        Sandbox {
            netns: Some(dead),
            pid: Some(pods[1].process_id()),
            ..Sandbox::of(&pods[1], "db-0", 2)
        },
    ];
    let runtime = cri(&node, &sandboxes);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    for (pod, sandbox) in pods.iter().zip(&sandboxes) {
        assert_eq!(
            pod_identity(&run, pod),
            expected_identity(sandbox),
            "{}",
            run.transcript()
        );
    }
}

/// A snapshot in which the report of one sandbox does not lead to its own namespace: the existing pods are saved,
/// none is taken for that sandbox, and the error names its uid and sandbox.
fn snapshot_with_one_lost(lost: impl FnOnce(&Node, &[Pod<'_>; 2]) -> Sandbox, why: &str) {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
    ];
    let sandbox = lost(&node, &pods);
    let runtime = cri(&node, &[sandbox.clone(), Sandbox::of(&pods[1], "db-0", 2)]);
    let run = node
        .netfix_json(&format!(
            "snapshot {} {}",
            auto(&runtime.socket),
            chosen(&sandbox)
        ))
        .exits(5);
    let problems = run.coded("unreadable");
    let [problem] = &problems[..] else {
        panic!("not one problem\n{}", run.transcript())
    };
    for part in ["shop/web-0", &sandbox.uid, &sandbox.id, why] {
        assert!(
            problem.message.contains(part),
            "no message has {part}\n{}",
            run.transcript()
        );
    }
    assert_eq!(problem.pod.as_deref(), Some(sandbox.short_id()));
    assert_eq!(
        run.pod(&pods[0])["sandbox"],
        Value::Null,
        "{}",
        run.transcript()
    );
    assert_eq!(run.pod(&pods[1])["name"], "db-0", "{}", run.transcript());
    assert!(runtime.lists() > 1, "it was not queried again");
}

fn lost_path(node: &Node) -> PathBuf {
    node.temp().join("lost")
}

/// The options that select it.
fn chosen(sandbox: &Sandbox) -> String {
    let path = sandbox
        .netns
        .as_ref()
        .map(|path| format!("--netns {}", path.display()));
    let process = sandbox.pid.map(|pid| format!("--netns /proc/{pid}/ns/net"));
    [path, process]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_sandbox_without_a_namespace_is_an_error() {
    let lost = |node: &Node| Sandbox {
        netns: Some(lost_path(node)),
        ..Sandbox::nowhere("web-0", 1)
    };
    snapshot_with_one_lost(|node, _| lost(node), "ENOENT");
    snapshot_with_one_lost(
        |node, _| Sandbox {
            pid: Some(u32::MAX >> 10),
            ..lost(node)
        },
        "ENOENT",
    );
}

#[test]
fn a_dead_file_is_never_used_as_a_namespace() {
    let dead = |node: &Node, _: &[Pod<'_>; 2]| {
        std::fs::write(lost_path(node), "").expect("a dead file");
        Sandbox {
            netns: Some(lost_path(node)),
            ..Sandbox::nowhere("web-0", 1)
        }
    };
    snapshot_with_one_lost(dead, "is no network namespace");
}

#[test]
fn neither_a_path_nor_a_pid_is_trusted_if_they_differ() {
    let differ = |_: &Node, pods: &[Pod<'_>; 2]| Sandbox {
        pid: Some(pods[1].process_id()),
        ..Sandbox::of(&pods[0], "web-0", 1)
    };
    snapshot_with_one_lost(differ, "neither is trusted");
}

#[test]
fn a_stale_pid_is_never_used_for_the_pod() {
    let of_host = |_: &Node, _: &[Pod<'_>; 2]| Sandbox {
        pid: Some(std::process::id()),
        ..Sandbox::nowhere("web-0", 1)
    };
    snapshot_with_one_lost(of_host, "is a process of the host");
    let of_other = |_: &Node, pods: &[Pod<'_>; 2]| Sandbox {
        pid: Some(pods[1].process_id()),
        ..Sandbox::nowhere("web-0", 1)
    };
    snapshot_with_one_lost(of_other, "another pod's namespace");
}

#[test]
fn the_path_is_used_if_the_pid_is_a_process_of_the_host() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let sandbox = Sandbox {
        pid: Some(std::process::id()),
        ..Sandbox::of(&pods[0], "web-0", 1)
    };
    let runtime = cri(&node, std::slice::from_ref(&sandbox));
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    assert_eq!(
        pod_identity(&run, &pods[0]),
        expected_identity(&sandbox),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_sandbox_that_is_gone_at_the_second_query_is_not_an_error() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let lost = Sandbox {
        netns: Some(lost_path(&node)),
        ..Sandbox::nowhere("web-9", 9)
    };
    let passing = lost.clone();
    let hook = move |calls: usize, sandboxes: &mut Vec<Sandbox>| match calls {
        0 => sandboxes.push(passing.clone()),
        _ => sandboxes.truncate(1),
    };
    let words = chosen(&lost);
    let script = Script {
        sandboxes: vec![Sandbox::of(&pods[0], "web-0", 1)],
        hook: Some(Box::new(hook)),
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("runtime.sock"), script);
    let run = node
        .netfix_json(&format!("snapshot {} {words}", auto(&runtime.socket)))
        .exits(0);
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());
    assert_eq!(runtime.lists(), 2, "{}", run.transcript());
}

#[test]
fn a_pod_that_is_being_created_during_a_snapshot_is_named_and_not_recorded_as_empty() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let name = format!("{}.late", node.ns.name());
    let late = Sandbox {
        netns: Some(PathBuf::from("/run/netns").join(&name)),
        ..Sandbox::nowhere("web-9", 9)
    };
    let born = Arc::new(Mutex::new(None));
    let (cradle, sandbox) = (Arc::clone(&born), late.clone());
    let hook = move |calls: usize, sandboxes: &mut Vec<Sandbox>| {
        if calls == 0 {
            *cradle.lock().expect("no test fails here") = Some(Namespace::new(&name));
            sandboxes.push(sandbox.clone());
        }
    };
    let script = Script {
        sandboxes: vec![Sandbox::of(&pods[0], "web-0", 1)],
        hook: Some(Box::new(hook)),
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("runtime.sock"), script);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(5);
    let json = run.json();
    let mut pods = json["pods"].as_array().into_iter().flatten();
    let of_late = pods.find(|pod| pod["sandbox"] == late.id);
    assert_eq!(
        of_late.map(|pod| &pod["state"]),
        Some(&"no-checkpoint".into()),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_sandbox_outside_the_selection_is_ignored() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let elsewhere = Sandbox {
        netns: Some(node.temp().join("nowhere")),
        ..Sandbox::nowhere("web-8", 8)
    };
    let unnamed = Sandbox {
        netns: Some(lost_path(&node)),
        ..Sandbox::nowhere("web-9", 9)
    };
    let runtime = cri(
        &node,
        &[
            Sandbox::of(&pods[0], "web-0", 1),
            elsewhere,
            unnamed.clone(),
        ],
    );
    let words = format!(
        "snapshot {} --pod shop/web-0 {}",
        auto(&runtime.socket),
        chosen(&unnamed)
    );
    let run = node.netfix_json(&words).exits(0);
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());
}

#[test]
fn a_namespace_shared_by_sandboxes_is_named_only_after_a_kubernetes_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let shared = |name: &str, number: u8| Container {
        netns: pod.ns.path(),
        ..container(&pod, name, number)
    };
    let kube = shared(&format!("k8s_POD_web-0_shop_{}_0", uid(3)), 3);
    let docker = |name: &str, containers: &[Container]| {
        FakeDocker::start(&node.temp().join(name), containers.to_vec())
    };
    let two = docker("two.sock", &[shared("one", 1), shared("two", 2)]);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&two.socket)))
        .exits(0);
    assert_eq!(run.pod(&pod)["source"], "mount", "{}", run.transcript());
    assert_eq!(run.coded("unsupported").len(), 1, "{}", run.transcript());
    let three = docker("three.sock", &[shared("one", 1), shared("two", 2), kube]);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&three.socket)))
        .exits(0);
    assert_eq!(run.pod(&pod)["name"], "web-0", "{}", run.transcript());
}
