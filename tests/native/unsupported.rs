//! netfix reports every object that it cannot restore, by pod and object.

use std::fs;

use crate::common::background::Background;
use crate::common::{Node, Pod, ReportedProblem, Run};

/// A pod with a VXLAN on the node's parent, which is lost with it: a table of networks of its own makes it one that netfix cannot
/// make again.
fn pod_with_vxlan<'n>(node: &'n Node, name: &str) -> Pod<'n> {
    let pod = node.pod(name);
    node.ns
        .ip("link add vx7 type vxlan external vnifilter dstport 4789 dev eth0");
    node.ns.ip(&format!("link set vx7 netns {}", pod.name()));
    pod.ip("link set vx7 up");
    pod.ip("addr add 172.20.0.5/24 dev vx7");
    pod
}

#[test]
fn an_unsupported_kind_is_reported_and_the_other_pods_are_restored() {
    let node = Node::new();
    let strange = pod_with_vxlan(&node, "strange");
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.netfix("snapshot");
    node.lose_and_reload();
    assert!(!strange.ns.has_link("vx7"), "the VXLAN outlived its parent");
    node.netfix("restore")
        .exits(5)
        .errors(&[("unsupported", strange.name())])
        .names("unsupported", strange.name(), &["vx7", "vxlan"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let run = node
        .netfix_json("restore")
        .exits(5)
        .errors(&[("unsupported", strange.name())]);
    assert_ne!(
        run.pod(&strange)["state"],
        run.pod(&pods[0])["state"],
        "{}",
        run.transcript()
    );
}

/// Makes something in a pod that has its macvlan, and that no restore could bring back.
type Make = fn(&Node, &Pod<'_>);

/// Objects that no restore could bring back, by a word of their problem.
const OBJECTS: [(&str, Make); 6] = [
    ("vxlan", |node, pod| {
        node.ns
            .ip("link add vx7 type vxlan external vnifilter dstport 4789 dev eth0");
        node.ns.ip(&format!("link set vx7 netns {}", pod.name()));
    }),
    ("another namespace", |node, pod| {
        let gateway = &node.gateway;
        gateway.ip("link add mv7 link up0 type macvlan mode bridge");
        gateway.ip(&format!("link set mv7 netns {}", pod.name()));
    }),
    ("autojoin", |_, pod| {
        pod.ip("addr add ff05::7/128 dev eth0 autojoin");
    }),
    ("filter bpf", |_, pod| pod.add_bpf_filter()),
    ("tcx program", |_, pod| pod.attach_program("tcx")),
    ("XDP program", |_, pod| pod.attach_program("xdp")),
];

/// Each pod has an error that names its object of `OBJECTS`, and there is no other error.
fn names_each_object(mut run: Run, pods: &[Pod<'_>]) {
    let errors: Vec<_> = pods.iter().map(|pod| ("unsupported", pod.name())).collect();
    run = run.errors(&errors);
    for (pod, (word, _)) in pods.iter().zip(OBJECTS) {
        run = run.names("unsupported", pod.name(), &[word]);
    }
}

#[test]
fn a_check_is_critical_for_each_object_that_no_restore_could_bring_back() {
    let node = Node::new();
    let pods = OBJECTS.map(|(_, make)| {
        let pod = node.pod("strange").simple();
        make(&node, &pod);
        pod
    });
    let _plain = node.pod("plain").simple();
    names_each_object(node.netfix_alone("snapshot").exits(5), &pods);
    let file = node.temp().join("netfix.prom");
    let run = node.netfix_alone(&format!("check --textfile {}", file.display()));
    names_each_object(run.exits(2), &pods);
    let text = fs::read_to_string(&file).expect("the metrics");
    assert!(text.contains("\nnetfix_unsupported_objects 6\n"), "{text}");
}

#[test]
fn a_check_finds_an_object_that_the_checkpoint_does_not_have() {
    let node = Node::new();
    let (saved, late) = (node.pod("saved").simple(), node.pod("late"));
    node.snapshot();
    let late = late.simple();
    for (pod, (_, make)) in [&saved, &late].into_iter().zip([OBJECTS[2], OBJECTS[3]]) {
        make(&node, pod);
    }
    node.netfix("check")
        .exits(2)
        .errors(&[("unsupported", saved.name()), ("unsupported", late.name())])
        .names("unsupported", saved.name(), &["autojoin"])
        .names("unsupported", late.name(), &["filter bpf"]);
}

#[test]
fn the_membership_of_a_group_that_no_restore_brings_back_is_no_lost_network() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    // Its only address of IPv6.
    pod.ip("link set eth0 addrgenmode none");
    pod.ip("-6 addr flush dev eth0");
    pod.ip("addr add ff05::7/128 dev eth0 autojoin");
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    for (command, exit) in [("restore", 5), ("restore", 5), ("diff", 5), ("check", 2)] {
        node.netfix(command)
            .exits(exit)
            .errors(&[("unsupported", pod.name())])
            .names("unsupported", pod.name(), &["ff05::7", "autojoin"]);
    }
}

#[test]
fn a_plan_warns_of_an_object_that_no_restore_could_bring_back_and_that_is_not_lost() {
    let node = Node::new();
    let strange = pod_with_vxlan(&node, "strange");
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    node.netfix("snapshot").exits(5);
    for command in ["plan", "restore --dry-run", "diff", "plan --exit-code"] {
        let run = node.netfix(command).exits(0).errors(&[]);
        run.names("unsupported", strange.name(), &["vxlan vx7"]);
    }
    let metrics = node.netfix_json("check").exits(2).json();
    assert_eq!(metrics["check"]["unsupported"], 1, "{metrics}");
    pods[0].ip("link del eth0");
    node.restore();
    pods[0].assert_same_as(&before);
}

/// The kinds of programs on the host, the words of their problems, and the links that have them.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("tcx", "tcx program", "mv0"), ("xdp", "XDP program", "mv1")];

/// Links of the host that are lost with the NIC.
fn add_links(node: &Node) {
    for (_, _, link) in PROGRAMS {
        node.ns.ip(&format!(
            "link add {link} link eth0 type macvlan mode bridge"
        ));
        node.ns.ip(&format!("link set {link} up"));
    }
}

/// A program on each of them, and the daemons to which they belong.
fn agents(node: &Node) -> [Background; 2] {
    PROGRAMS.map(|(kind, _, link)| {
        let mut command = node.ns.exec("python3");
        command.args(["-c", include_str!("../common/bpf.py"), kind, link, "agent"]);
        let agent = Background::start(&mut command, node.temp().join(kind));
        agent.wait_for("attached");
        agent
    })
}

/// There is no error, and a problem names each program with its owner.
fn leaves_them_to_the_agent(run: Run) {
    let mut run = run.errors(&[]);
    for (_, word, link) in PROGRAMS {
        run = run.names("unsupported", "", &[word, link, "agent"]);
    }
}

/// Each program has an error of the host, and there is no other error.
fn has_an_error_of_each(run: Run) {
    let run = run.errors(&[("unsupported", "")]);
    let problems = run.coded("unsupported");
    for (_, word, link) in PROGRAMS {
        let is_it = |one: &ReportedProblem| one.is_error() && one.has(word) && one.has(link);
        assert!(problems.iter().any(is_it), "{word}\n{}", run.transcript());
    }
}

#[test]
fn a_program_on_the_host_is_left_to_its_owner_while_that_runs() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    add_links(&node);
    let owners = agents(&node);
    for (command, exit) in [("snapshot", 0), ("check", 1)] {
        leaves_them_to_the_agent(node.netfix(command).exits(exit));
    }
    node.lose_and_reload();
    for (command, exit) in [("restore", 0), ("check", 1)] {
        leaves_them_to_the_agent(node.netfix(command).exits(exit));
    }

    drop(owners);
    for (command, exit) in [("check", 2), ("restore", 5)] {
        has_an_error_of_each(node.netfix(command).exits(exit));
    }
    // Other owners have brought them back.
    let _owners = agents(&node);
    node.netfix("restore").exits(0).errors(&[]);
    node.netfix("snapshot").exits(0);
}

#[test]
fn a_program_on_the_host_that_no_process_would_load_again_is_an_error() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    add_links(&node);
    drop(agents(&node));
    for (command, exit) in [("snapshot", 5), ("check", 2)] {
        has_an_error_of_each(node.netfix(command).exits(exit));
    }
}
