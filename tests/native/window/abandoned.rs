//! Windows that nobody comes back to: monitoring must hear of them.

use super::scene::Scene;
use crate::common::Node;

#[test]
fn check_is_critical_while_a_window_is_open_whose_netfix_was_killed() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.netfix("check -o json").exits(0).has_no("window-open");
    let body = format!("touch {}; sleep 600", scene.path("begun").display());
    let upgrade = scene.start_upgrade("", &scene.script("waits", &body));
    scene.wait_for_file("begun");
    scene.netfix("check -o json").exits(0).has_no("window-open");
    upgrade.kill();
    scene
        .netfix("check -o json")
        .exits(2)
        .names("window-open", "", &["upgrade", "netfix resume"]);
    scene.netfix("restore").exits(0);
    scene.netfix("resume").exits(0);
    scene.netfix("check -o json").exits(0).has_no("window-open");
}

#[test]
fn check_warns_while_kubelet_is_paused_by_hand() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.netfix("pause").exits(0);
    scene
        .netfix("check -o json")
        .exits(1)
        .names("window-open", "", &["by hand", "netfix resume"]);
    scene.netfix("resume").exits(0);
    scene.netfix("check -o json").exits(0).has_no("window-open");
}
