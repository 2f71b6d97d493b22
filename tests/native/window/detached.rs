//! A window that runs as a systemd unit.

use std::fs;

use super::scene::{KUBELET, Scene};
use crate::common::Node;
use crate::common::run::Run;

/// As a unit, with short limits.
const UPGRADE: &str = "upgrade --yes --watch 0s --nic-wait 5s --answer-wait 2s --";

#[test]
fn the_arguments_of_command_arrive_unchanged_and_its_begin_and_end_are_logged_once() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let arguments = scene.path("arguments");
    let words = [
        "$HOME",
        "${PATH}x",
        "$$",
        "%n",
        "100%",
        "two words",
        "it's",
        "a \"quote\"",
        "back\\slash\\n",
        "",
    ];
    let text = format!(
        "for word; do printf '%s\\n' \"$word\"; done >{}",
        arguments.display()
    );
    let mut command = scene.command(&format!("-v {UPGRADE}"));
    command.arg(scene.script("list", &text)).args(words);
    let run = Run::of(&mut command).exits(0);
    let heard = fs::read_to_string(arguments).expect("the arguments of COMMAND");
    assert_eq!(heard.lines().collect::<Vec<_>>(), words);
    scene.assert_whole();
    for text in ["netfix: upgrade begins", "netfix: upgrade ends"] {
        assert_eq!(run.err.matches(text).count(), 1, "{}", run.transcript());
    }
}

#[test]
fn a_restart_of_dbus_hides_neither_kubelet_nor_the_exit_code() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = scene.script(
        "package",
        &format!(
            "systemctl restart dbus.service\n{}\nexit 7",
            scene.reloading()
        ),
    );
    let run = scene.netfix(&format!("{UPGRADE} {command}")).exits(1);
    run.errors(&[("command-failed", "")])
        .names("command-failed", "", &["7"]);
    scene.assert_runs(KUBELET);
    scene.assert_whole();
}
