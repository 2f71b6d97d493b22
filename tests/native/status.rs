//! `netfix status`: which pods have their network, and what could not be read. A person types it first.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Node, Pod, Run};

/// `netfix status` on a machine with this node's pods alone; it may change nothing.
fn status(node: &Node, words: &str) -> Run {
    let before = node.state_files();
    let run = node.netfix_alone(&format!("status {words}"));
    assert_eq!(node.state_files(), before, "status has written");
    run
}

fn network(node: &Node) -> Value {
    let run = status(node, "-o json");
    run.json()["status"]["network"].clone()
}

/// The same without the list of lost pods, and what the host has lost.
fn counts(node: &Node) -> Value {
    let mut network = network(node);
    let keys = network.as_object_mut().expect("an object");
    keys.retain(|key, _| !matches!(key.as_str(), "lost_pods" | "host"));
    network
}

/// The line of `status` that begins with this word.
fn line(run: &Run, word: &str) -> String {
    let mut lines = run.out.lines();
    let found = lines.find(|line| line.split_whitespace().next() == Some(word));
    found
        .unwrap_or_else(|| panic!("no {word}\n{}", run.transcript()))
        .to_owned()
}

#[track_caller]
fn assert_network(node: &Node, expected: &str) -> Run {
    let run = status(node, "").exits(0);
    assert_eq!(
        line(&run, "network"),
        format!("network    {expected}"),
        "{}",
        run.transcript()
    );
    run
}

/// These pods are lost for this reason, and the next command restores them.
#[track_caller]
fn assert_lost(run: &Run, why: &str, pods: &[&Pod<'_>]) {
    let mut names: Vec<&str> = pods.iter().map(|pod| pod.name()).collect();
    names.sort_unstable();
    let expected = format!("lost       {why}: {}", names.join(", "));
    assert_eq!(line(run, "lost"), expected, "{}", run.transcript());
    assert_eq!(line(run, "next"), "next       Run `netfix restore`");
}

/// The links of a pod, by `ip`.
fn links(pod: &Pod<'_>) -> Vec<String> {
    let listed: Value = serde_json::from_str(&pod.ip("-j link")).expect("JSON of ip");
    let links = listed.as_array().into_iter().flatten();
    links
        .filter_map(|link| Some(link["ifname"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_pod_whose_next_hop_is_a_permanent_neighbour_has_its_network_until_that_is_gone() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let neighbour = "10.88.0.1 lladdr 02:00:00:88:00:01 dev eth0";
    pod.ip("link set eth0 arp off");
    pod.ip(&format!("neigh add {neighbour} nud permanent"));
    node.netfix_alone("snapshot").exits(0);
    assert_eq!(network(&node)["complete"], 1);
    pod.ip(&format!("neigh del {neighbour}"));
    assert_eq!(network(&node)["lost"], 1);
}

#[test]
fn the_missing_nic_and_the_pods_without_network_are_shown() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.netfix_alone("snapshot").exits(0);
    let run = assert_network(&node, "3 of 3 pods have their network");
    assert!(!run.out.contains("lost "), "{}", run.transcript());
    assert_eq!(line(&run, "next"), "next       nothing to do");
    assert!(line(&run, "nic").contains("eth0 ("), "{}", run.transcript());
    assert_eq!(
        counts(&node),
        json!({ "pods": 3, "complete": 3, "lost": 0, "cut_off": 0, "unknown": 0, "links": [] })
    );

    node.lose();
    assert!(!node.ns.has_link("eth0"));
    assert!(pods.iter().all(|pod| links(pod) == ["lo"]));
    let run = assert_network(&node, "0 of 3 pods have their network: eth0 is missing");
    let all: Vec<&Pod<'_>> = pods.iter().collect();
    assert_lost(&run, "macvlan eth0 is gone", &all);
    assert!(!run.out.contains("\nnic "), "{}", run.transcript());
    let lost = network(&node)["lost_pods"].clone();
    let lost = lost.as_array().expect("a list");
    assert_eq!(lost.len(), 3, "{lost:#?}");
    for pod in lost {
        assert_eq!(
            (&pod["link"], &pod["what"]),
            (&"macvlan eth0".into(), &"link-gone".into())
        );
    }
    let links = json!([{ "name": "eth0", "state": "missing" }]);
    assert_eq!(
        counts(&node),
        json!({ "pods": 3, "complete": 0, "lost": 3, "cut_off": 0, "unknown": 0, "links": links })
    );

    node.reload();
    assert_network(&node, "0 of 3 pods have their network: eth0 is down");
    node.netfix_alone("restore").exits(0);
    assert_network(&node, "3 of 3 pods have their network");
    pods[1].ip("link del eth0");
    let run = assert_network(&node, "2 of 3 pods have their network");
    assert_lost(&run, "macvlan eth0 is gone", &[&pods[1]]);
}

#[test]
fn a_nic_without_carrier_is_shown_beside_pods_that_have_everything() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    node.gateway.ip("link set up0 down");
    assert_network(
        &node,
        "2 of 2 pods have their network, but eth0 has no carrier",
    );
    assert_eq!(
        network(&node)["links"],
        json!([{ "name": "eth0", "state": "no-carrier" }])
    );
}

#[test]
fn a_pod_without_interface_and_without_checkpoint_has_no_network() {
    let node = Node::new();
    let _old = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    let young = node.pod("young").simple();
    assert_network(&node, "2 of 2 pods have their network");
    node.lose_and_reload();
    node.netfix_alone("restore").exits(5);
    assert_eq!(links(&young), ["lo"]);
    let run = assert_network(&node, "1 of 2 pods has its network");
    let lost = format!("lost       no interface, no checkpoint: {}", young.name());
    assert_eq!(line(&run, "lost"), lost);
    assert!(line(&run, "next").contains("rebuild the lost pods"));
}

#[test]
fn what_cannot_be_read_is_a_dash_with_its_reason_and_not_none() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    let state = node.state_dir();
    fs::create_dir_all(state.join("windows")).expect("the directory of records");
    for (file, word, none, part) in [
        ("window.json", "window", "none open", "window"),
        (
            "windows/20261121T031500Z.json",
            "last",
            "last       none",
            "last",
        ),
        ("node.json", "snapshot", "no complete one", "snapshot"),
    ] {
        let path = state.join(file);
        let whole = fs::read(&path).ok();
        fs::write(&path, "{").expect("a damaged file");
        let run = status(&node, "").exits(1).lacks(none);
        let begin = format!("{word:<10} - (checkpoint-corrupt: ");
        assert!(line(&run, word).starts_with(&begin), "{}", run.transcript());
        // The rest is shown.
        assert_eq!(
            line(&run, "network"),
            "network    2 of 2 pods have their network"
        );
        let document = status(&node, "-o json").exits(1).json();
        let unread = document["status"]["unread"]
            .as_array()
            .expect("a list")
            .clone();
        let parts: Vec<&Value> = unread.iter().map(|one| &one["part"]).collect();
        assert_eq!(parts, [part], "{document:#}");
        match whole {
            Some(whole) => fs::write(&path, whole).expect("a repair"),
            None => fs::remove_file(&path).expect("a repair"),
        }
    }
    status(&node, "").exits(0);
}

#[test]
fn a_loss_of_the_host_alone_is_named_and_the_next_command_restores_it() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    assert_eq!(network(&node)["host"], Value::Null);
    node.ns.ip("route del default");
    let has = "2 of 2 pods have their network";
    let run = assert_network(
        &node,
        &format!("{has}; the host's eth0 has lost its default route"),
    );
    assert_eq!(line(&run, "next"), "next       Run `netfix restore`");
    let lost = json!({ "link": "eth0", "what": "default-route" });
    assert_eq!(network(&node)["host"], lost);
    node.netfix_alone("restore").exits(0);
    let run = assert_network(&node, has);
    assert_eq!(line(&run, "next"), "next       nothing to do");
}

#[test]
fn a_pod_that_was_rebuilt_under_its_name_has_its_network_and_no_checkpoint() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    pods[1].ns.replace();
    pods[1].macvlan("mode bridge", "");
    pods[1].up_with_address();
    let run = assert_network(&node, "2 of 2 pods have their network");
    assert!(line(&run, "snapshot").ends_with("1 pod without one"));
    assert_eq!(line(&run, "next"), "next       Run `netfix snapshot`");
    node.netfix_alone("snapshot").exits(0);
    let run = assert_network(&node, "2 of 2 pods have their network");
    assert_eq!(line(&run, "next"), "next       nothing to do");
}
