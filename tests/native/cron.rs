//! Snapshots from cron during a loss, a restore, and a loss in the middle of a read.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::background::{Background, wait_until};
use crate::common::kept::{json, node_json};
use crate::common::run::injecting;
use crate::common::{Node, Pod};

/// A checkpoint without the values that change without a loss: the time, the carrier, which comes a moment later, and
/// the oldest process, because these tests run programs in the pods.
fn essence(bytes: &[u8]) -> Value {
    let mut value = json(bytes);
    value["netfix"]["created"] = Value::Null;
    value["netfix"]["created_boottime"] = Value::Null;
    value["netfix"]["checksum"] = Value::Null;
    value["netfix"]["identity"]["holder"] = Value::Null;
    for link in value["netfix"]["state"]["links"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        link["flags"]["carrier"] = Value::Null;
    }
    value
}

/// Only the good checkpoint and the good state of the host were ever stored.
fn assert_only_good(node: &Node, pods: &[Pod<'_>], good: &[Value]) {
    for (pod, good) in pods.iter().zip(good) {
        for held in node.kept_of(pod).iter().chain([&node.stored_of(pod)]) {
            assert_eq!(&essence(held), good, "{}", pod.name());
        }
    }
    let folders = node
        .generations()
        .into_iter()
        .map(|number| node.generation(number));
    for folder in folders.chain([node.state_dir()]) {
        let addresses = node_json(&folder)["state"]["addresses"].to_string();
        assert!(
            addresses.contains("10.88.0.2"),
            "{}: {addresses}",
            folder.display()
        );
    }
}

fn pods_with_routes(node: &Node) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(3);
    for pod in &pods {
        pod.ip("route add 172.16.0.0/12 via 10.88.0.3");
        pod.ip("neigh add 10.88.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent");
        pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
        let is_up = || pod.ip("-o link show dev eth0").contains("state UP");
        assert!(wait_until(is_up), "{} never came up", pod.name());
    }
    pods
}

/// Takes snapshots one after the other until the file `stop` exists. Each prints its exit code on a line.
fn snapshots(node: &Node) -> (Background, PathBuf) {
    let stop = node.temp().join("stop");
    let script =
        "while [ ! -e \"$0\" ]; do \"$@\" >/dev/null 2>&1; echo \"exit $?\"; sleep 0.01; done";
    let mut command =
        node.netfix_command(&["sh", "-c", script, &stop.to_string_lossy()], "snapshot");
    (
        Background::start(&mut command, node.temp().join("snapshots")),
        stop,
    )
}

/// The exit codes of the runs that found the lock free.
fn that_ran(background: &Background) -> Vec<String> {
    let text = background.text();
    text.lines()
        .filter(|line| *line != "exit 4")
        .map(str::to_owned)
        .collect()
}

#[test]
fn continuous_snapshots_during_loss_and_restore_lose_no_good_checkpoint() {
    const ENOUGH: usize = 24;
    const LEAST: usize = 4;
    const MOST: usize = 40;
    let node = Node::new();
    let pods = pods_with_routes(&node);
    let (before, host): (Vec<_>, _) = (pods.iter().map(Pod::capture).collect(), node.capture());
    node.snapshot();
    let good: Vec<Value> = pods
        .iter()
        .map(|pod| essence(&node.stored_of(pod)))
        .collect();
    let (background, stop) = snapshots(&node);
    let has_seen = |code: &str| that_ran(&background).iter().any(|line| line == code);
    let is_enough =
        || that_ran(&background).len() >= ENOUGH && has_seen("exit 0") && has_seen("exit 1");
    let mut rounds = 0;
    while rounds < LEAST || (rounds < MOST && !is_enough()) {
        node.lose();
        // The longest lasts longer than a snapshot's second observation.
        std::thread::sleep(Duration::from_millis([0, 30, 60, 1500][rounds % 4]));
        node.reload();
        let restored = wait_until(|| {
            let run = node.netfix("restore");
            let is_held = run.code == Some(4);
            if is_held {
                run.errors(&[("lock-held", "")]);
            } else {
                run.exits(0);
            }
            !is_held
        });
        assert!(restored, "the lock was never free for a restore");
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        rounds += 1;
    }
    fs::write(stop, "").expect("the sign to stop");
    let ran = that_ran(&background);
    background.finish();
    assert!(
        ran.iter().any(|line| line == "exit 0"),
        "no snapshot saw a good moment: {ran:?}"
    );
    assert!(
        ran.iter().any(|line| line == "exit 1"),
        "no snapshot saw a bad moment: {ran:?}"
    );
    node.assert_same_as(&host);
    node.snapshot();
    assert_only_good(&node, &pods, &good);
    node.assert_all_loads();
}

/// Loses the NIC at every step of a snapshot whose kernel queries are slow, so that the loss falls between any two of
/// them. Repeats this until snapshots have ended with each of these exit codes, because the machine's speed varies.
fn losses_during(node: &Node, words: &str, ends: [i32; 2], after_each: impl Fn()) {
    const STEPS: u32 = 8;
    const ROUNDS: usize = 10;
    let slow_snapshot = || {
        let wrapper = injecting("inject=sendto:delay_enter=15000");
        let mut command = node.netfix_command(&wrapper, words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.expect("strace starts")
    };
    // The last one is after the end.
    let lose_at = |step, whole: Duration| {
        let mut snapshot = slow_snapshot();
        std::thread::sleep(whole * step * 5 / (STEPS * 4));
        node.lose();
        let code = snapshot.wait().expect("the snapshot ends").code();
        after_each();
        node.reload();
        node.netfix("restore --conflict-probe off").exits(0);
        code
    };
    let mut codes = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert_eq!(slow_snapshot().wait().expect("a snapshot").code(), Some(0));
        let whole = began.elapsed();
        codes.extend((1..=STEPS).map(|step| lose_at(step, whole)));
        if ends.iter().all(|end| codes.contains(&Some(*end))) {
            return;
        }
    }
    panic!("not all of {ends:?} were seen: {codes:?}");
}

#[test]
fn a_loss_while_pods_are_read_is_never_saved() {
    let node = Node::new();
    let pods = pods_with_routes(&node);
    node.snapshot();
    let good: Vec<Value> = pods
        .iter()
        .map(|pod| essence(&node.stored_of(pod)))
        .collect();
    losses_during(&node, "snapshot", [0, 1], || {
        assert_only_good(&node, &pods, &good);
    });
}

#[test]
fn a_loss_while_the_host_is_read_is_never_saved() {
    let node = Node::new();
    let pods = pods_with_routes(&node);
    let unharmed = node.pod("plain");
    unharmed.ip("link add veth0 type veth peer name veth1");
    node.snapshot();
    let good: Vec<Value> = pods
        .iter()
        .map(|pod| essence(&node.stored_of(pod)))
        .collect();
    let words = format!("snapshot --pod {}", unharmed.name());
    losses_during(&node, &words, [0, 5], || {
        assert_only_good(&node, &pods, &good);
    });
}
