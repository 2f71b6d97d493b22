//! kubelet starts in the middle of the window: it may have rebuilt pods, and netfix reports that.

use super::scene::{FOLDERS, KUBELET, LOSING, Scene};
use crate::common::Node;
use crate::common::systemd::ADMINISTRATOR;

#[test]
fn the_pods_are_restored_and_the_start_of_kubelet_is_reported() {
    for folder in FOLDERS {
        let node = Node::new();
        let scene = Scene::with_kubelet_in(&node, folder);
        let stronger = if folder == ADMINISTRATOR {
            "rm /run/systemd/system.control/kubelet.service"
        } else {
            ":"
        };
        let body = format!(
            "set -e\n{}\n{stronger}\nsystemctl unmask --runtime {KUBELET}\nsystemctl daemon-reload\nsystemctl start {KUBELET}\n{}",
            LOSING,
            scene.loading()
        );
        scene
            .upgrade("-o json", &scene.script("starts", &body))
            .exits(5)
            .errors(&[("kubelet-not-paused", "")]);
        scene.assert_whole();
        let record = scene.record();
        assert_eq!(
            (&record["exit"], &record["run"]["exit"]),
            (&5.into(), &0.into())
        );
    }
}

#[test]
fn a_unit_that_is_restarted_repeatedly_cannot_be_paused_and_keeps_running() {
    let node = Node::new();
    let scene = Scene::new(&node);
    // kubelet restarts before netfix can mask it.
    let again = "[Unit]\nOnSuccess=kubelet.service\n[Service]\nExecStart=/bin/sleep infinity\n";
    scene
        .machine
        .put("/usr/lib/systemd/system/kubelet.service", again);
    scene.machine.systemctl("daemon-reload").expect("a reload");
    scene
        .machine
        .systemctl("restart kubelet.service")
        .expect("a restart");
    let marker = scene.path("ran");
    let run = scene.upgrade("", &format!("touch {}", marker.display()));
    // Either the mask was faster, or netfix changed nothing.
    if run.code == Some(0) {
        assert!(marker.exists(), "{}", run.transcript());
    } else {
        assert!(!marker.exists(), "{}", run.transcript());
        run.exits(4).errors(&[("kubelet-not-paused", "")]);
    }
    scene.assert_whole();
}
