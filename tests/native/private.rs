//! Namespaces of services, sandboxed programs and containers without a network are no pods; a pod that lost everything
//! is one, also without a checkpoint.

use std::process::Command;

use crate::common::alone::Alone;
use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::runtimes::{Cgroup, Container, FakeCri, FakeDocker, Sandbox, Script, auto, id};
use crate::common::runtimes::{uid, unique_id};
use crate::common::{Node, Pod, Run, tool};

/// netfix for this node's pods and this namespace.
fn with(node: &Node, alone: &Alone, words: &str) -> Run {
    node.netfix(&format!("{words} --netns {}", alone.path()))
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

/// The namespace is no finding of any command, before and after a loss, and no verdict counts it.
fn assert_ignored(alone: &Alone, node: &Node) {
    let pods = node.simple_pods(2);
    node.snapshot();
    assert_eq!(alone.ip("-o link show").lines().count(), 1, "only lo");
    with(node, alone, "check").exits(0).stdout_has(&["2 of 2"]);
    with(node, alone, "plan")
        .exits(0)
        .stdout_has(&["2 selected pods"]);
    with(node, alone, "diff").exits(0);
    node.lose_and_reload();
    let run = with(node, alone, "restore").exits(0);
    let run = run
        .stdout_has(&["2 selected pods"])
        .has_no("checkpoint-missing");
    run.lacks(&alone.path());
    assert!(pods.iter().all(Pod::has_eth0), "a pod is not restored");
    let run = with(node, alone, "verify").exits(0);
    run.stdout_has(&["2 selected pods"]).lacks(&alone.path());
    let run = with(node, alone, "snapshot").exits(0);
    run.stdout_has(&["2 selected pods"]).lacks(&alone.path());
}

#[test]
fn the_namespace_of_a_service_is_no_pod() {
    let node = Node::new();
    let cgroup = Cgroup::new(&format!("system.slice/{}.service", node.ns.name()));
    assert_ignored(&Alone::start().moved(&cgroup), &node);
}

#[test]
fn the_namespace_of_a_program_beside_netfix_is_no_pod() {
    let node = Node::new();
    assert_ignored(&Alone::start(), &node);
}

#[test]
fn a_bare_namespace_in_a_cgroup_of_pods_may_have_lost_its_interfaces() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let cgroup = Cgroup::new(&format!("kubepods/burstable/pod{}/{}", uid(7), unique_id()));
    let alone = Alone::start().moved(&cgroup);
    with(&node, &alone, "check").exits(2);
    for command in ["plan", "restore"] {
        let run = with(&node, &alone, command).exits(5);
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
fn a_services_namespace_with_a_checkpoint_is_restored() {
    let node = Node::new();
    let cgroup = Cgroup::new(&format!("system.slice/{}.service", node.ns.name()));
    let alone = Alone::start().moved(&cgroup);
    let pid = alone.id();
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {pid} type macvlan mode bridge"
    ));
    alone.ip("link set new0 name eth0");
    alone.ip("link set eth0 up");
    alone.ip("addr add 10.88.2.7/16 dev eth0");
    with(&node, &alone, "snapshot").exits(0);
    node.lose_and_reload();
    assert!(!alone.ip("-o link show").contains("eth0"));
    with(&node, &alone, "check").exits(2);
    with(&node, &alone, "restore")
        .exits(0)
        .stdout_has(&["1 selected pod restored"]);
    assert!(alone.ip("-o addr show dev eth0").contains("10.88.2.7/16"));
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
    let run = Run::inside(&machine, &node.state_dir(), "status");
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
fn a_namespace_that_any_user_can_make_is_no_pod() {
    for number in 0..2 {
        let node = Node::new();
        let cgroup = &cgroups(&node)[number];
        assert_ignored(&of_a_user(cgroup), &node);
    }
}

#[test]
fn what_a_user_puts_into_a_namespace_takes_nothing_from_a_pod() {
    for number in 0..2 {
        let node = Node::new();
        let pods = node.simple_pods(2);
        let before: Vec<_> = pods.iter().map(Pod::capture).collect();
        let cgroup = &cgroups(&node)[number];
        let user = of_a_user(cgroup);
        user.ip("link add d0 type veth peer name d1");
        let addresses = pods[0].ip("-4 -o addr show dev eth0");
        let address = addresses.split_whitespace().nth(3).expect("an address");
        user.ip(&format!("addr add {address} dev d0"));
        user.ip("link set d0 up");
        user.ip("link add t0 type vxlan id 9 dstport 4789");
        for command in ["snapshot", "check", "plan", "diff"] {
            with(&node, &user, command)
                .exits(0)
                .stdout_has(&["2 "])
                .lacks(&user.path());
        }
        node.lose_and_reload();
        with(&node, &user, "restore")
            .exits(0)
            .stdout_has(&["2 selected pods restored"]);
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
    }
}

#[test]
fn a_pod_with_a_user_namespace_is_restored() {
    let node = Node::new();
    let [cgroup, _] = cgroups(&node);
    let alone = of_a_user(&cgroup);
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {} type macvlan mode bridge",
        alone.id()
    ));
    alone.ip("link set new0 name eth0");
    alone.ip("link set eth0 up");
    alone.ip("addr add 10.88.2.8/16 dev eth0");
    with(&node, &alone, "snapshot")
        .exits(0)
        .stdout_has(&["1 selected pod"]);
    node.lose_and_reload();
    with(&node, &alone, "check").exits(2);
    with(&node, &alone, "restore")
        .exits(0)
        .stdout_has(&["1 selected pod restored"]);
    assert!(alone.ip("-o addr show dev eth0").contains("10.88.2.8/16"));
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
