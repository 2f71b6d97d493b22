//! Namespaces of services, sandboxed programs and containers without a network are no pods; a pod that lost everything
//! is one, also without a checkpoint.

use std::process::Command;

use crate::common::alone::Alone;
use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::runtimes::{Cgroup, Container, FakeCri, FakeDocker, Sandbox, Script, auto, id};
use crate::common::runtimes::{uid, unique_id};
use crate::common::{Node, Pod, Run, tool};

/// netfix for this node's pods and these namespaces.
fn with(node: &Node, alone: &[&Alone], words: &str) -> Run {
    let paths = alone.iter().map(|one| format!(" --netns {}", one.path()));
    node.netfix(&(words.to_owned() + &paths.collect::<String>()))
}

fn cri(node: &Node, sandboxes: &[Sandbox]) -> FakeCri {
    let script = Script {
        sandboxes: sandboxes.to_vec(),
        ..Script::default()
    };
    FakeCri::start(&node.temp().join("runtime.sock"), script)
}

#[test]
fn a_namespace_that_is_mounted_in_a_pod_alone_comes_back() {
    let node = Node::new();
    let script = "mount --make-rprivate / && mount -t tmpfs t /mnt && touch /mnt/inner && unshare --net=/mnt/inner true \
        && ln -s inner /mnt/link && exec sleep 600";
    let unshare = ["--mount", "--net", "sh", "-c", script];
    let outer = Alone::by(Command::new("unshare").args(unshare));
    let path = format!("/proc/{}/root/mnt/inner", outer.id());
    let inside = |words: &str| {
        let netns = format!("--net={path}");
        let mut command = tool::command("nsenter", [netns.as_str(), "ip"]);
        tool::run(command.args(words.split_whitespace()))
    };
    node.ns
        .ip("link add link eth0 name net1 address 02:00:00:88:01:0a type macvlan mode bridge");
    node.ns.ip(&format!("link set net1 netns {path}"));
    inside("link set net1 up");
    inside("addr add 10.88.7.7/16 dev net1");
    let netfix = |words: &str| node.netfix(&format!("{words} --netns {path}"));
    netfix("snapshot").exits(0);
    node.lose_and_reload();
    netfix("check").exits(2);
    netfix("restore").exits(0);
    let now = inside("-o addr show dev net1");
    assert!(now.contains("10.88.7.7/16"), "{now}");
    assert!(inside("link show dev net1").contains("02:00:00:88:01:0a"));
}

/// No command finds them, before and after a loss, and no verdict counts them.
#[test]
fn namespaces_of_a_service_of_programs_and_of_any_user_are_no_pods() {
    let node = Node::new();
    let service = Cgroup::new(&format!("system.slice/{}.service", node.ns.name()));
    let others = cgroups(&node);
    let alone = [
        Alone::start().moved(&service),
        Alone::start(),
        of_a_user(&others[0]),
        of_a_user(&others[1]),
    ];
    let pods = node.simple_pods(2);
    node.snapshot();
    for one in &alone {
        assert_eq!(one.ip("-o link show").lines().count(), 1, "only lo");
    }
    let netfix = |words: &str| with(&node, &alone.each_ref(), words).exits(0);
    netfix("check").stdout_has(&["2 of 2"]);
    netfix("plan").stdout_has(&["2 selected pods"]);
    netfix("diff");
    node.lose_and_reload();
    for command in ["restore", "verify", "snapshot"] {
        let run = netfix(command).stdout_has(&["2 selected pods"]);
        let mut run = run.has_no("checkpoint-missing");
        assert!(pods.iter().all(Pod::has_eth0), "a pod is not restored");
        for one in &alone {
            run = run.lacks(&one.path());
        }
    }
}

#[test]
fn a_bare_namespace_in_a_cgroup_of_pods_may_have_lost_its_interfaces() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let cgroup = Cgroup::new(&format!("kubepods/burstable/pod{}/{}", uid(7), unique_id()));
    let alone = Alone::start().moved(&cgroup);
    with(&node, &[&alone], "check").exits(2);
    for command in ["plan", "restore"] {
        let run = with(&node, &[&alone], command).exits(5);
        assert_eq!(
            run.coded("checkpoint-missing").len(),
            1,
            "{}",
            run.transcript()
        );
    }
}

#[test]
fn a_mounted_bare_namespace_may_have_lost_its_interfaces_whatever_its_cgroup() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let pod = node.pod("vm").with_process();
    let cgroup = Cgroup::new(&format!("system.slice/{}.service", node.ns.name()));
    cgroup.take(pod.process_id());
    node.netfix("check").exits(2);
    node.netfix("restore")
        .exits(5)
        .errors(&[("checkpoint-missing", pod.name())]);
}

#[test]
fn namespaces_of_a_service_and_of_a_user_with_an_interface_on_the_host_are_pods_and_restored() {
    let node = Node::new();
    let service = Cgroup::new(&format!("system.slice/{}.service", node.ns.name()));
    let [others, _] = cgroups(&node);
    let pods = [Alone::start().moved(&service), of_a_user(&others)];
    let addresses = ["10.88.2.7/16", "10.88.2.8/16"];
    for (pod, address) in pods.iter().zip(addresses) {
        node.ns.ip(&format!(
            "link add link eth0 name new0 netns {} type macvlan mode bridge",
            pod.id()
        ));
        pod.ip("link set new0 name eth0");
        pod.ip("link set eth0 up");
        pod.ip(&format!("addr add {address} dev eth0"));
    }
    let netfix = |words: &str| with(&node, &pods.each_ref(), words);
    netfix("snapshot").exits(0).stdout_has(&["2 selected pods"]);
    node.lose_and_reload();
    assert!(
        pods.iter()
            .all(|pod| !pod.ip("-o link show").contains("eth0"))
    );
    netfix("check").exits(2);
    netfix("restore")
        .exits(0)
        .stdout_has(&["2 selected pods restored"]);
    for (pod, address) in pods.iter().zip(addresses) {
        assert!(pod.ip("-o addr show dev eth0").contains(address));
    }
}

#[test]
fn a_container_on_the_network_none_is_no_pod_and_one_on_a_macvlan_is() {
    let node = Node::new();
    let web = node.pod("web").simple().with_process();
    let container = |pod: &Pod<'_>, number: u8, mode: &str| Container {
        id: id(number),
        name: format!("c{number}"),
        network_mode: mode.to_owned(),
        pid: pod.process_id(),
        netns: pod.ns.path(),
        ..Container::default()
    };
    node.snapshot();
    let job = node.pod("job").with_process();
    for (mode, exit, verdict) in [("none", 0, 0), ("macvlan7", 5, 2)] {
        let known = vec![container(&web, 1, "bridge"), container(&job, 2, mode)];
        let docker = FakeDocker::start(&node.temp().join(mode), known);
        let runtime = auto(&docker.socket);
        for command in ["plan", "restore"] {
            node.netfix(&format!("{command} {runtime}")).exits(exit);
        }
        node.netfix(&format!("check {runtime}")).exits(verdict);
    }
    // Without the runtime it may be any container.
    node.netfix("plan").exits(5);
}

#[test]
fn a_namespace_that_no_runtime_knows_is_no_pod_if_they_know_all_others() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let sandboxes = [
        Sandbox::of(&pods[0], "web-0", 1),
        Sandbox::of(&pods[1], "web-1", 2),
    ];
    let runtime = cri(&node, &sandboxes);
    node.netfix(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    let tool = node.pod("tool");
    for command in ["check", "plan", "restore"] {
        let words = format!("{command} {}", auto(&runtime.socket));
        node.netfix(&words).exits(0).lacks(tool.name());
    }
    drop(runtime);
    let runtime = cri(&node, &sandboxes[..1]);
    node.netfix(&format!("plan {}", auto(&runtime.socket)))
        .exits(5)
        .errors(&[("checkpoint-missing", tool.name())]);
}

#[test]
fn status_counts_private_namespaces_apart_from_pods() {
    let node = Node::new();
    let machine = Machine::start(&node);
    let figures = || {
        let run = Run::inside(&machine, &node.state_dir(), "status -o json");
        let status = &run.json()["status"];
        let figure = |key: &str| status[key].as_u64().expect("a number");
        (figure("running"), figure("private_namespaces"))
    };
    let before = figures();
    let mut child = machine
        .exec("unshare")
        .args(["--net", "sleep", "600"])
        .spawn()
        .expect("it starts");
    let is_counted = || figures() == (before.0, before.1 + 1);
    let counted = wait_until(is_counted);
    let run = Run::inside(&machine, &node.state_dir(), "status -v");
    let _ = child.kill();
    let _ = child.wait();
    assert!(counted, "{before:?}\n{}", run.transcript());
    run.stdout_has(&["no pods"]);
}

/// A namespace that a user without rights makes, in this cgroup.
fn of_a_user(cgroup: &Cgroup) -> Alone {
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let own = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "sleep",
        "600",
    ];
    Alone::by(Command::new("setpriv").args(nobody).args(own)).moved(cgroup)
}

/// A cgroup without a name of a container, and that of a container.
fn cgroups(node: &Node) -> [Cgroup; 2] {
    let of_pod = format!("kubepods/burstable/pod{}/{}", uid(8), unique_id());
    [node.ns.name(), &of_pod].map(Cgroup::new)
}

#[test]
fn what_users_put_into_their_namespaces_takes_nothing_from_a_pod() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let cgroups = cgroups(&node);
    let users = cgroups.each_ref().map(of_a_user);
    for user in &users {
        user.ip("link add d0 type veth peer name d1");
        user.ip(&format!("addr add {}/16 dev d0", pods[0].address()));
        user.ip("link set d0 up");
        user.ip("link add t0 type vxlan id 9 dstport 4789");
    }
    let netfix = |words: &str| {
        let run = with(&node, &users.each_ref(), words).exits(0);
        let run = run.lacks(&users[0].path());
        run.lacks(&users[1].path())
    };
    for command in ["snapshot", "check", "plan", "diff"] {
        netfix(command).stdout_has(&["2 "]);
    }
    node.lose_and_reload();
    netfix("restore").stdout_has(&["2 selected pods restored"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_pod_that_is_being_created_is_a_warning_and_after_a_loss_an_error() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    let new = node.pod("new");
    let missing = [("checkpoint-missing", new.name())];
    node.netfix_alone("check -o json")
        .exits(1)
        .errors(&[])
        .warnings(&missing);
    node.lose_and_reload();
    let run = node.netfix_alone("check -o json").exits(2);
    assert!(
        run.coded("checkpoint-missing")[0].severity == "error",
        "{}",
        run.transcript()
    );
}
