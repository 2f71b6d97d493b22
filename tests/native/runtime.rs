//! Container runtimes supply the names of namespaces; the kernel alone lists the namespaces.

use serde_json::{Value, json};

use crate::common::runtimes::{Container, FakeCri, FakeDocker, Sandbox, Script, auto, id, uid};
use crate::common::{Node, Pod, Run};

pub(super) fn cri(node: &Node, sandboxes: &[Sandbox]) -> FakeCri {
    let script = Script {
        sandboxes: sandboxes.to_vec(),
        ..Script::default()
    };
    FakeCri::start(&node.temp().join("runtime.sock"), script)
}

pub(super) fn container(pod: &Pod<'_>, name: &str, number: u8) -> Container {
    Container {
        id: id(number),
        name: name.to_owned(),
        network_mode: "bridge".to_owned(),
        pid: pod.process_id(),
        ..Container::default()
    }
}

/// The part of the output that identifies a pod.
pub(super) fn pod_identity(run: &Run, pod: &Pod<'_>) -> Value {
    let pod = run.pod(pod);
    json!({"id": pod["id"], "namespace": pod["namespace"], "name": pod["name"], "uid": pod["uid"],
        "sandbox": pod["sandbox"], "attempt": pod["attempt"], "source": pod["source"]})
}

/// The expected identity of a sandbox.
pub(super) fn expected_identity(sandbox: &Sandbox) -> Value {
    json!({"id": sandbox.short_id(), "namespace": sandbox.namespace, "name": sandbox.name, "uid": sandbox.uid,
        "sandbox": sandbox.id, "attempt": sandbox.attempt, "source": "cri"})
}

#[test]
fn cri_supplies_the_names_of_namespaces() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let sandboxes = [
        Sandbox {
            attempt: 3,
            ..Sandbox::of(&pods[0], "web-0", 1)
        },
        Sandbox::of(&pods[1], "web-1", 2),
    ];
    let runtime = cri(&node, &sandboxes);
    let snapshot = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    let list = node.netfix_json("list").exits(0);
    for (pod, sandbox) in pods.iter().zip(&sandboxes) {
        for run in [&snapshot, &list] {
            assert_eq!(
                pod_identity(run, pod),
                expected_identity(sandbox),
                "{}",
                run.transcript()
            );
        }
        assert!(
            node.state_dir()
                .join("checkpoints")
                .join(sandbox.short_id())
                .exists()
        );
    }
    node.netfix("list")
        .exits(0)
        .stdout_has(&["shop/web-0", "shop/web-1"]);
    node.netfix("show shop/web-0")
        .exits(0)
        .stdout_has(&[sandboxes[0].short_id(), &sandboxes[0].uid]);
}

#[test]
fn a_runtime_with_v1alpha2_only_is_supported() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let sandbox = Sandbox::of(&pods[0], "web-0", 1);
    let script = Script {
        services: Some(vec!["v1alpha2"]),
        sandboxes: vec![sandbox.clone()],
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("runtime.sock"), script);
    for which in ["auto", "cri"] {
        let words = auto(&runtime.socket).replace("auto", which);
        let run = node.netfix_json(&format!("snapshot {words}")).exits(0);
        assert_eq!(
            pod_identity(&run, &pods[0]),
            expected_identity(&sandbox),
            "{}",
            run.transcript()
        );
    }
}

#[test]
fn docker_supplies_names_of_containers_and_of_dockershim_pods() {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
    ];
    let shim = |number: u8, kind: &str| {
        let labels = [
            ("io.kubernetes.docker.type", kind.to_owned()),
            ("io.kubernetes.pod.name", "web-0".to_owned()),
            ("io.kubernetes.pod.namespace", "shop".to_owned()),
            ("io.kubernetes.pod.uid", uid(number)),
        ];
        labels.to_vec()
    };
    let sandbox = Container {
        name: format!("k8s_POD_web-0_shop_{}_4", uid(1)),
        network_mode: "none".to_owned(),
        labels: shim(1, "podsandbox"),
        netns: pods[0].ns.path(),
        ..container(&pods[0], "", 1)
    };
    let application = Container {
        name: format!("k8s_nginx_web-0_shop_{}_0", uid(1)),
        network_mode: format!("container:{}", sandbox.id),
        labels: shim(1, "container"),
        ..container(&pods[0], "", 2)
    };
    let plain = container(&pods[1], "database", 3);
    let docker = FakeDocker::start(
        &node.temp().join("docker.sock"),
        vec![application, sandbox.clone(), plain.clone()],
    );
    for which in ["auto", "docker"] {
        let words = auto(&docker.socket).replace("auto", which);
        let run = node.netfix_json(&format!("snapshot {words}")).exits(0);
        let web = json!({"id": &sandbox.id[..12], "namespace": "shop", "name": "web-0", "uid": uid(1),
            "sandbox": sandbox.id, "attempt": 4, "source": "docker"});
        let db = json!({"id": &plain.id[..12], "namespace": null, "name": "database", "uid": null,
            "sandbox": plain.id, "attempt": null, "source": "docker"});
        assert_eq!(pod_identity(&run, &pods[0]), web, "{}", run.transcript());
        assert_eq!(pod_identity(&run, &pods[1]), db, "{}", run.transcript());
    }
}

#[test]
fn podman_behind_the_docker_api_is_reported_as_podman() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let podman = FakeDocker::podman(
        &node.temp().join("podman.sock"),
        vec![container(&pod, "web", 1)],
    );
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&podman.socket)))
        .exits(0);
    assert_eq!(run.pod(&pod)["source"], "podman", "{}", run.transcript());
    assert_eq!(run.pod(&pod)["name"], "web", "{}", run.transcript());
}

#[test]
fn a_pod_on_the_hosts_network_is_not_a_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let on_host = Sandbox {
        host_network: true,
        netns: None,
        pid: Some(std::process::id()),
        ..Sandbox::nowhere("proxy-0", 2)
    };
    let at_path = Sandbox {
        netns: Some(node.ns.path()),
        ..Sandbox::nowhere("agent-0", 3)
    };
    let runtime = cri(&node, &[Sandbox::of(&pod, "web-0", 1), on_host, at_path]);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    assert_eq!(
        run.json()["pods"].as_array().map(Vec::len),
        Some(1),
        "{}",
        run.transcript()
    );
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());

    let on_host = Container {
        network_mode: "host".to_owned(),
        ..container(&pod, "agent", 4)
    };
    let docker = FakeDocker::start(
        &node.temp().join("docker.sock"),
        vec![container(&pod, "web", 5), on_host],
    );
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&docker.socket)))
        .exits(0);
    assert_eq!(run.pod(&pod)["name"], "web", "{}", run.transcript());
}

#[test]
fn a_sandbox_that_ends_after_the_list_call_is_gone() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let gone = Sandbox {
        is_gone: true,
        ..Sandbox::nowhere("web-9", 9)
    };
    let runtime = cri(&node, &[gone, Sandbox::of(&pods[0], "web-0", 1)]);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());
}

#[test]
fn hostile_names_are_escaped_in_file_names_and_on_the_terminal() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let hostile = Sandbox {
        id: "../../../x".to_owned(),
        name: "a\u{1b}[31mb".to_owned(),
        namespace: "../\n".to_owned(),
        ..Sandbox::of(&pods[0], "", 1)
    };
    let runtime = cri(&node, &[hostile]);
    node.netfix(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0)
        .lacks("\u{1b}");
    let folder = node.state_dir().join("checkpoints");
    assert_eq!(
        node.checkpoint_of(&pods[0]).parent(),
        Some(folder.as_path())
    );
}

#[test]
fn all_usual_sockets_are_found_and_queried() {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
        node.pod("mail").simple().with_process(),
    ];
    let containerd = cri(&node, &[Sandbox::of(&pods[0], "web-0", 1)]);
    let docker = FakeDocker::start(
        &node.temp().join("docker.sock"),
        vec![container(&pods[1], "db", 2)],
    );
    let podman = FakeDocker::podman(
        &node.temp().join("podman.sock"),
        vec![container(&pods[2], "mail", 3)],
    );
    let sockets = [
        (
            "/run/containerd/containerd.sock",
            containerd.socket.as_path(),
        ),
        // Another path of the same socket is not another runtime.
        (
            "/run/k3s/containerd/containerd.sock",
            containerd.socket.as_path(),
        ),
        ("/run/docker.sock", docker.socket.as_path()),
        ("/run/podman/podman.sock", podman.socket.as_path()),
    ];
    let run = node
        .netfix_with_sockets(&sockets, "snapshot --runtime auto -o json")
        .exits(0);
    let sources = pods.each_ref().map(|pod| run.pod(pod)["source"].clone());
    assert_eq!(
        sources,
        [json!("cri"), json!("docker"), json!("podman")],
        "{}",
        run.transcript()
    );
    assert_eq!(containerd.lists(), 1);
    let run = node
        .netfix_with_sockets(&sockets, "snapshot --runtime docker -o json")
        .exits(0);
    assert_eq!(
        run.pod(&pods[1])["source"],
        "docker",
        "{}",
        run.transcript()
    );
    assert_eq!(
        containerd.lists(),
        1,
        "containerd was queried more than once"
    );
}

#[test]
fn docker_supplies_what_cri_dockerd_omits() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let sandbox = Sandbox {
        attempt: 2,
        ..Sandbox::nowhere("web-0", 1)
    };
    let of_docker = Container {
        id: sandbox.id.clone(),
        ..container(&pod, "any", 1)
    };
    let shim = cri(&node, std::slice::from_ref(&sandbox));
    let docker = FakeDocker::start(&node.temp().join("docker.sock"), vec![of_docker]);
    let sockets = [
        ("/run/cri-dockerd.sock", shim.socket.as_path()),
        ("/run/docker.sock", docker.socket.as_path()),
    ];
    let run = node
        .netfix_with_sockets(&sockets, "snapshot --runtime auto -o json")
        .exits(0);
    assert_eq!(
        pod_identity(&run, &pod),
        expected_identity(&sandbox),
        "{}",
        run.transcript()
    );
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());
}
