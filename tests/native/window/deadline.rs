//! Without a resume, systemd starts kubelet at the deadline.

use std::time::{Duration, Instant};

use super::scene::{FOLDERS, KUBELET, Scene};
use super::units::install;
use crate::common::background::wait_until;
use crate::common::run::BINARY;
use crate::common::systemd::PACKAGES;
use crate::common::{Node, Run, tool};

/// What `status` says of a pause of 5 s, long after it.
fn assert_the_pause_is_over(scene: &Scene<'_>) {
    std::thread::sleep(Duration::from_secs(4));
    let status = scene.netfix("status -o json").exits(0).json();
    let paused = status["status"]["window"]["paused_for"].as_u64();
    assert!(paused.is_some_and(|paused| paused <= 6), "{status:#}");
    scene
        .netfix("status")
        .stdout_has(&["runs again after a pause of"])
        .lacks("NotReady after");
}

#[test]
fn at_the_deadline_kubelet_starts_and_every_command_reports_it() {
    for folder in FOLDERS {
        let node = Node::new();
        let scene = Scene::with_kubelet_in(&node, folder);
        let begin = Instant::now();
        scene.netfix("pause --deadline 5s").exits(0);
        scene.assert_held(KUBELET);
        assert!(
            wait_until(|| scene.runs(KUBELET)),
            "{}",
            scene.machine.systemd_state()
        );
        let took = begin.elapsed();
        assert!(
            took > Duration::from_secs(5) && took < Duration::from_secs(60),
            "{took:?}"
        );
        assert_eq!(scene.masks(KUBELET), [""; 0]);
        assert!(scene.machine.systemctl("is-active kubelet.service").is_ok());

        let reported = scene.netfix("status -o json").exits(0).json()["status"]["window"].clone();
        assert_eq!(
            (&reported["held"], &reported["kept"]),
            (&false.into(), &false.into()),
            "{reported}"
        );
        assert_eq!(reported["unit_state"], "active (running)", "{reported}");
        if folder == PACKAGES {
            assert_the_pause_is_over(&scene);
        }

        // Without a resume, the next pause closes the expired one.
        scene.netfix("pause --deadline 60s").exits(0);
        scene.assert_held(KUBELET);
        assert_eq!(scene.records().len(), 1, "the first window has a record");
        scene.netfix("resume").exits(0);
        scene.assert_whole();
        assert_eq!(scene.records().len(), 2);
    }
}

#[test]
fn times_and_options_that_do_not_fit_together_are_wrong_usage() {
    for (words, option) in [
        ("pause --deadline 4s", "5s"),
        ("pause --deadline 0s", "5s"),
        ("upgrade --yes --deadline 1s -- true", "5s"),
        (
            "upgrade --yes --command-timeout 10m -- true",
            "--command-timeout",
        ),
        (
            "upgrade --yes --command-timeout 1h --deadline 30m -- true",
            "--command-timeout",
        ),
        (
            "upgrade --yes --command-timeout 0s -- true",
            "--command-timeout",
        ),
        (
            "upgrade --yes --command-timeout none -- true",
            "--command-timeout",
        ),
        ("upgrade --yes --max-lost 2 -- true", "--rollback"),
        (
            "upgrade --yes --no-pause --unit kubelet -- true",
            "--no-pause",
        ),
        (
            "upgrade --yes --no-pause --keep-paused -- true",
            "--no-pause",
        ),
        ("upgrade --yes --log-limit=1K -- true", "--log-limit"),
        ("upgrade --yes --log-limit=2G -- true", "--log-limit"),
        ("upgrade --yes --log-limit=10X -- true", "--log-limit"),
        ("upgrade --yes --log-limit=M -- true", "--log-limit"),
        ("upgrade --yes --log-limit= -- true", "--log-limit"),
    ] {
        let run = Run::of(&mut tool::command(BINARY, words.split_whitespace()));
        run.exits(2).stderr_has(&[option]);
    }
}

/// kubelet's unit; it fails to start while the file `broken` exists.
fn fragile(scene: &Scene<'_>) {
    let broken = scene.path("broken");
    let text = format!(
        "[Service]\nExecStartPre=/usr/bin/test ! -e {}\nExecStart=/bin/sleep infinity\n",
        broken.display()
    );
    install(scene, KUBELET, &text);
}

#[test]
fn a_kubelet_that_does_not_start_leaves_the_window_open_until_it_does() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    fragile(&scene);
    let broken = scene.path("broken");
    let command = scene.script(
        "breaks",
        &format!("touch {}\n{}", broken.display(), scene.reloading()),
    );
    scene
        .upgrade("-o json", &command)
        .exits(5)
        .errors(&[("kubelet-not-resumed", "")]);
    scene.assert_networks();
    assert!(
        scene
            .window()
            .is_some_and(|window| window["hold"]["resumed"].is_null()),
        "{:?}",
        scene.window()
    );
    assert_eq!(scene.deadlines().len(), 1, "nothing starts it any more");
    let reported = scene.netfix("status -o json").exits(0).json()["status"]["window"].clone();
    assert_eq!(
        (&reported["kept"], &reported["held"]),
        (&false.into(), &false.into()),
        "{reported}"
    );
    scene
        .netfix("resume")
        .exits(1)
        .errors(&[("kubelet-not-resumed", "")]);
    assert!(scene.window().is_some(), "it was closed all the same");
    std::fs::remove_file(broken).expect("a repair");
    scene.netfix("resume").exits(0);
    scene.assert_whole();
    assert_eq!(scene.record()["closed_by"], "resume");
}

#[test]
fn the_deadline_starts_a_kubelet_that_netfix_could_not() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    fragile(&scene);
    scene.netfix("pause --deadline 6s").exits(0);
    let broken = scene.path("broken");
    std::fs::write(&broken, "").expect("something that breaks it");
    scene
        .netfix("resume")
        .exits(1)
        .errors(&[("kubelet-not-resumed", "")]);
    std::fs::remove_file(broken).expect("a repair");
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}

/// kubelet's unit; as it starts it writes down which pods have no network.
fn noting(scene: &Scene<'_>) -> std::path::PathBuf {
    let noted = scene.path("noted");
    let pods = scene.pods.iter().map(|pod| pod.ns.path());
    let look = pods.map(|path| path.display().to_string());
    let look = look.map(|path| format!("nsenter --net={path} ip -br address show dev eth0"));
    let look: Vec<String> = look.collect();
    let look = scene.script(
        "look",
        &format!("{{ {}; }} >{} 2>&1 || :", look.join("; "), noted.display()),
    );
    let text = format!("[Service]\nExecStartPre={look}\nExecStart=/bin/sleep infinity\n");
    install(scene, KUBELET, &text);
    noted
}

#[test]
fn when_netfix_was_killed_the_pods_are_restored_before_the_deadline_starts_kubelet() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    let noted = noting(&scene);
    let body = format!(
        "{}\ntouch {}",
        scene.reloading(),
        scene.path("begun").display()
    );
    let command = scene.script("waits", &format!("set -e\n{body}\nsleep 600"));
    let upgrade = scene.start_upgrade("--deadline 20s", &command);
    scene.wait_for_file("begun");
    upgrade.kill();
    std::fs::remove_file(&noted).expect("what the first start of kubelet noted");
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    let at_its_start = std::fs::read_to_string(noted).expect("what kubelet's start noted");
    for pod in &scene.pods {
        assert!(
            at_its_start.contains(&pod.address()),
            "kubelet started before {} was back:\n{at_its_start}",
            pod.name()
        );
    }
    scene.assert_networks();
}
