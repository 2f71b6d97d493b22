//! The playbook for many nodes, and the window of one.

use std::fs;

use serde_json::{Value, json};

use super::control::{Control, Played, upgrading};
use crate::common::Node;
use crate::common::run::BINARY;
use crate::window::scene::{Scene, Untouched};

/// The playbook of the collection.
const ROLLING: &str = "netfix.node.rolling_upgrade";
/// With the names and the order of the inventory.
const NAMES: [&str; 4] = ["node1", "node2", "node3", "node4"];

fn nodes() -> Vec<Node> {
    NAMES.map(|_| Node::new()).into()
}

/// Four nodes with kubelet and two pods each, and the control machine.
fn fleet(nodes: &[Node]) -> (Vec<Scene<'_>>, Control) {
    let mut control = Control::new();
    let scenes: Vec<Scene<'_>> = nodes.iter().map(Scene::new).collect();
    for (name, scene) in NAMES.iter().zip(&scenes) {
        let done = scene.path("done").display().to_string();
        let script = scene.script(
            "upgrade",
            &format!("set -e\n{}\ntouch {done}", scene.reloading()),
        );
        control.add(name, scene.node, &scene.machine, &upgrading(&script));
        control.set(name, "netfix_unless", format!("test -e {done}"));
    }
    (scenes, control)
}

fn touchables(scenes: &[Scene<'_>]) -> Vec<Untouched> {
    scenes.iter().map(Scene::touchable).collect()
}

fn assert_untouched(scenes: &[Scene<'_>], kubelets: &[Untouched]) {
    for (scene, kubelet) in scenes.iter().zip(kubelets) {
        scene.assert_untouched(kubelet);
    }
}

/// What `report --merge` made of all nodes.
fn verdicts(control: &Control) -> Vec<(String, String)> {
    let names = NAMES.iter().filter_map(|name| {
        let text = control.report(&format!("{name}.json"))?;
        let document: Value = serde_json::from_str(&text).expect("a document");
        let verdict = &document["report"]["computed"]["verdict"];
        Some((
            (*name).to_owned(),
            verdict.as_str().unwrap_or("none").to_owned(),
        ))
    });
    names.collect()
}

#[test]
fn a_node_that_is_not_well_stops_the_wave_and_the_rest_is_untouched() {
    let nodes = nodes();
    let (scenes, mut control) = fleet(&nodes);
    let fails = scenes[1].script("fails", &format!("{}\nexit 7", scenes[1].reloading()));
    control.set("node2", "netfix_argv", json!([fails]));
    let kubelets = touchables(&scenes);

    let played = control.play(ROLLING, &["--check", "--diff"]).exits(0);
    for (name, scene) in NAMES.iter().zip(&scenes) {
        played.counts(name, &[("changed", 1), ("failed", 0)]);
        played.prints(&[&format!("pod {}", scene.pods[0].name())]);
    }
    assert_untouched(&scenes, &kubelets);
    assert!(control.report("fleet.html").is_none());

    // The other node of the second wave is well: it must not be enough for the third one.
    let waves = "{\"netfix_serial\": [1, 2], \"netfix_kubectl_host\": \"localhost\"}";
    let cordon = ["-e", waves];
    let played = control.play(ROLLING, &cordon).exits(2);
    played.counts("node1", &[("failed", 0), ("unreachable", 0)]);
    played.counts("node2", &[("failed", 1), ("unreachable", 0)]);
    for (scene, exit) in scenes.iter().zip([0, 1, 0]) {
        scene.assert_whole();
        assert_eq!(scene.record()["exit"], exit);
    }
    assert_untouched(&scenes[3..], &kubelets[3..]);
    let expected = [
        ("node1", "well"),
        ("node2", "command-failed"),
        ("node3", "well"),
    ];
    assert_eq!(verdicts(&control), expected.map(owned));
    assert_on_page(&control, &["node1", "node2", "node3"], &["node4"]);
    // The node that is not well stays cordoned.
    let mut cordoned = control.kubectl_calls();
    cordoned.sort_unstable();
    let calls = [
        "cordon node1",
        "cordon node2",
        "cordon node3",
        "uncordon node1",
        "uncordon node3",
    ];
    assert_eq!(cordoned, calls);

    // Again, with a command that works: two nodes are already done.
    let works = scenes[1].path("upgrade").display().to_string();
    control.set("node2", "netfix_argv", json!([works]));
    let serial = ["-e", "{\"netfix_serial\": [1, 1, 2]}"];
    let played = control.play(ROLLING, &serial).exits(0);
    played.counts("node1", &[("failed", 0), ("changed", 0)]);
    for (at, scene) in scenes.iter().enumerate() {
        scene.assert_networks();
        assert_eq!(scene.records().len(), if at == 1 { 2 } else { 1 });
    }
    assert_eq!(verdicts(&control), NAMES.map(|name| owned((name, "well"))));
    assert_on_page(&control, &NAMES, &[]);
    let mut again = control.kubectl_calls();
    again.sort_unstable();
    assert_eq!(again, calls);
}

fn owned((name, verdict): (&str, &str)) -> (String, String) {
    (name.to_owned(), verdict.to_owned())
}

#[track_caller]
fn assert_on_page(control: &Control, names: &[&str], others: &[&str]) {
    let page = control.report("fleet.html").expect("the page");
    for name in names {
        assert!(page.contains(name), "{name} is not on the page");
    }
    for name in others {
        assert!(!page.contains(name), "{name} is on the page");
    }
}

#[test]
fn one_node_that_refuses_or_cannot_be_reached_keeps_all_nodes_as_they_are_or_is_left_out() {
    let nodes = nodes();
    let (scenes, mut control) = fleet(&nodes);
    let kubelets = touchables(&scenes);
    control.set("node4", "netfix_device", json!(["none0"]));
    let played = control.play(ROLLING, &[]).exits(2);
    played.counts("node4", &[("failed", 1)]);
    played.prints(&["The window would be refused: 1 problem, node4: not-found none0"]);
    assert_untouched(&scenes, &kubelets);

    control.set("node4", "netfix_device", json!([]));
    let stopped = scenes[3].machine.systemctl("stop node-ssh.service");
    stopped.expect("no sshd");
    let all_or_none = ["-e", "netfix_skip_unreachable=false"];
    let played = control.play(ROLLING, &all_or_none);
    assert_ne!(played.run.code, Some(0), "{}", played.run.transcript());
    played.prints(&["cannot be reached: node4"]);
    assert_untouched(&scenes, &kubelets);
    assert!(control.report("node1.json").is_none());

    let played = control.play(ROLLING, &[]).exits(4);
    played.prints(&["left out, because they cannot be reached: node4"]);
    assert_eq!(
        verdicts(&control),
        ["node1", "node2", "node3"].map(|name| owned((name, "well")))
    );
    assert_untouched(&scenes[3..], &kubelets[3..]);
}

/// One is down, one has lost a pod before, and one fails in the second wave.
#[test]
fn nodes_that_are_down_or_refused_are_left_out_and_the_waves_are_made_of_the_others() {
    let nodes = nodes();
    let (scenes, mut control) = fleet(&nodes);
    let stopped = scenes[1].machine.systemctl("stop node-ssh.service");
    stopped.expect("no sshd");
    scenes[2].netfix("snapshot").exits(0);
    scenes[2].pods[0].ip("link del eth0");
    let fails = scenes[3].script("fails", &format!("{}\nexit 7", scenes[3].reloading()));
    control.set("node4", "netfix_argv", json!([fails]));
    let kubelets = touchables(&scenes);
    let refused = "The window would be refused: 1 pod has lost its network already, node3";

    let played = control.play(ROLLING, &[]);
    assert_ne!(played.run.code, Some(0), "{}", played.run.transcript());
    played.counts("node3", &[("failed", 1)]);
    played.prints(&["left out, because they cannot be reached: node2", refused]);
    let left_alone = |at: usize| {
        if at == 2 {
            assert!(!scenes[2].pods[0].has_eth0() && scenes[2].records().is_empty());
        } else {
            scenes[at].assert_untouched(&kubelets[at]);
        }
    };
    (0..4).for_each(left_alone);
    assert!(control.report("fleet.html").is_none());

    let skip = [
        "-e",
        "{\"netfix_skip_refused\": true, \"netfix_serial\": [1, 5]}",
    ];
    let played = control.play(ROLLING, &skip);
    assert_ne!(played.run.code, Some(0), "{}", played.run.transcript());
    played.prints(&[
        "left out, because they cannot be reached: node2",
        "left out, because their window would be refused: node3",
        refused,
    ]);
    played.counts("node1", &[("failed", 0), ("unreachable", 0)]);
    played.counts("node2", &[("unreachable", 1)]);
    played.counts("node4", &[("failed", 1)]);
    let expected = [("node1", "well"), ("node4", "command-failed")];
    assert_eq!(verdicts(&control), expected.map(owned));
    assert_on_page(&control, &["node1", "node4"], &["node2", "node3"]);
    (1..3).for_each(left_alone);
    // The second wave is node4 alone: it began when the window of node1 had ended.
    let at = |scene: &Scene<'_>, of: &str| scene.record()[of].as_u64().expect("a time");
    let end = at(&scenes[0], "started_boottime") + at(&scenes[0], "ended");
    assert!(end <= at(&scenes[3], "started_boottime"));
}

#[test]
fn a_pod_that_is_lost_after_its_wave_stops_the_next_one() {
    let nodes = nodes();
    let (scenes, control) = fleet(&nodes);
    // Between the window and the next wave.
    let lost = format!(
        "if [ \"$*\" = 'uncordon node1' ]; then nsenter --net={} ip link del eth0; fi",
        scenes[0].pods[0].ns.path().display()
    );
    control.kubectl_does(&lost);
    let kubelets = touchables(&scenes);
    let options =
        "{\"netfix_serial\": 1, \"netfix_wave_pause\": 1, \"netfix_kubectl_host\": \"localhost\"}";
    let played = control.play(ROLLING, &["-e", options]).exits(2);
    played.counts("node1", &[("failed", 1)]);
    played.prints(&["CRITICAL; 1 pod has lost the network"]);
    assert_eq!(verdicts(&control), [owned(("node1", "well"))]);
    assert_untouched(&scenes[1..], &kubelets[1..]);

    // An operator who knows better.
    scenes[0].netfix("restore").exits(0);
    let played = control.play(ROLLING, &["-e", "{\"netfix_serial\": [1, 3]}"]);
    let played = played.exits(0);
    played.counts("node1", &[("failed", 0)]);
    assert_eq!(verdicts(&control), NAMES.map(|name| owned((name, "well"))));
}

#[test]
fn the_time_of_a_command_and_the_hold_are_options_of_the_task() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let mut control = Control::new();
    control.add("node1", &node, &scene.machine, &json!({}));
    let hangs = scene.script("hangs", &format!("{}\nsleep 300", scene.reloading()));
    let mut options = json!({
        "argv": [hangs],
        "command_timeout": "2s",
        "executable": BINARY,
        "settle": "0s",
        "wait": "20s",
        "delay": 1,
    });
    tasks(&control, &options)
        .exits(2)
        .prints(&["--command-timeout"]);
    let record = scene.record();
    assert!(record["run"]["timed_out"].is_u64(), "{record}");
    scene.assert_whole();

    // Without a pause there is nothing to hold.
    options["hold"] = true.into();
    options["pause"] = false.into();
    tasks(&control, &options)
        .exits(2)
        .prints(&["--no-pause", "--keep-paused"]);
    assert_eq!(scene.records().len(), 1);
}

/// A playbook with one task.
fn task(control: &Control, options: &Value) -> Played {
    tasks(control, options).exits(0)
}

fn tasks(control: &Control, options: &Value) -> Played {
    let plays = json!([{
        "hosts": "all",
        "gather_facts": false,
        "tasks": [{"netfix.node.netfix_upgrade": options}],
    }]);
    let file = control.path("task.yml");
    fs::write(&file, plays.to_string()).expect("a playbook");
    control.play(file, &["-vv"])
}

#[test]
fn the_answer_to_the_start_is_lost_with_the_connection_and_the_window_is_found() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let mut control = Control::new();
    control.add("node1", &node, &scene.machine, &json!({}));
    // It ends the connection over which the task waits for the id of the window.
    let cut = scene.script(
        "cut",
        &format!(
            "kill -9 $(pgrep -f '^sshd: root')\ntouch {}",
            scene.path("was-cut").display()
        ),
    );
    let mut options = json!({
        "argv": [scene.reload()],
        "before": cut,
        "executable": BINARY,
        "settle": "0s",
        "wait": "20s",
        "delay": 1,
    });
    let played = task(&control, &options);
    played.counts(
        "node1",
        &[("changed", 1), ("failed", 0), ("unreachable", 0)],
    );
    played.prints(&["node1: no connection", "\"verdict\": \"well\""]);
    assert!(scene.path("was-cut").exists());
    assert_eq!(scene.records().len(), 1);
    scene.assert_whole();

    options["unless"] = format!("test -e {}", scene.path("was-cut").display()).into();
    let played = task(&control, &options);
    played.counts("node1", &[("changed", 0), ("failed", 0)]);
    played.prints(&["\"already_done\": true"]);
    assert_eq!(scene.records().len(), 1);
}
