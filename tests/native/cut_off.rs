//! Pods of which no good checkpoint has what they lack: they are named, and neither a snapshot nor a restore makes them good ones.

use std::fs;

use serde_json::json;

use crate::common::{Node, Pod, Run};

/// What a CNI ADD has done so far that is interrupted: the link is there and up.
fn half_made<'n>(node: &'n Node, name: &str) -> Pod<'n> {
    let pod = node.pod(name);
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 up");
    pod
}

fn state_of(run: &Run, pod: &Pod<'_>) -> String {
    run.pod(pod)["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_new_pod_without_an_address_is_a_finding_until_a_person_accepts_it() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    let late = node.pod("late").simple();
    node.netfix("check").exits(0).stdout_has(&["1 new"]);
    late.ip("addr flush dev eth0");
    let file = node.temp().join("netfix.prom");
    let run = node.netfix_alone(&format!("check --textfile {} -o json", file.display()));
    let run = run.exits(1).warnings(&[("cut-off", late.name())]);
    assert_eq!(state_of(&run, &late), "cut-off");
    let metrics = fs::read_to_string(&file).expect("the metrics");
    assert!(
        metrics.contains("netfix_pods{state=\"cut-off\"} 1"),
        "{metrics}"
    );
    node.netfix("check --nagios")
        .exits(1)
        .stdout_has(&["NETFIX WARNING", "cut-off: pod "]);
    let run = node.netfix_alone("status -o json").exits(0);
    let network = &run.json()["status"]["network"];
    assert_eq!(
        (&network["complete"], &network["cut_off"]),
        (&json!(1), &json!(1))
    );
    node.netfix("plan")
        .exits(0)
        .warnings(&[("cut-off", late.name())]);
    node.netfix("verify --answer-wait 1s")
        .exits(5)
        .errors(&[("cut-off", late.name())]);
    for _ in 0..2 {
        // A snapshot records it, and does not make it a good one.
        node.snapshot().warnings(&[("cut-off", late.name())]);
        node.netfix("check")
            .exits(1)
            .warnings(&[("cut-off", late.name())]);
    }
    node.netfix(&format!("snapshot --accept {}", late.name()))
        .exits(0)
        .warnings(&[]);
    node.snapshot().warnings(&[]);
    node.netfix("check").exits(0).warnings(&[]);
}

#[test]
fn a_pod_that_was_half_made_at_the_snapshot_is_not_called_restored() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let late = half_made(&node, "late");
    node.snapshot().warnings(&[("cut-off", late.name())]);
    late.up_with_address();
    node.netfix("check").exits(0);
    node.lose_and_reload();
    let run = node
        .netfix("restore -o json")
        .warnings(&[("cut-off", late.name())]);
    assert_eq!(state_of(&run, &pods[0]), "restored");
    assert_eq!(state_of(&run, &late), "cut-off");
    node.netfix("check")
        .exits(1)
        .warnings(&[("cut-off", late.name())]);
    // As soon as it has its address, it is well, and the next snapshot has a good record.
    late.up_with_address();
    node.netfix("check").exits(0);
    node.snapshot().warnings(&[]);
    late.ip("addr flush dev eth0");
    node.netfix("check")
        .exits(2)
        .errors(&[("degraded", late.name())]);
}

#[test]
fn what_a_window_does_not_bring_back_is_no_success_of_it() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let before = half_made(&node, "before");
    let made = node.pod("made");
    let upgrade = |command: &str| {
        let words = "upgrade --yes --foreground --no-pause --answer-wait 1s --watch 0s";
        let mut upgrade = node.netfix_command(&["timeout", "600"], words);
        Run::of(upgrade.args(["--", "sh", "-c", command]))
    };
    let run = upgrade("true").exits(0);
    assert!(!run.out.contains("well"), "{}", run.transcript());
    run.stdout_has(&["1 unknown"])
        .warnings(&[("cut-off", before.name()), ("driver-reload", "")]);
    // One that is made meanwhile is the window's.
    let link = format!(
        "ip link add link eth0 netns {} type macvlan mode bridge",
        made.name()
    );
    upgrade(&link).exits(5).errors(&[("cut-off", made.name())]);
}
