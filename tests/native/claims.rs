//! From a runtime's report of a sandbox to its namespace: a path may be a dead file, a pid may be another process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::runtime::{container, cri, expected_identity, pod_identity};
use crate::common::namespace::Namespace;
use crate::common::runtimes::{Container, FakeCri, FakeDocker, Sandbox, Script, auto, uid};
use crate::common::{Node, Pod, ReportedProblem};

#[test]
fn a_pid_identifies_the_namespace_if_the_path_is_missing_or_dead_and_the_path_if_the_pid_is_of_the_host()
 {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
        node.pod("api").simple(),
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
        Sandbox {
            pid: Some(std::process::id()),
            ..Sandbox::of(&pods[2], "api-0", 3)
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

/// Sandboxes whose report does not lead to a namespace of their own, each with what is said of it.
fn misreported(node: &Node, pods: &[Pod<'_>; 2]) -> [(Sandbox, &'static str); 6] {
    let dead = node.temp().join("dead");
    std::fs::write(&dead, "").expect("a dead file");
    let in_second = Some(pods[1].process_id());
    let at = |number: u8, netns: Option<PathBuf>, pid: Option<u32>| Sandbox {
        netns,
        pid,
        ..Sandbox::nowhere(&format!("web-{number}"), number)
    };
    let gone = Some(u32::MAX >> 10);
    let of_host = Some(std::process::id());
    [
        (at(1, Some(lost_path(node)), None), "ENOENT"),
        (at(2, Some(node.temp().join("lost-too")), gone), "ENOENT"),
        (at(3, Some(dead), None), "is no network namespace"),
        (
            at(4, Some(pods[0].ns.path()), in_second),
            "neither is trusted",
        ),
        (at(5, None, of_host), "is a process of the host"),
        (at(6, None, in_second), "another pod's namespace"),
    ]
}

/// The existing pods are saved, none is taken for such a sandbox, and the errors name uids and sandboxes.
#[test]
fn a_sandbox_that_leads_to_no_namespace_of_its_own_is_an_error_and_no_pod_is_taken_for_it() {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
    ];
    let lost = misreported(&node, &pods);
    let mut sandboxes: Vec<_> = lost.iter().map(|(sandbox, _)| sandbox.clone()).collect();
    let words: Vec<_> = sandboxes.iter().map(chosen).collect();
    sandboxes.push(Sandbox::of(&pods[1], "db-0", 7));
    let runtime = cri(&node, &sandboxes);
    let words = format!("snapshot {} {}", auto(&runtime.socket), words.join(" "));
    let run = node.netfix_json(&words).exits(5);
    let problems = run.coded("unreadable");
    assert_eq!(problems.len(), lost.len(), "{}", run.transcript());
    for (sandbox, why) in &lost {
        let is_of_it = |one: &&ReportedProblem| one.pod.as_deref() == Some(sandbox.short_id());
        let [problem] = problems.iter().filter(is_of_it).collect::<Vec<_>>()[..] else {
            panic!("not one problem of {}\n{}", sandbox.name, run.transcript())
        };
        let name = format!("shop/{}", sandbox.name);
        for part in [name.as_str(), &sandbox.uid, &sandbox.id, why] {
            assert!(
                problem.message.contains(part),
                "no message has {part}\n{}",
                run.transcript()
            );
        }
    }
    assert_eq!(
        run.pod(&pods[0])["sandbox"],
        Value::Null,
        "{}",
        run.transcript()
    );
    assert_eq!(run.pod(&pods[1])["name"], "db-0", "{}", run.transcript());
    assert!(runtime.lists() > 1, "it was not queried again");
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
