//! A killed restore that is run again ends with the same state as an undisturbed one.

use std::process::Stdio;
use std::time::Duration;

use crate::common::run::BINARY;
use crate::common::{Node, Pod};

/// Kills the command `words` with SIGKILL after `delay`, so it cannot clean up.
pub fn kill_after(node: &Node, words: &str, delay: Duration) {
    let mut command = std::process::Command::new(BINARY);
    command
        .args(words.split_whitespace())
        .arg("--state-dir")
        .arg(node.state_dir());
    command
        .args(["--netns", &node.pods_glob()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = node.ns.enter(|| command.spawn()).expect("netfix starts");
    std::thread::sleep(delay);
    let _ = child.kill();
    child.wait().expect("the killed netfix");
}

#[test]
fn a_restore_killed_at_any_instant_is_completed_by_the_next() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    pods[0].ip(&format!("addr add {}/64 dev eth0", pods[0].address6()));
    pods[1].ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let host = node.capture();
    node.snapshot();
    for milliseconds in [1, 3, 5, 7, 9, 12, 15, 20, 30] {
        node.lose_and_reload();
        kill_after(&node, "restore", Duration::from_millis(milliseconds));
        node.restore();
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        node.assert_same_as(&host);
    }
}

#[test]
fn a_link_of_the_host_is_never_moved_to_a_pod() {
    for words in [
        "type veth peer name other1",
        "link eth0 address MAC type macvlan mode private",
        "link eth0 address MAC type macvlan mode bridge",
        "link other0 address MAC type macvlan mode bridge",
    ] {
        let node = Node::new();
        let pods = node.simple_pods(2);
        let before: Vec<_> = pods.iter().map(Pod::capture).collect();
        let index = pods[0].ns.index_of("eth0");
        node.snapshot();
        node.lose_and_reload();
        // The first pod's link goes through another namespace, the second one's does not.
        pods[0].ip(&format!("link add taker0 index {index} type ifb"));
        node.ns.ip("link add other0 type ifb");
        let links = pods.iter().map(|pod| {
            let mac = pod.mac();
            let name = format!("nfx{}", mac.replace(':', ""));
            let words = words.replace("MAC", &mac).replace("other1", &mac[15..]);
            node.ns.ip(&format!("link add {name} {words}"));
            name
        });
        let links: Vec<String> = links.collect();
        // Without the state of its lower device.
        let shown = |name: &String| {
            let text = node.ns.ip(&format!("-d -o link show {name}"));
            text.replace(",M-DOWN", "")
        };
        let as_made: Vec<String> = links.iter().map(shown).collect();
        node.netfix("restore").exits(0);
        pods[1].assert_same_as(&before[1]);
        assert!(
            pods[0]
                .ip("addr show dev eth0")
                .contains(&pods[0].address())
        );
        let now: Vec<String> = links.iter().map(shown).collect();
        assert_eq!(now, as_made, "a link of the host was changed");
    }
}
