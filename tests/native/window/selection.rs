//! A window for some of the pods: those at risk that were not selected stop it, or are observed and counted.

use super::scene::{KUBELET, Scene, codes, of_pods, quick};
use crate::common::systemd::PACKAGES;
use crate::common::{Node, Run};

/// The selection of the first pod.
fn first(scene: &Scene<'_>) -> String {
    format!("--netns {}", scene.pods[0].ns.path().display())
}

/// The last line of the answer.
fn last_line(run: &Run) -> &str {
    run.out.lines().last().unwrap_or_default()
}

fn others_at_risk_refuse_the_window_before_anything_is_changed(scene: &Scene<'_>) {
    let kubelet = scene.touchable();
    let (reload, other) = (scene.reload(), scene.pods[1].name());
    let named = format!("--pod {}", scene.pods[0].name());
    for (options, selected) in [
        ("--dry-run", named),
        ("--dry-run", first(scene)),
        ("--yes", first(scene)),
    ] {
        let words = format!("upgrade {options} {selected} -o json -- {reload}");
        let run = scene.netfix(&words).exits(4);
        let run = run.errors(&[("not-selected", ""), ("unsupported", "")]);
        run.names("not-selected", "", &["1 pod", other]);
    }
    let run = scene.netfix(&format!("upgrade --dry-run {} -- true", first(scene)));
    let run = run.exits(4);
    assert!(
        last_line(&run).starts_with("The window would be refused: 1 problem, "),
        "{}",
        run.transcript()
    );
    run.stderr_has(&["eth0", other]);
    scene.assert_untouched(&kubelet);
}

#[test]
fn pods_at_risk_that_are_not_selected_refuse_the_window_and_a_forced_one_counts_them() {
    let node = Node::new();
    let scene = Scene::new(&node);
    others_at_risk_refuse_the_window_before_anything_is_changed(&scene);
    let run = scene.upgrade(&format!("--force {}", first(&scene)), "true");
    let run = run.exits(0);
    let last = last_line(&run);
    assert!(
        last.starts_with(
            "Nothing was lost: COMMAND reloaded no driver; 1 of 1 selected pod unchanged"
        ) && last.contains("not selected: 1 pod at risk, none has lost anything"),
        "{}",
        run.transcript()
    );
    let report = scene.netfix("report -o json").exits(0).json();
    assert_eq!(report["report"]["computed"]["verdict"], "nothing-lost");
    let log = scene.log_of(&scene.record());
    assert!(log.contains("1 selected pod already correct"), "{log}");
    scene.assert_whole();
}

#[test]
fn a_forced_window_for_one_pod_is_not_well_over_others_without_network() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    let options = format!("--force {}", first(&scene));
    let run = scene.upgrade(&options, &scene.reload()).exits(5);
    assert!(scene.pods[0].has_eth0() && !scene.pods[1].has_eth0());
    let last = last_line(&run);
    for part in [
        "Pods affected: 1 of 1 selected pod back",
        "not selected: 1 pod at risk, 1 lost something",
    ] {
        assert!(last.contains(part), "{}", run.transcript());
    }
    assert!(!run.out.contains("All well"), "{}", run.transcript());
    run.stdout_has(&["degraded", scene.pods[1].name()]);
    let report = scene.netfix("report -o json").exits(0).json();
    let report = &report["report"];
    assert_eq!(report["computed"]["verdict"], "pods-affected");
    assert_eq!(report["computed"]["pods"]["unselected"], 1);
    assert_eq!(report["computed"]["pods"]["unselected_lost"], 1);
    assert_eq!(report["unselected"][0]["id"], scene.pods[1].name());
    assert_eq!(report["unselected"][0]["state"], "degraded");
    assert_eq!(of_pods(report, "id"), [scene.pods[0].name()]);
    assert!(codes(report, "error").contains(&"degraded".to_owned()));
    let log = scene.log_of(&scene.record());
    for line in [
        "snapshot of 1 selected pod is complete",
        "1 selected pod restored, 0 already correct",
    ] {
        assert!(log.contains(line), "{log}");
    }
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}

#[test]
fn a_pod_that_was_lost_before_and_is_not_selected_is_counted_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.pods[1].ip("link del eth0");
    let words = format!("--force {}", first(&scene));
    scene.upgrade(&first(&scene), "true").exits(4);
    let run = scene.upgrade(&words, "true").exits(5);
    assert!(
        last_line(&run).contains("not selected: 1 pod at risk, 1 lost something"),
        "{}",
        run.transcript()
    );
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}

#[test]
fn a_selection_of_all_pods_on_the_device_leaves_out_nothing() {
    let node = Node::new();
    let mut pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod("api")).simple(),
    ];
    pods.push(quick(node.pod_on_other_nic("aside")));
    let scene = Scene::with_pods(&node, pods);
    scene.machine.start_kubelet(PACKAGES);
    let netns = scene.pods[..2].iter().map(|pod| pod.ns.path());
    let netns: Vec<_> = netns
        .map(|path| format!("--netns {}", path.display()))
        .collect();
    let run = scene.upgrade(&netns.join(" "), &scene.reload()).exits(0);
    run.stdout_has(&["All well: 2 of 2 pods back"]);
    scene.assert_networks();
    // A pod on the other device is at risk with that.
    let aside = format!("--netns {} --nic other", scene.pods[2].ns.path().display());
    scene
        .upgrade(&aside, "true")
        .exits(0)
        .stdout_has(&["1 of 1 pod unchanged"]);
    scene.assert_runs(KUBELET);
}

#[test]
fn checks_and_probes_of_a_selection_say_that_they_are_about_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    let selected = first(&scene);
    let run = scene.netfix(&format!("check {selected}")).exits(0);
    run.stdout_has(&["OK: 1 of 1 selected pod match"]);
    let run = scene.netfix(&format!("verify {selected}")).exits(0);
    run.stdout_has(&["1 selected pod reach"]);
    scene.netfix("check").exits(0).lacks("selected");
    scene.netfix("verify").exits(0).lacks("selected");
}
