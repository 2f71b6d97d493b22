//! An object that cannot be restored stops the window before kubelet is paused, unless --force is given.

use super::scene::{Scene, quick};
use crate::common::Node;
use crate::common::systemd::PACKAGES;

/// Two pods, one of them with an object that cannot be restored.
pub fn with_program(node: &Node) -> Scene<'_> {
    let pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod("api")).simple(),
    ];
    pods[0].add_bpf_filter();
    let scene = Scene::with_pods(node, pods);
    scene.machine.start_kubelet(PACKAGES);
    scene
}

#[test]
fn an_unsupported_object_stops_the_window_and_is_reported() {
    let node = Node::new();
    let scene = with_program(&node);
    let kubelet = scene.touchable();
    let ran = scene.path("ran");
    let words = format!("upgrade --yes -o json -- touch {}", ran.display());
    let run = scene
        .netfix(&words)
        .exits(4)
        .errors(&[("unsupported", scene.pods[0].name()), ("unsupported", "")])
        .names("unsupported", scene.pods[0].name(), &["filter bpf"])
        .names("unsupported", "", &["--force"]);
    assert!(
        !run.out
            .contains(&format!("\"pod\": \"{}\"", scene.pods[1].name())),
        "{}",
        run.transcript()
    );
    assert!(!ran.exists(), "COMMAND was run");
    scene.assert_untouched(&kubelet);
}

#[test]
fn force_runs_the_window_and_reports_what_is_missing() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.pods[0].add_bpf_filter();
    scene
        .upgrade("--force -o json", &scene.reload())
        .exits(5)
        .errors(&[("unsupported", scene.pods[0].name())]);
    // The scene was captured before.
    scene.pods[0].tc("qdisc del dev eth0 clsact");
    scene.assert_whole();
    assert_eq!(scene.record()["exit"], 5);
}
