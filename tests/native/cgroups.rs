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

/// A container as podman or CRI-O starts it: its monitor is the parent of its first process.
fn with_monitor(node: &Node, pod: &Pod<'_>, cgroup: &Cgroup, id: &str, name: &str) -> Background {
    let script = node.temp().join(format!("monitor-{name}.sh"));
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

/// A pod in the cgroup of a container with this id.
struct Contained<'n> {
    pod: Pod<'n>,
    cgroup: Cgroup,
    id: String,
}

/// `path`: that of the cgroup, by the container's id.
fn contained<'n>(node: &'n Node, name: &str, path: impl Fn(&str) -> String) -> Contained<'n> {
    let id = unique_id();
    let cgroup = Cgroup::new(&path(&id));
    Contained {
        pod: pod_in(node, name, &cgroup),
        cgroup,
        id,
    }
}

/// The same under a monitor that has this name.
fn monitored<'n>(
    node: &'n Node,
    name: &str,
    path: impl Fn(&str) -> String,
) -> (Contained<'n>, Background) {
    let id = unique_id();
    let cgroup = Cgroup::new(&path(&id));
    let pod = node.pod("monitored").simple();
    let monitor = with_monitor(node, &pod, &cgroup, &id, name);
    (Contained { pod, cgroup, id }, monitor)
}

fn of_podman(id: &str) -> String {
    format!("machine.slice/libpod-{id}.scope")
}

/// A cgroup supplies the sandbox and the uid.
fn assert_named_by_their_cgroups(node: &Node, run: &Run, pods: [(&Contained<'_>, String); 2]) {
    for (Contained { pod, id, .. }, uid) in pods {
        assert_eq!(
            pod_identity(run, pod),
            json!([id[..12], id, uid, null, null, "cgroup"]),
            "{}",
            run.transcript()
        );
        let checkpoint = node.state_dir().join("checkpoints").join(&id[..12]);
        assert!(checkpoint.exists());
    }
}

/// Not even if only one of them is selected.
fn assert_one_cgroup_names_none(node: &Node, run: &Run, pods: &[Pod<'_>; 2]) {
    for pod in pods {
        assert_eq!(run.pod(pod)["source"], "mount", "{}", run.transcript());
        let words = format!("snapshot --pod {}", pod.name());
        let run = node.netfix_json(&words).exits(0);
        assert_eq!(run.pod(pod)["source"], "mount", "{}", run.transcript());
    }
}

/// The container of a tenant has made a cgroup with the victim's id in its own.
fn assert_only_the_victim_is_named(run: &Run, victim: &Contained<'_>, tenant: &Pod<'_>) {
    let named = run.pod(&victim.pod);
    assert_eq!(named["sandbox"], victim.id, "{}", run.transcript());
    let tenant = run.pod(tenant);
    assert_eq!(tenant["sandbox"], Value::Null, "{}", run.transcript());
}

#[test]
fn cgroups_and_monitors_supply_names_but_none_that_a_container_chose_or_several_share() {
    let node = Node::new();
    let plain = contained(&node, "plain", |id| {
        format!("kubepods/burstable/pod{}/{id}", uid(1))
    });
    let slice = uid(2).replace('-', "_");
    let nested = contained(&node, "nested", |id| {
        format!(
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{id}.scope"
        )
    });
    let victim = contained(&node, "victim", |id| format!("kubepods/pod{}/{id}", uid(3)));
    let tenant = contained(&node, "tenant", |own| {
        format!("kubepods/pod{}/{own}/{}", uid(4), victim.id)
    });
    let shared = Cgroup::new(&format!("docker/{}", unique_id()));
    let sharing = ["web", "db"].map(|name| pod_in(&node, name, &shared));
    let (named, _outside) = monitored(&node, "web", of_podman);
    let (unnamed, inside) = monitored(&node, "bazaar", of_podman);
    unnamed.cgroup.take(inside.id());
    let name = format!("k8s_nginx_web-0_shop_{}_2", uid(5));
    let of_cri_o = |id: &str| format!("kubepods/pod{}/crio-{id}.scope", uid(5));
    let (application, _of_cri_o) = monitored(&node, &name, of_cri_o);

    let run = node.netfix_json("snapshot").exits(0);
    assert_named_by_their_cgroups(&node, &run, [(&plain, uid(1)), (&nested, uid(2))]);
    assert_only_the_victim_is_named(&run, &victim, &tenant.pod);
    let Contained { pod, id, .. } = &named;
    let by_monitor = json!([id[..12], id, null, null, "web", "cgroup"]);
    assert_eq!(pod_identity(&run, pod), by_monitor, "{}", run.transcript());
    // The monitor is inside the container.
    let pod = run.pod(&unnamed.pod);
    assert_eq!(pod["sandbox"], unnamed.id, "{}", run.transcript());
    assert!(!run.out.contains("bazaar"), "{}", run.transcript());
    // An application is not the sandbox.
    let pod = &application.pod;
    let expected = json!([pod.name(), null, uid(5), "shop", "web-0", "cgroup"]);
    assert_eq!(pod_identity(&run, pod), expected, "{}", run.transcript());
    assert_one_cgroup_names_none(&node, &run, &sharing);
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
