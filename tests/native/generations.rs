//! Generations: which files a good snapshot leaves, how they are listed and used, and when they are removed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::background::wait_until;
use crate::common::kept::{names, node_json};
use crate::common::{Node, Pod};

fn listed(node: &Node) -> Vec<Value> {
    let run = node.netfix("list --generations -o json").exits(0);
    run.json()["generations"]
        .as_array()
        .unwrap_or_else(|| panic!("no generations\n{}", run.transcript()))
        .clone()
}

/// The generations that a command reports as created, found or removed.
fn kept(node: &Node, words: &str) -> Value {
    node.netfix_json(words).exits(0).json()["kept"].clone()
}

fn ids(pods: &[&Pod<'_>]) -> Value {
    pods.iter().map(|pod| pod.name()).collect()
}

/// Waits until the kernel changes nothing any more, so that two snapshots can be equal.
fn settle(pods: &[Pod<'_>]) {
    for pod in pods {
        let is_up = || pod.ip("-o link show dev eth0").contains("state UP");
        assert!(wait_until(is_up), "{} never came up", pod.name());
    }
}

#[test]
fn every_good_snapshot_is_kept_and_listed_with_what_changed() {
    let node = Node::new();
    let mut pods = node.simple_pods(2);
    settle(&pods);
    assert_eq!(kept(&node, "snapshot")["generation"], 1);
    pods[0].ip("link set eth0 mtu 1400");
    assert_eq!(kept(&node, "snapshot")["generation"], 2);
    pods.push(node.pod("late").simple());
    settle(&pods);
    node.snapshot();
    let all = listed(&node);
    let reported = |key: &str| {
        all.iter()
            .map(|generation| generation[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(reported("number"), [1, 2, 3]);
    assert_eq!(reported("pods"), [2, 2, 3]);
    assert_eq!(
        reported("changed"),
        [Value::Null, ids(&[&pods[0]]), json!([])]
    );
    assert_eq!(
        reported("added"),
        [Value::Null, json!([]), ids(&[&pods[2]])]
    );
    assert_eq!(reported("removed"), [Value::Null, json!([]), json!([])]);
    assert_eq!(reported("current"), [false, false, true]);
    assert_eq!(reported("aside"), [false, false, false]);
    assert_eq!(reported("damaged"), [json!([]), json!([]), json!([])]);
    for (number, time) in node.generations().into_iter().zip(reported("time")) {
        assert_eq!(
            node_json(&node.generation(number))["created"],
            time,
            "{number}"
        );
    }
    let table = node
        .netfix("list --generations")
        .exits(0)
        .stdout_has(&["GENERATION"]);
    assert!(table.err.is_empty(), "{}", table.transcript());
}

#[test]
fn an_earlier_generation_restores_the_earlier_state_of_pods_and_host() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    pods[0].ip("addr add 10.88.1.222/16 dev eth0");
    pods[0].ip("route add 172.16.0.0/12 via 10.88.0.1");
    let (before, host): (Vec<_>, _) = (pods.iter().map(Pod::capture).collect(), node.capture());
    node.snapshot();
    pods[0].ip("route del 172.16.0.0/12");
    pods[0].ip("addr del 10.88.1.222/16 dev eth0");
    node.ns.ip("route add 172.30.0.0/16 via 10.88.0.1");
    node.snapshot();
    node.netfix("diff").exits(0);
    let diff = node
        .netfix_json(&format!("diff {} --generation 1", pods[0].name()))
        .exits(3);
    let lines = diff.steps(&pods[0]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    for missing in ["address 10.88.1.222/16 ", "route 172.16.0.0/12 "] {
        assert!(
            lines.iter().any(|line| line.contains(missing)),
            "{missing}: {lines:?}"
        );
    }
    node.lose_and_reload();
    let plan = |words: &str| {
        let run = node.netfix_json(words).exits(0);
        let host = run.json()["node"]["steps"].to_string();
        (host.contains("172.30.0.0/16"), run.steps(&pods[0]))
    };
    let has_address = |steps: &[String]| steps.iter().any(|step| step.contains("10.88.1.222/16"));
    let (has_route, steps) = plan("plan --generation 1");
    assert!(!has_route && has_address(&steps), "{steps:?}");
    let (has_route, steps) = plan("plan");
    assert!(has_route && !has_address(&steps), "{steps:?}");
    node.netfix("restore --generation 1").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
    node.netfix("diff --generation 1").exits(0);
}

#[test]
fn list_and_show_print_an_earlier_generation() {
    let node = Node::new();
    let mut pods = node.simple_pods(1);
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1400");
    pods.push(node.pod("late").simple());
    node.snapshot();
    node.netfix("list --generation 1")
        .exits(0)
        .stdout_has(&[pods[0].name()])
        .lacks(pods[1].name());
    node.netfix(&format!("show {} --generation 1", pods[0].name()))
        .exits(0)
        .stdout_has(&["1500"]);
    node.netfix(&format!("show {} --generation 2", pods[0].name()))
        .exits(0)
        .stdout_has(&["1400"]);
    node.netfix(&format!("show {} --generation 1", pods[1].name()))
        .exits(4)
        .errors(&[("checkpoint-missing", "")]);
}

#[test]
fn a_query_makes_no_state_folder_and_an_unknown_generation_is_refused_with_a_list() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    assert!(listed(&node).is_empty());
    assert_eq!(kept(&node, "prune")["removed"], json!([]));
    assert!(!node.state_dir().exists(), "a query made a state folder");
    node.netfix("restore --generation 1")
        .exits(4)
        .errors(&[("not-found", "")]);
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1400");
    node.snapshot();
    node.lose_and_reload();
    for command in [
        "restore",
        "plan",
        "diff",
        "list",
        &format!("show {}", pods[0].name()),
    ] {
        let run = node
            .netfix_json(&format!("{command} --generation 9"))
            .exits(4);
        run.errors(&[("not-found", "")])
            .names("not-found", "", &["9", "1 and 2"]);
    }
    assert!(!pods[0].has_eth0(), "something was restored");
}

/// A pod whose file in generation 1 is damaged: netfix restores the other one from it, and reports the damage.
#[test]
fn a_damaged_file_in_a_generation_is_reported_and_the_other_pods_are_restored_from_it() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[0].capture();
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1400");
    node.snapshot();
    fs::write(node.kept_file(1, &pods[1]), "{").expect("a damaged file");
    node.netfix("list --generations")
        .exits(0)
        .errors(&[])
        .warnings(&[("checkpoint-corrupt", pods[1].name())]);
    assert_eq!(listed(&node)[0]["damaged"], ids(&[&pods[1]]));
    node.netfix("list --generation 1")
        .exits(5)
        .errors(&[("checkpoint-corrupt", pods[1].name())]);
    node.lose_and_reload();
    node.netfix("restore --generation 1")
        .exits(5)
        .errors(&[("checkpoint-corrupt", pods[1].name())])
        .names("checkpoint-corrupt", pods[1].name(), &["generations/1/"]);
    pods[0].assert_same_as(&before);
    assert!(!pods[1].has_eth0(), "something was made of a damaged file");
}

#[test]
fn damage_to_the_current_files_does_not_reach_the_generations() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (before, host): (Vec<_>, _) = (pods.iter().map(Pod::capture).collect(), node.capture());
    node.snapshot();
    node.snapshot();
    fs::write(node.checkpoint_of(&pods[0]), "").expect("the file is emptied in its place");
    fs::write(node.state_dir().join("node.json"), "{").expect("a damaged file");
    node.lose_and_reload();
    node.netfix("plan")
        .exits(5)
        .errors(&[("checkpoint-corrupt", "")])
        .warnings(&[
            ("checkpoint-corrupt", pods[0].name()),
            ("from-generation", pods[0].name()),
        ]);
    node.netfix("restore --generation 1").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
}

#[test]
fn an_unchanged_checkpoint_is_one_file_in_all_generations() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    settle(&pods);
    node.snapshot();
    for pod in [&pods[0], &pods[2]] {
        pod.ip("link set eth0 mtu 1400");
        node.snapshot();
    }
    let inode = |number, pod| {
        fs::metadata(node.kept_file(number, pod))
            .expect("a kept file")
            .ino()
    };
    assert_ne!(inode(1, &pods[0]), inode(2, &pods[0]));
    assert_eq!(inode(2, &pods[0]), inode(3, &pods[0]));
    assert_eq!(inode(1, &pods[1]), inode(3, &pods[1]));
    let current = fs::metadata(node.checkpoint_of(&pods[1]))
        .expect("a checkpoint")
        .ino();
    assert_ne!(
        current,
        inode(3, &pods[1]),
        "what is edited in its place would reach the generations"
    );
}

#[test]
fn snapshot_keeps_the_given_number_of_generations() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    settle(&pods);
    for mtu in 1401..=1407 {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.snapshot();
    }
    assert_eq!(
        node.generations(),
        [3, 4, 5, 6, 7],
        "five are kept by default"
    );
    pods[0].ip("link set eth0 mtu 1408");
    let run = node.netfix_json("snapshot --keep 2").exits(0);
    assert_eq!(
        run.json()["kept"]["removed"],
        json!([3, 4, 5, 6]),
        "{}",
        run.transcript()
    );
    assert_eq!(node.generations(), [7, 8]);
    pods[0].ip("link set eth0 mtu 1409");
    node.netfix("snapshot --keep 1").exits(0);
    assert_eq!(
        node.generations(),
        [8, 9],
        "the one that holds what was replaced"
    );
    assert_eq!(kept(&node, "snapshot --keep 1")["same_as"], 9);
    assert_eq!(node.generations(), [9]);
    node.netfix("snapshot --keep 0").exits(2);
}

#[test]
fn an_unchanged_snapshot_creates_no_generation_and_reports_the_same_one() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    // Lifetimes of addresses decrease all the time, on the host and in a pod.
    node.ns
        .ip("addr add 10.88.0.44/16 dev eth0 valid_lft 5000 preferred_lft 4000");
    pods[0].ip("addr add 10.88.1.44/16 dev eth0 valid_lft 5000 preferred_lft 4000");
    settle(&pods);
    node.snapshot();
    let first = node_json(&node.state_dir());
    std::thread::sleep(Duration::from_millis(1100));
    let run = node.netfix_json("snapshot --keep 2").exits(0);
    let same = json!({"generation": null, "same_as": 1, "removed": []});
    assert_eq!(run.json()["kept"], same, "{}", run.transcript());
    assert_eq!(node.generations(), [1]);
    // The time of the check is still saved.
    let now = node_json(&node.state_dir());
    let times = |node: &Value, pod: &Pod<'_>| node["seen"][pod.name()].as_str().map(str::to_owned);
    for pod in &pods {
        assert!(times(&now, pod) > times(&first, pod), "{now}");
    }
    assert_eq!(listed(&node)[0]["current"], true);
    // One more address is another state.
    pods[1].ip("addr add 10.88.1.45/16 dev eth0");
    assert_eq!(kept(&node, "snapshot")["generation"], 2);
    // So is an address whose lifetime became unlimited, and so is the former state.
    pods[0].ip("addr change 10.88.1.44/16 dev eth0 valid_lft forever preferred_lft forever");
    assert_eq!(kept(&node, "snapshot")["generation"], 3);
    pods[1].ip("addr del 10.88.1.45/16 dev eth0");
    assert_eq!(kept(&node, "snapshot")["generation"], 4);
    node.ns.ip("route add 172.30.0.0/16 via 10.88.0.1");
    assert_eq!(kept(&node, "snapshot")["generation"], 5);
    assert_eq!(
        node.generations(),
        [1, 2, 3, 4, 5],
        "none of these was put aside"
    );
    assert!(
        listed(&node)
            .iter()
            .all(|generation| generation["aside"] == false)
    );
}

#[test]
fn a_damaged_newest_generation_is_not_reported_as_the_same() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    settle(&pods);
    node.snapshot();
    fs::write(node.kept_file(1, &pods[0]), "{").expect("a damaged file");
    assert_eq!(kept(&node, "snapshot")["generation"], 2);
    assert_eq!(
        fs::read(node.kept_file(2, &pods[0])).expect("a kept file"),
        node.stored_of(&pods[0])
    );
    fs::remove_file(node.generation(2).join("node.json")).expect("no state of the host");
    // Generation 3 keeps the host's state before it is replaced, because no other generation has it.
    assert_eq!(kept(&node, "snapshot")["generation"], 4);
    let newest = *node.generations().last().expect("a generation");
    assert_eq!(
        node_json(&node.generation(newest))["state"],
        node_json(&node.state_dir())["state"]
    );
}

#[test]
fn prune_removes_all_but_the_newest_and_lists_them() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    for mtu in [1500, 1490, 1480, 1470] {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.snapshot();
    }
    let newest = node.stored_of(&pods[0]);
    assert_eq!(kept(&node, "prune --keep 3")["removed"], json!([1]));
    assert_eq!(node.generations(), [2, 3, 4]);
    let run = node.netfix("prune --keep 1 -o json").exits(0);
    assert_eq!(run.json()["command"], "prune", "{}", run.transcript());
    assert_eq!(
        run.json()["kept"]["removed"],
        json!([2, 3]),
        "{}",
        run.transcript()
    );
    assert_eq!(node.kept_of(&pods[0]), [newest]);
    assert_eq!(kept(&node, "prune --keep 1")["removed"], json!([]));
    pods[0].ip("link set eth0 mtu 1460");
    node.snapshot();
    assert_eq!(node.generations(), [4, 5], "a number is never given again");
}

#[test]
fn leftovers_of_killed_runs_are_removed_and_nothing_else() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let folder = node.generations_folder();
    for leftover in [".new/checkpoints", ".7.gone/checkpoints", "notes"] {
        fs::create_dir_all(folder.join(leftover)).expect("a leftover");
        fs::write(folder.join(leftover).join("file"), "half").expect("a leftover");
    }
    assert_eq!(kept(&node, "prune")["removed"], json!([]));
    assert_eq!(names(&folder), ["1", "notes"]);
    fs::create_dir_all(folder.join(".new/checkpoints")).expect("a leftover");
    pods[0].ip("link set eth0 mtu 1400");
    node.snapshot();
    assert_eq!(names(&folder), ["1", "2", "notes"]);
}
