//! The user's command, also if it misbehaves: the pods are restored, and its exit is reported correctly.

use std::time::Instant;

use serde_json::Value;

use super::scene::{KUBELET, Scene, hasty, of_pods};
use crate::common::Node;
use crate::common::background::{HANG, wait_until};
use crate::common::run::Run;

/// Every pod was lost and is restored; only COMMAND failed.
fn assert_only_the_command_failed(scene: &Scene<'_>, run: Run) {
    run.errors(&[("command-failed", "")]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(record["exit"], 1);
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
}

fn run_of(scene: &Scene<'_>) -> [Value; 3] {
    let record = scene.record();
    ["exit", "signal", "error"].map(|key| record["run"][key].clone())
}

#[test]
fn the_devices_that_a_command_has_lost_are_in_the_record() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene
        .upgrade("--no-pause", &scene.reload())
        .exits(0)
        .stdout_has(&["All well: 2 of 2 pods back"]);
    assert_eq!(scene.record()["devices_lost"], Value::from(vec!["eth0"]));
}

#[test]
fn what_a_command_takes_of_the_host_alone_is_no_window_without_a_loss() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let cut = scene.script("cut", "ip route del default");
    let run = scene.upgrade("--no-pause", &cut).exits(0);
    run.lacks("Nothing was lost");
    assert_eq!(scene.record()["host"], "restored");
    let routes = node.ns.ip("route show default");
    assert!(routes.contains("via 10.88.0.1"), "{routes}");
}

#[test]
fn a_command_that_reloads_no_driver_is_told() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let idle = scene.script("idle", "false; true");
    scene
        .upgrade("--no-pause", &idle)
        .exits(0)
        .stdout_has(&["Nothing was lost: COMMAND reloaded no driver; 2 of 2 pods unchanged;"])
        .lacks("pods back")
        .warnings(&[("driver-reload", ""), ("kubelet-not-paused", "")])
        .names(
            "driver-reload",
            "",
            &["its driver was not reloaded", "eth0"],
        );
    assert_eq!(
        scene.record()["devices_lost"],
        Value::from(Vec::<Value>::new())
    );
    scene.assert_networks();
}

#[test]
fn a_failing_command_fails_the_window_with_all_pods_restored_and_a_failing_hook_warns() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = scene.script("fails", &format!("{}\nexit 7", scene.reloading()));
    let after = scene.script("after", "exit 3");
    let run = scene
        .upgrade(&format!("--after {after} -o json"), &command)
        .exits(1)
        .names("command-failed", "", &["7"])
        .warnings(&[("command-failed", "")]);
    assert_only_the_command_failed(&scene, run);
    assert_eq!(run_of(&scene), [7.into(), Value::Null, Value::Null]);
    assert_eq!(of_pods(&scene.record(), "state"), ["restored", "restored"]);
}

#[test]
fn a_command_that_disappears_before_it_is_run_is_reported_with_the_reason() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = scene.reload();
    let remove = scene.script("remove", &format!("rm {command}"));
    let options = format!("-o json --before {remove}");
    let run = scene.upgrade(&options, &command).exits(1).names(
        "command-failed",
        "",
        &["No such file or directory", &command],
    );
    assert_only_the_command_failed(&scene, run);
    let [exit, signal, error] = run_of(&scene);
    assert_eq!((exit, signal), (Value::Null, Value::Null));
    assert!(
        error
            .as_str()
            .is_some_and(|error| error.contains("os error 2")),
        "{error}"
    );
}

#[test]
fn a_background_process_that_keeps_the_output_open_does_not_block_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (pid, late) = (scene.path("pid"), scene.path("late"));
    let body = format!(
        "(trap '' INT TERM HUP; while [ ! -e {} ]; do sleep 0.1; done; echo too late) &\necho $! >{}\n{}",
        late.display(),
        pid.display(),
        scene.reloading()
    );
    let command = scene.script("leaves", &body);
    let begin = Instant::now();
    scene
        .netfix(&format!(
            "upgrade --yes --watch 0s --answer-wait 2s -- {command}"
        ))
        .exits(0);
    assert!(begin.elapsed() < HANG, "the window hung");
    let pid = std::fs::read_to_string(pid)
        .expect("a pid")
        .trim()
        .parse()
        .expect("a number");
    assert!(scene.machine.is_alive(pid), "who was left behind is dead");
    scene.assert_networks();
    scene.assert_runs(KUBELET);
    // systemd keeps the unit while a process is left; the next upgrade still gets a unit.
    scene
        .netfix("upgrade --yes --watch 0s --answer-wait 2s -- true")
        .exits(0);
    std::fs::write(late, "").expect("a sign");
    assert!(
        wait_until(|| !scene.machine.is_alive(pid)),
        "it does not end"
    );
    scene.assert_nothing_left();
}

#[test]
fn any_output_of_command_is_shown_and_logged_safely() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let body = format!(
        "head -c 1048576 /dev/zero | tr '\\0' x\necho\nprintf 'odd \\377\\376\\000\\033[31m bytes\\n' >&2\n{}\necho the end of it",
        scene.reloading()
    );
    let command = scene.script("prints", &body);
    let run = scene.netfix(&hasty("-o json", &command)).exits(0);
    run.json();
    let mebibyte = "x".repeat(1 << 20);
    assert!(run.err.contains(&mebibyte), "not all of it was shown");
    scene.assert_whole();
    let log = scene.log_of(&scene.record());
    assert!(
        log.contains(&mebibyte) && log.contains("\nthe end of it\n"),
        "not all of it was kept"
    );
    assert!(log.contains("odd "), "what is no text was dropped");
    scene.netfix("report").exits(0);
}

#[test]
fn command_gets_the_window_id_an_empty_stdin_and_no_file_of_netfix() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let [read, seen] = ["read", "seen"].map(|name| scene.path(name));
    let body = format!(
        "cat >{}\n{{ echo $NETFIX_WINDOW; ls -l /proc/self/fd; }} >{}",
        read.display(),
        seen.display()
    );
    let words = hasty("--foreground", &scene.script("inspect", &body));
    let mut child = scene.under(&["timeout", "600"], &words);
    let mut child = child
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("netfix");
    // netfix holds it open, and its content is not COMMAND's.
    let mut input = child.stdin.take().expect("a pipe");
    let _ = std::io::Write::write_all(&mut input, b"not for you\n");
    let status = child.wait().expect("its end");
    drop(input);
    assert!(status.success(), "{status}");
    assert_eq!(std::fs::read_to_string(read).expect("what was read"), "");
    let seen = std::fs::read_to_string(seen).expect("the output of COMMAND");
    assert_eq!(seen.lines().next(), scene.record()["id"].as_str(), "{seen}");
    assert!(
        !seen.contains("/lock") && !seen.contains("socket:"),
        "{seen}"
    );
}

#[test]
fn however_much_command_prints_the_log_and_netfix_stay_small() {
    const LIMIT: u64 = 2 << 20;
    const MOST_KIB: u64 = 64 << 10;
    let node = Node::new();
    let scene = Scene::new(&node);
    let peak = scene.path("peak");
    // The highest resident set of netfix, which is COMMAND's parent, until its end.
    let body = format!(
        "netfix=$PPID
        (while grep VmHWM /proc/$netfix/status >>{peak}; do sleep 0.02; done) </dev/null >/dev/null 2>&1 &
        echo the begin of it
        yes 'a line of the driver' | head -c 30000000
        head -c 100000000 /dev/zero | tr '\\0' x
        echo the end of it
        {}",
        scene.reloading(),
        peak = peak.display(),
    );
    let command = scene.script("prints", &body);
    let mut child = scene.under(
        &["timeout", "600"],
        &hasty("--foreground --nic-wait 60s --log-limit 2M", &command),
    );
    child.stdout(std::process::Stdio::null());
    let status = child.stderr(std::process::Stdio::null()).status();
    let status = status.expect("netfix");
    assert!(status.success(), "{status}");
    scene.assert_whole();
    let log = scene.log_of(&scene.record());
    let size = log.len() as u64;
    assert!((LIMIT..LIMIT + 1000).contains(&size), "{size} bytes");
    for text in [
        "\nthe begin of it\n",
        " bytes left out here (--log-limit)\n",
        "xthe end of it\n",
        "netfix: no pod was rebuilt",
    ] {
        assert!(log.contains(text), "the log lacks {text:?}");
    }
    assert!(!log.contains('\0'), "the log has a hole");
    let peak = std::fs::read_to_string(peak).expect("the peak");
    let kib = peak
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok());
    let most: u64 = kib.max().expect("a size");
    assert!(most < MOST_KIB, "{most} KiB");
}
