//! Without D-Bus: before the window, netfix changes nothing; in the middle, it restores the pods, and the deadline
//! starts kubelet.

use std::time::Instant;

use super::scene::{KUBELET, LOSING, Scene, codes};
use crate::common::Node;
use crate::common::background::{HANG, wait_until};

const BUS: &str = "dbus.socket dbus.service";

#[test]
fn without_dbus_the_window_is_refused() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene
        .machine
        .systemctl(&format!("stop {BUS}"))
        .unwrap_or_else(|e| panic!("{e}"));
    let (kubelet, ran) = (scene.touchable(), scene.path("ran"));
    for words in [
        "pause".to_owned(),
        format!("upgrade --yes -- touch {}", ran.display()),
        format!("upgrade --yes --foreground -- touch {}", ran.display()),
    ] {
        scene
            .netfix(&words)
            .exits(4)
            .errors(&[("systemd-unreachable", "")]);
        assert!(!ran.exists(), "COMMAND was run");
    }
    scene.assert_untouched(&kubelet);
}

#[test]
fn if_dbus_is_lost_during_the_window_the_deadline_starts_kubelet() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let body = format!("{LOSING}\nsystemctl stop {BUS}\n{}", scene.loading());
    let begin = Instant::now();
    let run = scene
        .upgrade("--deadline 12s -o json", &scene.script("stops", &body))
        .exits(5);
    assert!(begin.elapsed() < HANG, "it hung");
    let codes = codes(&run.json(), "error");
    assert!(
        codes
            .iter()
            .any(|code| code == "systemd-unreachable" || code == "kubelet-not-resumed"),
        "{codes:?}"
    );
    scene.assert_networks();
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    assert!(scene.window().is_some(), "kubelet was not seen running");
    scene
        .machine
        .systemctl("start dbus.socket")
        .unwrap_or_else(|e| panic!("{e}"));
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}
