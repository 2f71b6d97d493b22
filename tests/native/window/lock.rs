//! While a window is open, other commands that change something are refused at once; read-only commands work.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::scene::{KUBELET, LOSING, Scene};
use crate::common::Node;
use crate::common::background::{HANG, wait_until};
use crate::common::tool;

/// COMMAND prints something, waits for a file, and prints something else.
fn waiting(scene: &Scene<'_>) -> String {
    let (begun, go) = (scene.path("begun"), scene.path("go"));
    let wait = format!(
        "echo before the sign; touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo after the sign",
        begun.display(),
        go.display()
    );
    scene.script(
        "waiting",
        &format!("{}\n{wait}\n{}", LOSING, scene.loading()),
    )
}

fn go(scene: &Scene<'_>) {
    std::fs::write(scene.path("go"), "").expect("a sign");
}

#[test]
fn commands_that_change_something_report_the_lock_holder() {
    for foreground in [true, false] {
        let node = Node::new();
        let scene = Scene::new(&node);
        let command = waiting(&scene);
        let mode = if foreground { "--foreground" } else { "" };
        let upgrade = scene.start(&format!(
            "upgrade --yes {mode} --watch 0s --answer-wait 2s -- {command}"
        ));
        scene.wait_for_file("begun");
        let owner = scene.window().expect("a window")["owner"]["pid"].clone();
        let who = format!("pid {owner} ");
        for words in [
            "upgrade --yes --foreground -- true",
            "pause",
            "restore",
            "snapshot",
            "resume",
        ] {
            let begin = Instant::now();
            scene
                .netfix(words)
                .exits(4)
                .errors(&[("lock-held", "")])
                .names("lock-held", "", &[&who]);
            assert!(begin.elapsed() < Duration::from_secs(30), "{words} waited");
        }
        scene.netfix("upgrade --yes -- true").exits(4);
        scene.assert_held(KUBELET);
        go(&scene);
        upgrade.finish().exits(0);
        scene.assert_whole();
        assert_eq!(scene.records().len(), 1);
    }
}

#[test]
fn on_hold_the_lock_is_free_but_a_second_window_is_refused() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let lose = scene.script("lose", LOSING);
    let upgrade = scene.start_upgrade("--nic-wait 300ms --keep-paused", &lose);
    scene.wait_for_hold();
    let (window, files) = (scene.window(), node.state_files());
    for words in [
        "upgrade --yes --foreground -- true",
        "upgrade --yes -- true",
        "pause",
    ] {
        scene
            .netfix(words)
            .exits(4)
            .errors(&[("window-open", "")])
            .names("window-open", "", &[KUBELET]);
        assert_eq!(
            (&scene.window(), &node.state_files()),
            (&window, &files),
            "{words}"
        );
        scene.assert_held(KUBELET);
    }
    // A snapshot in the middle of a loss replaces nothing good.
    scene.netfix("snapshot").exits(1);
    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene.netfix("resume").exits(0);
    upgrade.finish().exits(0);
    scene.assert_whole();
}

#[test]
fn read_only_commands_work_during_a_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade("", &waiting(&scene));
    scene.wait_for_file("begun");
    let (name, begin) = (scene.pods[0].name().to_owned(), Instant::now());
    let window = scene.netfix("status -o json").exits(0).json()["status"]["window"].clone();
    assert_eq!(
        (&window["phase"], &window["kept"], &window["held"]),
        (&"command".into(), &true.into(), &true.into())
    );
    scene.netfix("list").exits(0).stdout_has(&[&name]);
    let report = scene.netfix("report -o json").exits(0).json()["report"].clone();
    assert_eq!(
        (&report["id"], &report["computed"]["open"]),
        (&window["id"], &true.into()),
        "{report}"
    );
    assert!(begin.elapsed() < HANG, "they waited");
    go(&scene);
    upgrade.finish().exits(0);
    scene.assert_whole();
}

#[test]
fn status_follow_shows_messages_and_output_until_the_end() {
    for foreground in [true, false] {
        let node = Node::new();
        let scene = Scene::new(&node);
        let command = waiting(&scene);
        let mode = if foreground { "--foreground" } else { "" };
        let upgrade = scene.start(&format!(
            "upgrade --yes {mode} --watch 500ms --answer-wait 2s -- {command}"
        ));
        scene.wait_for_file("begun");
        let mut follow = scene.start("status --follow");
        follow.wait_for("before the sign");
        follow.wait_for("netfix: pausing kubelet.service");
        assert!(
            !follow.has_ended() && !follow.answer().contains("after the sign"),
            "{}",
            follow.answer()
        );
        go(&scene);
        follow.wait_for("after the sign");
        upgrade.finish().exits(0);
        let run = follow.finish().exits(0);
        let last = "no pod was rebuilt (2 of 2 checked)";
        assert!(
            run.out.contains("kubelet.service is running again") && run.out.contains(last),
            "{}",
            run.transcript()
        );
        scene.assert_whole();
    }
}

#[test]
fn status_follow_ends_with_the_netfix_of_its_window_and_names_the_next_command() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = waiting(&scene);
    let upgrade = scene.start_upgrade("", &command);
    scene.wait_for_file("begun");
    let follows = [
        "status --follow",
        "status --follow -o json",
        "status --follow -q",
    ];
    let follows = follows.map(|words| scene.start(words));
    follows[0].wait_for("before the sign");
    follows[2].wait_for("before the sign");
    upgrade.kill();
    let process = scene.window().expect("a window")["run"]["process"]["pid"].clone();
    // COMMAND still runs, and the restore comes after it.
    let [text, json, quiet] = follows.map(|follow| follow.finish().exits(5));
    let wait = format!("Wait for COMMAND or stop it (`kill {process}`). Then run `netfix restore`");
    let lines = text
        .out
        .lines()
        .filter(|line| line.contains("netfix died in phase command"));
    assert_eq!(lines.count(), 1, "{}", text.transcript());
    let said: String = text.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said.matches(&wait).count(), 1, "{}", text.transcript());
    assert_eq!(text.err, "", "{}", text.transcript());
    let document = json.json();
    assert_eq!(document["window"]["next"]["step"], "wait-for-command");
    assert_eq!(document["problems"][0]["code"], "window-open");
    quiet.stderr_has(&["window-open", &wait]);
    // Another one says the same at once.
    scene.netfix("status --follow").exits(5);
    go(&scene);
    let runs = || {
        tool::try_run(
            scene
                .machine
                .exec("kill")
                .args(["-0", &process.to_string()]),
        )
        .is_ok()
    };
    assert!(wait_until(|| !runs()), "COMMAND does not end");
    scene
        .netfix("status --follow")
        .exits(5)
        .stdout_has(&["Run `netfix restore`, then `netfix resume`"]);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}

#[test]
fn status_follow_ends_without_a_window_and_on_an_interrupt() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("status --follow").exits(0);
    scene.netfix("pause").exits(0);
    let follow = scene.start("status --follow");
    follow.wait_for("kubelet.service");
    follow.signal(Signal::SIGINT);
    drop(follow);
    scene.assert_held(KUBELET);
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}
