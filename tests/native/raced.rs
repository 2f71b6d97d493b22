//! Tables that change during a read: the kernel flags such a dump, and netfix has to read it again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::background::Background;
use crate::common::moment::Moment;
use crate::common::{Node, Pod};

/// Enough addresses for a dump of several datagrams.
const STABLE: usize = 2000;
const ROUNDS: usize = 6;

/// The permanent addresses of a checkpoint.
fn written(node: &Node, pod: &Pod<'_>) -> BTreeSet<String> {
    let text = std::fs::read_to_string(node.checkpoint_of(pod)).expect("the checkpoint");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let addresses = value["netfix"]["state"]["addresses"]
        .as_array()
        .expect("addresses")
        .iter();
    let texts = addresses.filter_map(|address| address["local"].as_str());
    texts
        .filter(|text| text.starts_with("fd99:"))
        .map(str::to_owned)
        .collect()
}

fn batch(pod: &Pod<'_>, script: &str) -> Child {
    let mut command = pod.ns.exec("ip");
    command
        .args(["-force", "-6", "-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("ip starts");
    let script = script.to_owned();
    let mut input = child.stdin.take().expect("a pipe");
    std::thread::spawn(move || input.write_all(script.as_bytes()));
    child
}

#[test]
fn changing_addresses_never_hide_permanent_ones() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let stable = (0..STABLE).fold(String::new(), |mut script, number| {
        writeln!(script, "addr add fd99::{number:x}/128 dev eth0 nodad").expect("a string");
        script
    });
    assert!(batch(&pod, &stable).wait().expect("ip ends").success());
    let change = "while :; do ip addr add fdaa::1/128 dev eth0 nodad; ip addr del fdaa::1/128 dev eth0; done";
    let mut command = pod.ns.exec("sh");
    let changing = Background::start(command.args(["-c", change]), node.temp().join("changes"));
    let count = |_| {
        node.netfix("snapshot").exits(0);
        written(&node, &pod).len()
    };
    let counts: Vec<usize> = (0..ROUNDS).map(count).collect();
    drop(changing);
    let short: Vec<usize> = counts
        .into_iter()
        .filter(|count| *count != STABLE)
        .collect();
    assert!(
        short.is_empty(),
        "of {STABLE} addresses only {short:?} were written"
    );
}

/// A macvlan that is up, under a name that no other link of the machine has.
fn add_link(pod: &Pod<'_>, words: &str) {
    pod.macvlan("mode bridge", words);
    pod.ip("link set eth0 name net7 up");
}

/// The first snapshot; `change` comes when all but the last of a pod is read.
fn assert_is_not_recorded(change: impl FnOnce(&Pod<'_>)) {
    let node = Node::new();
    let pod = node.pod("web");
    add_link(&pod, "");
    pod.ip("addr add 10.77.0.1/24 dev net7");
    let moment = Moment {
        call: "openat",
        holds: "virtual/net/net7",
        cookies: true,
    };
    let run = node.netfix_while("snapshot", &moment, || change(&pod));
    run.exits(1).errors(&[("unreadable", pod.name())]).names(
        "unreadable",
        pod.name(),
        &["macvlan net7"],
    );
    let files = node.state_dir().join("checkpoints").read_dir();
    assert_eq!(files.expect("the folder").count(), 0);
}

#[test]
fn a_pod_whose_link_goes_down_while_it_is_read_is_not_recorded() {
    assert_is_not_recorded(|pod| drop(pod.ip("link set net7 down")));
}

#[test]
fn a_pod_whose_link_is_replaced_while_it_is_read_is_not_recorded() {
    assert_is_not_recorded(|pod| {
        pod.ip("link del net7");
        add_link(pod, "index 77");
    });
}
