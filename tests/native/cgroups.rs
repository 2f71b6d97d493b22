//! Without a runtime, the names of cgroups identify the container of a namespace.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::background::{Background, wait_until};
use crate::common::runtimes::{Cgroup, FakeCri, Sandbox, Script, auto, uid, unique_id};
use crate::common::{Node, Pod, Run, tool};

/// A pod with a process in this cgroup.
fn pod_in<'n>(node: &'n Node, name: &str, cgroup: &Cgroup) -> Pod<'n> {
    let pod = node.pod(name).simple().with_process();
    cgroup.take(pod.process_id());
    pod
}

fn pod_identity(run: &Run, pod: &Pod<'_>) -> Value {
    let pod = run.pod(pod);
    json!([
        pod["id"],
        pod["sandbox"],
        pod["uid"],
        pod["namespace"],
        pod["name"],
        pod["source"]
    ])
}

#[test]
fn a_pods_cgroup_supplies_its_sandbox_and_uid() {
    let node = Node::new();
    let id = unique_id();
    let slice = uid(1).replace('-', "_");
    let (plain, of_systemd) = (
        format!("kubepods/burstable/pod{}/{id}", uid(1)),
        unique_id(),
    );
    let nested = format!(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{of_systemd}.scope"
    );
    let cgroups = [Cgroup::new(&plain), Cgroup::new(&nested)];
    let pods = [
        pod_in(&node, "web", &cgroups[0]),
        pod_in(&node, "db", &cgroups[1]),
    ];
    let run = node.netfix_json("snapshot").exits(0);
    for (pod, id) in pods.iter().zip([&id, &of_systemd]) {
        assert_eq!(
            pod_identity(&run, pod),
            json!([id[..12], id, uid(1), null, null, "cgroup"]),
            "{}",
            run.transcript()
        );
        assert!(
            node.state_dir()
                .join("checkpoints")
                .join(&id[..12])
                .exists()
        );
    }
}

#[test]
fn a_cgroup_that_netfix_is_in_supplies_no_name() {
    let node = Node::new();
    let cgroup = Cgroup::new(&format!("docker/{}", unique_id()));
    let pod = pod_in(&node, "web", &cgroup);
    let run = Run::of(&mut cgroup.inside(&node.netfix_command(&[], "snapshot -o json"))).exits(0);
    assert_eq!(run.pod(&pod)["source"], "mount", "{}", run.transcript());
    assert_eq!(
        run.pod(&pod)["sandbox"],
        Value::Null,
        "{}",
        run.transcript()
    );
}

#[test]
fn a_cgroup_that_a_container_makes_in_its_own_supplies_no_name() {
    let node = Node::new();
    let id = unique_id();
    let own = format!("kubepods/pod{}/{}", uid(2), unique_id());
    let victims = Cgroup::new(&format!("kubepods/pod{}/{id}", uid(1)));
    let tenants = Cgroup::new(&format!("{own}/{id}"));
    let pods = [
        pod_in(&node, "web", &victims),
        pod_in(&node, "tenant", &tenants),
    ];
    let run = node.netfix_json("snapshot").exits(0);
    assert_eq!(run.pod(&pods[0])["sandbox"], id, "{}", run.transcript());
    let tenant = run.pod(&pods[1]);
    assert_eq!(tenant["sandbox"], Value::Null, "{}", run.transcript());
}

#[test]
fn a_cgroup_shared_by_several_namespaces_supplies_no_name() {
    let node = Node::new();
    let cgroup = Cgroup::new(&format!("docker/{}", unique_id()));
    let pods = [pod_in(&node, "web", &cgroup), pod_in(&node, "db", &cgroup)];
    let run = node.netfix_json("snapshot").exits(0);
    for pod in &pods {
        assert_eq!(run.pod(pod)["source"], "mount", "{}", run.transcript());
        // Not even if only one of them is selected.
        let words = format!("snapshot --pod {}", pod.name());
        let run = node.netfix_json(&words).exits(0);
        assert_eq!(run.pod(pod)["source"], "mount", "{}", run.transcript());
    }
}

/// A container as podman or CRI-O starts it: its monitor is the parent of its first process.
fn with_monitor(node: &Node, pod: &Pod<'_>, cgroup: &Cgroup, id: &str, name: &str) -> Background {
    let script = node.temp().join("monitor.sh");
    let start = format!(
        "sh -c 'echo $$ > {}; exec ip netns exec {} setpriv --pdeathsig KILL sleep 600' & wait",
        cgroup.procs().display(),
        pod.name()
    );
    fs::write(&script, start).expect("a script");
    let mut command = Command::new("bash");
    command
        .args(["-c", "exec -a conmon bash \"$@\"", "bash"])
        .arg(&script)
        .args(["-c", id, "-n", name]);
    let monitor = Background::start(&mut command, node.temp().join(format!("monitor-{name}")));
    let is_inside = |pid: &str| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "sleep")
            && fs::read_to_string(format!("/proc/{pid}/cgroup"))
                .is_ok_and(|cgroup| cgroup.contains(id))
    };
    let runs = || {
        tool::ip(&format!("netns pids {}", pod.name()))
            .lines()
            .any(is_inside)
    };
    assert!(
        wait_until(runs),
        "the container never ran:\n{}",
        monitor.text()
    );
    monitor
}

#[test]
fn the_monitor_of_a_container_supplies_its_name() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let id = unique_id();
    let cgroup = Cgroup::new(&format!("machine.slice/libpod-{id}.scope"));
    let _monitor = with_monitor(&node, &pods[0], &cgroup, &id, "web");
    let run = node.netfix_json("snapshot").exits(0);
    assert_eq!(
        pod_identity(&run, &pods[0]),
        json!([id[..12], id, null, null, "web", "cgroup"]),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_monitor_inside_the_container_supplies_no_name() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let id = unique_id();
    let cgroup = Cgroup::new(&format!("machine.slice/libpod-{id}.scope"));
    let monitor = with_monitor(&node, &pods[0], &cgroup, &id, "shop");
    cgroup.take(monitor.id());
    let run = node.netfix_json("snapshot").exits(0);
    assert_eq!(run.pod(&pods[0])["sandbox"], id, "{}", run.transcript());
    assert!(!run.out.contains("shop"), "{}", run.transcript());
}

#[test]
fn an_application_container_of_cri_o_is_not_its_sandbox() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let id = unique_id();
    let cgroup = Cgroup::new(&format!("kubepods/pod{}/crio-{id}.scope", uid(1)));
    let name = format!("k8s_nginx_web-0_shop_{}_2", uid(1));
    let _monitor = with_monitor(&node, &pods[0], &cgroup, &id, &name);
    let run = node.netfix_json("snapshot").exits(0);
    let expected = json!([pods[0].name(), null, uid(1), "shop", "web-0", "cgroup"]);
    assert_eq!(
        pod_identity(&run, &pods[0]),
        expected,
        "{}",
        run.transcript()
    );
}

#[test]
fn a_sandbox_reported_without_details_is_found_by_its_cgroup() {
    let node = Node::new();
    let id = unique_id();
    let cgroup = Cgroup::new(&format!("kubepods/pod{}/docker-{id}.scope", uid(1)));
    let pod = pod_in(&node, "web", &cgroup);
    let sandbox = Sandbox {
        id: id.clone(),
        ..Sandbox::nowhere("web-0", 1)
    };
    let script = Script {
        sandboxes: vec![sandbox],
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("runtime.sock"), script);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    let expected = json!([id[..12], id, uid(1), "shop", "web-0", "cri"]);
    assert_eq!(pod_identity(&run, &pod), expected, "{}", run.transcript());
}

#[test]
fn a_pid_in_the_cgroup_of_another_container_is_stale() {
    let node = Node::new();
    let cgroup = Cgroup::new(&format!("docker/{}", unique_id()));
    let pod = pod_in(&node, "web", &cgroup);
    let stale = |name: &str, number: u8| Sandbox {
        pid: Some(pod.process_id()),
        ..Sandbox::nowhere(name, number)
    };
    let sandbox = stale("db-0", 2);
    let script = Script {
        sandboxes: vec![sandbox.clone()],
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("runtime.sock"), script);
    let words = format!(
        "snapshot {} --netns /proc/{}/ns/net",
        auto(&runtime.socket),
        pod.process_id()
    );
    let run = node.netfix_json(&words).exits(5);
    run.errors(&[("unreadable", sandbox.short_id())]).names(
        "unreadable",
        sandbox.short_id(),
        &["shop/db-0", &sandbox.id],
    );
}
