//! Names and aliases of links are bytes to the kernel: one that is not UTF-8 comes back byte for byte, and is shown with
//! its bytes escaped.

use serde_json::Value;

use crate::common::{Node, Pod, Run};

/// What a tenant, or an administrator with an old terminal, gives a pod: a command for ip(8), and how netfix shows it.
const TEXTS: [(&[u8], &str); 3] = [
    (b"link set eth0 alias B\xfcro", "B\\xfcro"),
    (
        b"link property add dev eth0 altname b\xfcro-lan",
        "b\\xfcro-lan",
    ),
    (
        b"addr add 10.88.9.9/16 dev eth0 label eth0:\xfc",
        "10.88.9.9",
    ),
];

#[test]
fn every_text_of_a_tenant_comes_back_byte_for_byte() {
    for (command, shown) in TEXTS {
        let node = Node::new();
        let pods = [node.pod("strange").simple(), node.pod("plain").simple()];
        pods[0].ip(command);
        let before: Vec<_> = pods.iter().map(Pod::capture).collect();
        node.snapshot();
        node.netfix("check").exits(0).stdout_has(&["2 of 2"]);
        node.lose_and_reload();
        shows(&node.netfix("plan"), shown);
        node.restore().stdout_has(&["2 pods restored"]);
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        node.netfix("diff").exits(0);
    }
}

fn shows(run: &Run, text: &str) {
    assert!(run.out.contains(text), "no {text}\n{}", run.transcript());
    assert!(!run.out.contains('\u{fffd}'), "{}", run.transcript());
}

/// A pod whose only link has such a name.
fn pod_with_strange_link(node: &Node) -> Pod<'_> {
    let pod = node.pod("strange");
    pod.macvlan("mode bridge", "");
    for command in [
        b"link set eth0 name b\xfcro".as_slice(),
        b"link set b\xfcro up",
        b"addr add 10.88.5.5/16 dev b\xfcro",
        b"route add default via 10.88.0.1 dev b\xfcro",
        b"neigh add 10.88.5.6 lladdr 02:00:00:00:00:07 dev b\xfcro nud permanent",
    ] {
        pod.ip(command);
    }
    pod.ns.set_sysctl(b"ipv4/conf/b\xfcro/arp_announce", "2");
    pod
}

#[test]
fn a_link_with_such_a_name_comes_back_with_everything_on_it() {
    let node = Node::new();
    let pods = [pod_with_strange_link(&node), node.pod("plain").simple()];
    node.assert_all_survive_a_loss(&pods);
    node.netfix("check").exits(0);
}

#[test]
fn every_command_shows_such_a_name_escaped() {
    let node = Node::new();
    let pod = pod_with_strange_link(&node);
    node.snapshot();
    let show = format!("show {}", pod.name());
    shows(&node.netfix_alone(&show).exits(0), "b\\xfcro");
    shows(&node.netfix("list").exits(0), "b\\xfcro");
    let shown = node.netfix_alone(&format!("{show} -o json"));
    let others = ["list", "check", "verify", "snapshot"].map(|words| node.netfix_json(words));
    for run in others.into_iter().chain([shown]) {
        let run = run.exits(0);
        let _: Value = run.json();
        shows(&run, "b\\\\xfcro");
    }
    node.lose_and_reload();
    for words in ["plan", "diff", "restore"] {
        shows(&node.netfix_json(words), "b\\\\xfcro");
    }
}

#[test]
fn a_rule_for_such_a_name_comes_back() {
    let node = Node::new();
    let pod = node.pod("strange").simple();
    pod.ip(b"rule add pref 77 iif b\xfcro oif eth\xff lookup 77");
    let before = pod.capture();
    node.snapshot();
    pod.ip("rule del pref 77");
    shows(&node.netfix("diff").exits(3), "iif b\\xfcro oif eth\\xff");
    node.restore();
    pod.assert_same_as(&before);
}

#[test]
fn a_nic_of_the_host_with_such_an_alias_stops_no_pod() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.ns.ip(b"link set eth0 alias B\xfcro");
    node.ns
        .ip(b"link property add dev eth0 altname b\xfcro-lan");
    node.assert_all_survive_a_loss(&pods);
    node.netfix("check").exits(0);
}
