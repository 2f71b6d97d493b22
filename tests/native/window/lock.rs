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

/// Commands that change something report the holder of the lock, at once.
fn assert_refused(scene: &Scene<'_>) {
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
    scene
        .netfix("upgrade --dry-run -- true")
        .exits(4)
        .errors(&[("lock-held", "")]);
    scene.netfix("upgrade --yes -- true").exits(4);
    scene.assert_held(KUBELET);
}

/// Commands that only read do not wait for the lock.
fn assert_readable(scene: &Scene<'_>) {
    let begin = Instant::now();
    let window = scene.netfix("status -o json").exits(0).json()["status"]["window"].clone();
    assert_eq!(
        (&window["phase"], &window["kept"], &window["held"]),
        (&"command".into(), &true.into(), &true.into())
    );
    let name = scene.pods[0].name();
    scene.netfix("list").exits(0).stdout_has(&[name]);
    let report = scene.netfix("report -o json").exits(0).json()["report"].clone();
    assert_eq!(
        (&report["id"], &report["computed"]["open"]),
        (&window["id"], &true.into()),
        "{report}"
    );
    assert!(begin.elapsed() < HANG, "they waited");
}

#[test]
fn beside_a_window_changes_are_refused_readers_work_and_follow_shows_all_to_the_end() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = waiting(&scene);
    let upgrade = scene.start(&format!(
        "upgrade --yes --watch 500ms --answer-wait 2s -- {command}"
    ));
    scene.wait_for_file("begun");
    let mut follow = scene.start("status --follow");
    follow.wait_for("before the sign");
    follow.wait_for("netfix: pausing kubelet.service");
    assert_refused(&scene);
    assert_readable(&scene);
    assert!(
        !follow.has_ended() && !follow.answer().contains("after the sign"),
        "{}",
        follow.answer()
    );
    go(&scene);
    follow.wait_for("after the sign");
    upgrade.finish().exits(0);
    let run = follow.finish().exits(0);
    run.stdout_has(&[
        "kubelet.service is running again",
        "no pod was rebuilt (2 of 2 checked)",
    ]);
    scene.assert_whole();
    assert_eq!(scene.records().len(), 1);
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
