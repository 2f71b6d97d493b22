//! What an engine needs that upgrades many nodes: a window that it starts and leaves, its end, and what is already done.

use std::fs;

use super::rollback::{count, lose, marked};
use super::scene::{Scene, Untouched, hasty};
use crate::common::Node;

/// COMMAND that waits for a file of the test before it reloads the driver.
fn waiting(scene: &Scene<'_>, end: &str) -> String {
    let go = scene.path("go");
    let text = format!(
        "echo $$ >{}\nuntil [ -e {} ]; do sleep 0.05; done\n{}\n{end}",
        scene.path("begun").display(),
        go.display(),
        scene.reloading()
    );
    scene.script("waiting", &text)
}

fn let_go(scene: &Scene<'_>) {
    fs::write(scene.path("go"), "").expect("a file");
}

/// Starts a window and leaves it: its id.
fn detached(scene: &Scene<'_>, options: &str, command: &str) -> String {
    let run = scene
        .netfix(&hasty(&format!("--detach {options}"), command))
        .exits(0);
    let window = scene.window().expect("an open window");
    let id = window["id"].as_str().expect("an id").to_owned();
    assert_eq!(run.out, format!("{id}\n"));
    id
}

/// These lines are among the metrics that `check` writes now, which it returns.
#[track_caller]
fn metrics(scene: &Scene<'_>, lines: &[&str]) -> String {
    let file = scene.path("netfix.prom");
    scene.netfix(&format!("check -q --textfile {}", file.display()));
    let text = fs::read_to_string(file).expect("the metrics");
    for line in lines {
        assert!(text.lines().any(|one| one == *line), "{line}: {text}");
    }
    text
}

#[test]
fn a_detached_window_needs_no_caller_and_the_metrics_follow_it_to_its_verdict() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    let closed = ["netfix_window_open 0", "netfix_kubelet_paused 0"];
    let before = metrics(&scene, &closed);
    assert!(!before.contains("netfix_last_window"), "{before}");
    let command = waiting(&scene, "");
    let id = detached(&scene, "", &command);
    scene.wait_for_file("begun");
    metrics(&scene, &["netfix_window_open 1", "netfix_kubelet_paused 1"]);
    let open = scene
        .netfix(&format!("wait {id} --timeout 300ms -o json"))
        .exits(124);
    open.errors(&[("window-open", "")]);
    let_go(&scene);
    let run = scene.netfix("wait --timeout 60s").exits(0);
    assert!(run.out.contains("2 of 2"), "{}", run.transcript());
    assert_eq!(scene.record()["id"], *id);
    scene.assert_whole();
    // It is closed.
    scene.netfix(&format!("wait {id}")).exits(0);
    let well = [
        closed[0],
        closed[1],
        "netfix_last_window_verdict{verdict=\"well\"} 1",
        "netfix_last_window_exit_code 0",
    ];
    let after = metrics(&scene, &well);
    for name in ["end_timestamp", "duration", "worst_outage"] {
        let name = format!("\nnetfix_last_window_{name}_seconds ");
        assert!(after.contains(&name), "{name}: {after}");
    }
}

#[test]
fn waiting_and_following_end_with_the_exit_code_of_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = waiting(&scene, "exit 9");
    let id = detached(&scene, "", &command);
    scene.wait_for_file("begun");
    let follow = scene.start("status --follow");
    let wait = scene.start(&format!("wait {id} --timeout 60s"));
    let_go(&scene);
    assert_eq!(
        (wait.finish().code, follow.finish().code),
        (Some(1), Some(1))
    );
    scene.assert_whole();
}

fn a_detached_window_is_refused_as_well(scene: &Scene<'_>, kubelet: &Untouched) {
    let run = scene
        .netfix(&hasty("--detach --nic none -o json", "true"))
        .exits(4);
    run.errors(&[("not-found", "")]);
    scene.assert_untouched(kubelet);
    scene.netfix("wait").exits(4).names("not-found", "", &[]);
}

fn what_is_already_done_opens_no_window(scene: &Scene<'_>, kubelet: &Untouched) {
    let command = lose(scene);
    // The version of a module of this machine's kernel, as modinfo(8) would print it.
    let version = fs::read_to_string("/sys/module/vxlan/version").expect("vxlan has a version");
    let vxlan = format!("--driver-version vxlan={}", version.trim());
    for options in [
        "--unless true",
        &vxlan,
        &format!("{vxlan} --unless true --detach"),
        "--driver-version veth=1.0 --dry-run",
    ] {
        let run = scene.netfix(&hasty(&format!("-o json {options}"), &command));
        let run = run.exits(0);
        assert_eq!(run.coded("already-done").len(), 1, "{}", run.transcript());
    }
    let unless = scene.script("unless", "exec /nowhere/program");
    let run = scene.netfix(&hasty(&format!("-o json --unless {unless}"), &command));
    run.exits(4).errors(&[("command-failed", "")]);
    assert_eq!(count(scene, "lose-ran"), 0);
    scene.assert_untouched(kubelet);
}

fn a_hook_that_fails_before_refuses_and_the_other_hook_runs(
    scene: &Scene<'_>,
    kubelet: &Untouched,
) {
    let before = marked(scene, "before", "exit 3");
    let after = marked(
        scene,
        "after",
        &format!("echo $NETFIX_VERDICT >{}", scene.path("a").display()),
    );
    let command = lose(scene);
    let options = format!("-o json --before {before} --after {after}");
    let run = scene.netfix(&hasty(&options, &command)).exits(4);
    run.errors(&[("command-failed", "")])
        .names("command-failed", "", &["3", "before"]);
    assert_eq!(fs::read_to_string(scene.path("a")).expect("a mark"), "4\n");
    assert_eq!(count(scene, "lose-ran"), 0);
    scene.assert_untouched(kubelet);
}

#[test]
fn a_window_that_is_refused_or_already_done_changes_nothing() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let kubelet = scene.touchable();
    a_detached_window_is_refused_as_well(&scene, &kubelet);
    what_is_already_done_opens_no_window(&scene, &kubelet);
    a_hook_that_fails_before_refuses_and_the_other_hook_runs(&scene, &kubelet);
}

#[test]
fn what_is_not_done_opens_one_and_the_driver_must_run_in_the_wanted_version() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let reload = scene.reload();
    let options = "-o json --unless false --driver-version veth=2.0 --driver-version vxlan=0";
    let run = scene.netfix(&hasty(options, &reload)).exits(1);
    run.errors(&[("driver-version", ""), ("driver-version", "")]);
    assert_eq!(scene.record()["exit"], 1);
    scene.assert_whole();
}

#[test]
fn hooks_run_before_the_pause_and_after_the_resume_without_the_limit_of_command() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let state = "systemctl is-active kubelet.service";
    let path = |name: &str| scene.path(name).display().to_string();
    let before = format!("{state} >{}\nsleep 3", path("b"));
    let before = marked(&scene, "before", &before);
    let after = format!("echo $NETFIX_VERDICT $({state}) >{}\nsleep 3", path("a"));
    let after = marked(&scene, "after", &after);
    let options = format!("--command-timeout 2s --before {before} --after {after} -o json");
    scene
        .netfix(&hasty(&options, &scene.reload()))
        .exits(0)
        .errors(&[]);
    let id = scene.record()["id"].as_str().expect("an id").to_owned();
    let text = |name: &str| fs::read_to_string(scene.path(name)).expect("a mark");
    assert_eq!(
        (text("b"), text("a")),
        ("active\n".into(), "0 active\n".into())
    );
    assert_eq!(
        (text("before-ran"), text("after-ran")),
        (format!("{id}\n"), format!("{id}\n"))
    );
    scene.assert_whole();
}
