//! Names and aliases of links are bytes to the kernel: one that is not UTF-8 comes back byte for byte, and is shown with
//! its bytes escaped.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Node, Pod, Run, run, tool};

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
fn every_text_of_a_tenant_and_of_a_nic_of_the_host_comes_back_byte_for_byte() {
    let node = Node::new();
    let mut pods: Vec<Pod<'_>> = TEXTS.iter().map(|_| node.pod("strange").simple()).collect();
    for (pod, (command, _)) in pods.iter().zip(TEXTS) {
        pod.ip(command);
    }
    pods.push(node.pod("plain").simple());
    node.ns.ip(b"link set eth0 alias N\xfcc");
    node.ns.ip(b"link property add dev eth0 altname n\xfcc-lan");
    let (before, host): (Vec<_>, _) = (pods.iter().map(Pod::capture).collect(), node.capture());
    node.snapshot();
    node.netfix("check").exits(0).stdout_has(&["4 of 4"]);
    let rehearsed = node.netfix_json("check --rehearse");
    let of_host = &rehearsed.json()["check"]["rehearsal"]["host"];
    let found = rehearsed.coded("rehearsal-differs");
    let is_same = *of_host == true && found.iter().all(|one| one.pod.is_some());
    assert!(is_same, "{}", rehearsed.transcript());
    node.lose_and_reload();
    let plan = node.netfix("plan -v");
    for (_, shown) in TEXTS {
        shows(&plan, shown);
    }
    node.restore().stdout_has(&["4 selected pods restored"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
    for words in ["diff", "check"] {
        node.netfix(words).exits(0);
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
fn a_link_with_such_a_name_is_shown_escaped_and_comes_back_with_everything_on_it() {
    let node = Node::new();
    let pods = [pod_with_strange_link(&node), node.pod("plain").simple()];
    let (before, host) = (pods.each_ref().map(Pod::capture), node.capture());
    node.snapshot();
    node.assert_rehearsed(pods.len());
    let show = format!("show {}", pods[0].name());
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
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
    node.netfix("check").exits(0);
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
fn a_nic_of_the_host_with_such_a_name_carries_its_pods_again() {
    let node = Node::without_addresses();
    let rename = || {
        node.ns.ip("link set eth0 down");
        node.ns.ip(b"link set eth0 name n\xfcc");
        node.ns.ip(b"link set n\xfcc up");
    };
    rename();
    let pod = node.pod("web");
    let netns = pod.name().as_bytes();
    let add = b"link add link n\xfcc name new0 netns ".as_slice();
    node.ns
        .ip(&[add, netns, b" type macvlan mode bridge"].concat());
    pod.ip("link set new0 name eth0");
    pod.up_with_address();
    let before = pod.capture();
    node.snapshot();
    node.ns.ip(b"link del n\xfcc");
    node.reload();
    rename();
    shows(
        &node.netfix("plan"),
        "+ macvlan eth0 on n\\xfcc mode bridge",
    );
    node.restore();
    pod.assert_same_as(&before);
    node.netfix("check").exits(0);
}

#[test]
fn an_alias_that_a_tenant_adds_later_changes_nothing() {
    let node = Node::new();
    let pod = node.pod("strange").simple();
    node.snapshot();
    pod.ip(b"link set eth0 alias \xff\xfe");
    let before = pod.capture();
    for command in ["check", "diff", "restore"] {
        node.netfix(command).exits(0);
    }
    node.netfix("diff")
        .names("surplus", pod.name(), &["alias of link eth0"]);
    pod.assert_same_as(&before);
    assert_eq!(node.ns.ip("-o link show").lines().count(), 2, "a stray");
}

/// A namespace that netfix sees only at such a path, with a macvlan.
struct Mounted<'n> {
    pod: Pod<'n>,
    path: PathBuf,
}

impl<'n> Mounted<'n> {
    fn new(node: &'n Node, name: &[u8]) -> Self {
        let pod = node.pod("strange").simple();
        let path = node.temp().join(OsStr::from_bytes(name));
        fs::write(&path, "").expect("a mount point");
        Self { pod, path }
    }

    /// netfix on a machine that has these namespaces and no others. The other tests do not see its mounts.
    fn netfix(node: &Node, all: &[Self; 2], words: &[u8]) -> Run {
        let script = "mount --bind \"$1\" \"$2\" && mount --bind \"$3\" \"$4\" || exit; shift 4
            for netns in /run/netns/*; do umount -l \"$netns\"; done; exec \"$@\"";
        let alone = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"];
        let mut command = node.ns.exec("timeout");
        command
            .arg("600")
            .args(alone)
            .args(["sh", "-c", script, "sh"]);
        for one in all {
            command.arg(one.pod.ns.path()).arg(&one.path);
        }
        command.arg(run::BINARY).args(tool::words(words));
        command.arg("--state-dir").arg(node.state_dir());
        command.env("NETFIX_RUNTIME", "none").env("NO_COLOR", "1");
        Run::of(&mut command)
    }
}

#[test]
fn a_namespace_at_such_a_path_is_found_stored_shown_and_restored() {
    let node = Node::new();
    let all = [
        Mounted::new(&node, b"b\xfcro"),
        Mounted::new(&node, b"b\xf6ro"),
    ];
    let before = all.each_ref().map(|one| one.pod.capture());
    let folder = format!("--netns {}/*", node.temp().display());
    let netfix = |words: &[u8]| Mounted::netfix(&node, &all, words);
    let with = |words: &str| netfix(format!("{words} {folder}").as_bytes());
    with("snapshot")
        .exits(0)
        .stdout_has(&["2 selected pods saved"]);
    let json = with("list -o json").exits(0).json();
    let listed = json["pods"].as_array().expect("pods");
    let of = |key: &str| {
        listed
            .iter()
            .map(|pod| pod[key].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("id"), ["\"b_xf6ro\"", "\"b_xfcro\""]);
    assert_eq!(of("name"), ["\"b\\\\xf6ro\"", "\"b\\\\xfcro\""]);
    assert!(of("netns")[1].ends_with("/b\\\\xfcro\""), "{json}");
    for pod in [b"b\xfcro".as_slice(), b"b\\xfcro", b"b_xfcro"] {
        let of_pod = |words: &[u8]| netfix(&[words, b" ", pod].concat()).exits(0);
        shows(&of_pod(b"show"), "b\\xfcro");
        of_pod(b"list").stdout_has(&["b\\xfcro"]).lacks("b\\xf6ro");
    }
    node.lose_and_reload();
    let by_bytes = [b"restore ".as_slice(), &[b'b', 0xfc], b"*"].concat();
    netfix(&by_bytes)
        .exits(0)
        .stdout_has(&["1 selected pod restored"]);
    let path = [node.temp().as_os_str().as_bytes(), b"/b\\xf6ro"].concat();
    let by_path = [b"restore --netns ".as_slice(), &path].concat();
    netfix(&by_path)
        .exits(0)
        .stdout_has(&["1 selected pod restored"]);
    for (one, before) in all.iter().zip(&before) {
        one.pod.assert_same_as(before);
    }
    with("check").exits(0).stdout_has(&["2 of 2"]);
}
