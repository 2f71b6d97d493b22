//! A window of another boot: its masks, timers and processes are gone, and nothing of it is in force.

use super::scene::{KUBELET, LOSING, Scene, of_pods};
use crate::common::background::wait_until;
use crate::common::{Node, tool};

/// What a reboot leaves of a paused kubelet: the disk. Memory is empty, and the boot has another id.
pub fn reboot(scene: &Scene<'_>) {
    let id = scene.path("boot-id");
    std::fs::write(&id, "11111111-2222-3333-4444-555555555555\n").expect("another boot's id");
    let script = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && systemctl --quiet stop 'netfix-*' && \
        systemctl --quiet unmask --runtime kubelet.service && rm -rf /run/systemd/system.control/kubelet.service /run/netfix && \
        systemctl daemon-reload && systemctl start kubelet.service";
    tool::run(scene.machine.exec("sh").args(["-c", script, "sh"]).arg(id));
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
}

/// Before and after its record is closed, `status` and `report` say that the reboot ended the pause.
fn resume_after_the_reboot(scene: &Scene<'_>) {
    scene
        .netfix("status")
        .exits(0)
        .stdout_has(&["ended by a reboot"])
        .lacks("paused for")
        .lacks("not paused")
        .lacks("deadline");
    scene.netfix("check -o json").has_no("window-open");
    scene.netfix("resume").exits(0);
    let record = scene.record();
    assert_eq!(record["closed_by"], "reboot");
    assert_eq!(
        record["ended"], record["phases"][0]["to"],
        "the last known moment: {record}"
    );
    scene
        .netfix("report")
        .stdout_has(&["by a reboot", "the reboot ended the pause"])
        .lacks("was not seen running again");
}

#[test]
fn a_pause_of_another_boot_is_closed_without_touching_kubelet() {
    for words in ["resume", "pause"] {
        let node = Node::new();
        let scene = Scene::new(&node);
        scene.netfix("pause").exits(0);
        reboot(&scene);
        let kubelet = scene.touchable();
        if words == "pause" {
            scene.netfix("pause").exits(0);
            assert_eq!(scene.records().len(), 1);
            scene.assert_held(KUBELET);
            scene.netfix("resume").exits(0);
        } else {
            resume_after_the_reboot(&scene);
            assert_eq!(scene.touchable(), kubelet, "kubelet was touched");
        }
        scene.assert_whole();
    }
}

#[test]
fn an_upgrade_after_the_reboot_is_a_new_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let [begun, gone] = ["begun", "gone"].map(|name| scene.path(name));
    let body = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
        begun.display(),
        gone.display()
    );
    let waits = scene.script("waits", &body);
    let upgrade = scene.start_upgrade("", &waits);
    scene.wait_for_file("begun");
    upgrade.kill();
    std::fs::write(gone, "").expect("COMMAND's end");
    reboot(&scene);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
    let records = scene.records();
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(
        (&records[0]["closed_by"], &records[0]["exit"]),
        (&"reboot".into(), &5.into())
    );
    assert_eq!(records[1]["exit"], 0);
    assert_eq!(of_pods(&records[1], "rebuilt"), [false, false]);
}

/// A window whose machine was reset in COMMAND, after which the pods were lost.
fn reset_in_command(scene: &Scene<'_>) {
    let body = format!(
        "{LOSING}\ntouch {}\nsleep 100",
        scene.path("begun").display()
    );
    let upgrade = scene.start_upgrade("", &scene.script("resets", &body));
    scene.wait_for_file("begun");
    let is_seen = || {
        let window = scene.window().unwrap_or_default();
        of_pods(&window, "lost")
            .iter()
            .all(serde_json::Value::is_u64)
    };
    assert!(wait_until(is_seen), "{:?}", scene.window());
    upgrade.kill();
    reboot(scene);
}

/// Every reader says that the reboot ended the window.
fn assert_ended_for_every_reader(scene: &Scene<'_>, id: &str) {
    let report = scene.netfix("report -o json").exits(0).json();
    let report = &report["report"];
    assert_eq!(report["computed"]["open"], false, "{report:#}");
    assert_eq!(report["computed"]["verdict"], "interrupted");
    assert_eq!(
        (&report["closed_by"], &report["exit"]),
        (&"reboot".into(), &5.into())
    );
    scene
        .netfix("report")
        .stdout_has(&[
            "nded by a reboot in phase command",
            "no answer before the reboot",
        ])
        .lacks("netfix resume")
        .lacks("still open")
        .lacks("is paused")
        .lacks("since");
    scene.netfix(&format!("wait {id}")).exits(5);
    scene.netfix(&format!("wait {id} --timeout 5s")).exits(5);
    let textfile = scene.path("netfix.prom");
    scene
        .netfix(&format!("check -o json --textfile {}", textfile.display()))
        .has_no("window-open");
    let metrics = std::fs::read_to_string(textfile).expect("metrics");
    for line in [
        "netfix_window_open 0",
        "netfix_last_window_exit_code 5",
        "netfix_last_window_verdict{verdict=\"interrupted\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
}

#[test]
fn after_a_reset_every_reader_says_that_a_reboot_ended_the_window_and_any_command_closes_it() {
    for closing in ["snapshot", "restore"] {
        let node = Node::new();
        let scene = Scene::new(&node);
        reset_in_command(&scene);
        let id = scene.window().expect("a window")["id"].clone();
        let id = id.as_str().expect("an id");
        if closing == "snapshot" {
            assert_ended_for_every_reader(&scene, id);
            scene.netfix("report").lacks("not resumed");
            scene
                .netfix("status")
                .stdout_has(&["ended by a reboot in phase command"])
                .lacks("closes its record")
                .stdout_has(&["next       rebuild the lost pods"])
                .lacks("netfix resume");
            let status = scene.netfix("status -o json").exits(0).json();
            let next = &status["status"]["window"]["next"];
            assert_eq!(next["step"], "nothing", "{next}");
        }
        assert_eq!(scene.records().len(), 0);
        let run = scene.netfix(closing).lacks("closes its record");
        assert_eq!(scene.window(), None, "{}", run.transcript());
        let record = scene.record();
        assert_eq!(
            (&record["closed_by"], &record["exit"]),
            (&"reboot".into(), &5.into())
        );
        if closing == "snapshot" {
            assert_ended_for_every_reader(&scene, id);
            scene.netfix("status").stdout_has(&["none open"]);
        }
        scene.netfix("resume").exits(0).stdout_has(&["not paused"]);
    }
}
