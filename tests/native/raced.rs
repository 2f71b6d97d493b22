//! Tables that change during a read: the kernel flags such a dump, and netfix has to read it again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::background::Background;
use crate::common::{Node, Pod};

/// Enough addresses for a dump of several datagrams.
const STABLE: usize = 2000;
const ROUNDS: usize = 40;

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
