//! A dry run predicts the window: it ends with the exit code and the problems with which the window is refused, and changes
//! nothing.

use super::refused::with_program;
use super::scene::{KUBELET, Scene, quick};
use super::units::{PLAIN, install};
use crate::common::systemd::PACKAGES;
use crate::common::{Node, ReportedProblem, Run, tool};

/// COMMAND of these windows leaves a mark.
fn words(scene: &Scene<'_>, options: &str) -> String {
    let ran = scene.path("ran");
    format!("upgrade {options} -o json -- touch {}", ran.display())
}

/// A dry run that changes nothing.
fn dry_run(scene: &Scene<'_>, options: &str) -> Run {
    let before = (scene.touchable(), scene.node.state_files());
    let exists = scene.node.state_dir().exists();
    let run = scene.netfix(&words(scene, &format!("--dry-run {options}")));
    assert_eq!((scene.touchable(), scene.node.state_files()), before);
    assert_eq!(scene.node.state_dir().exists(), exists, "a folder was made");
    scene.assert_runs(KUBELET);
    assert_eq!(run.json()["dry_run"], true, "{}", run.transcript());
    run
}

/// The last line of the answer.
fn last_line(run: &Run) -> &str {
    run.out.lines().last().unwrap_or_default()
}

/// The dry run has this error, and the window is refused with the same problems.
fn predicts(scene: &Scene<'_>, options: &str, error: (&str, &str)) {
    let dry = dry_run(scene, options).exits(4);
    let real = scene
        .netfix(&words(scene, &format!("--yes --foreground {options}")))
        .exits(4);
    assert!(!scene.path("ran").exists(), "COMMAND was run");
    let (dry, real) = (dry.problems(), real.problems());
    assert_eq!(dry, real);
    let (code, pod) = error;
    let is_it = |problem: &&ReportedProblem| {
        problem.code == code && problem.pod.as_deref().unwrap_or("") == pod && problem.is_error()
    };
    assert_eq!(dry.iter().filter(is_it).count(), 1, "{dry:?}");
}

#[test]
fn an_object_that_no_restore_could_bring_back_refuses_the_dry_run_too() {
    let node = Node::new();
    let scene = with_program(&node);
    let pod = scene.pods[0].name();
    predicts(&scene, "", ("unsupported", pod));
    scene.netfix("snapshot").exits(5);
    predicts(&scene, "", ("unsupported", pod));
    let forced = dry_run(&scene, "--force").exits(0).errors(&[]);
    forced.names("unsupported", pod, &["filter bpf"]);
    // Outside the selection it stops nothing.
    let other = scene.pods[1].ns.path();
    let run = dry_run(&scene, &format!("--force --netns {}", other.display())).exits(0);
    let run = run.has_no("unsupported");
    assert_eq!(run.json()["pods"].as_array().map(Vec::len), Some(1));
    // It says why, and lists no phases.
    let run = scene.netfix("upgrade --dry-run -- true").exits(4);
    assert_eq!(run.out.lines().count(), 1, "{}", run.transcript());
    let run = run.stdout_has(&["The window would be refused: 1 problem, "]);
    run.stderr_has(&[pod, "filter bpf", "--force"]);
}

fn programs_and_drivers_that_do_not_exist_refuse_both(scene: &Scene<'_>) {
    let kubelet = scene.touchable();
    let script = format!("sh {}", scene.path("missing").display());
    let drivers = "--driver-version veth=2.0 --driver-version no-such=1";
    for (options, command, named) in [
        ("", "no-such-program", "no-such-program"),
        ("", &*script, "missing"),
        (drivers, "true", "no-such"),
    ] {
        for how in ["--dry-run", "--yes --foreground"] {
            let run = scene.netfix(&format!("upgrade {how} {options} -- {command}"));
            let run = run.exits(4).stderr_has(&["error: not-found", named]);
            run.lacks("All well");
        }
    }
    let run = scene.netfix("upgrade --dry-run --driver-version veth=2.0 -- true");
    run.exits(0);
    scene
        .netfix("upgrade --dry-run --force --driver-version i41e=1 -- true")
        .exits(0);
    scene.assert_untouched(&kubelet);
}

#[test]
fn what_does_not_exist_a_silent_runtime_and_two_kubelets_refuse_the_dry_run_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    programs_and_drivers_that_do_not_exist_refuse_both(&scene);
    let silent = "--runtime cri --runtime-endpoint unix:///run/nothing.sock";
    predicts(&scene, silent, ("runtime-unreachable", ""));
    predicts(&scene, "--unit missing", ("kubelet-not-paused", ""));
    install(&scene, "k3s.service", PLAIN);
    predicts(&scene, "", ("kubelet-not-paused", ""));
    dry_run(&scene, "--unit k3s").exits(0).errors(&[]);
}

#[test]
fn a_paused_kubelet_and_a_unit_for_the_window_do_not_refuse_the_dry_run() {
    let node = Node::new();
    let scene = Scene::new(&node);
    dry_run(&scene, "--detach").exits(0).errors(&[]);
    scene.netfix("snapshot").exits(0);
    scene.netfix("pause").exits(0);
    let run = scene.netfix("upgrade --dry-run -- true").exits(0);
    run.errors(&[]).warnings(&[("window-open", "")]);
    scene.assert_held(KUBELET);
    scene.netfix("resume").exits(0);
}

#[test]
fn pods_that_are_lost_already_refuse_the_window_unless_it_is_to_repair_them() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.pods[0].ip("link del eth0");
    let degraded = ("degraded", scene.pods[0].name());
    predicts(&scene, "", degraded);
    let run = scene.netfix("upgrade --dry-run -- true").exits(4);
    assert!(
        last_line(&run)
            .starts_with("The window would be refused: 1 pod has lost its network already, "),
        "{}",
        run.transcript()
    );
    run.errors(&[degraded, ("degraded", "")]);
    for options in ["--force", "--repair"] {
        let run = dry_run(&scene, options).exits(0).errors(&[]);
        run.warnings(&[degraded, ("degraded", "")]);
    }
    let run = scene.netfix("upgrade --dry-run --repair -- true").exits(0);
    let last = last_line(&run);
    assert!(
        last.starts_with("The window would begin: 1 pod on eth0 (veth 1.0), ")
            && last.ends_with("; 1 pod has lost its network already; the window restores it"),
        "{}",
        run.transcript()
    );
    let run = scene.upgrade("--repair", &scene.reload()).exits(0);
    run.stderr_has(&["1 pod has lost its network already; the window restores it"])
        .stdout_has(&["All well: 2 of 2 pods back"]);
    scene.assert_whole();
    let problems = scene.record()["problems"].to_string();
    assert!(problems.contains("the window restores it"), "{problems}");
}

#[test]
fn a_pod_that_lost_what_no_checkpoint_has_is_lost_already_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    let fresh = quick(node.pod("fresh")).simple();
    scene.machine.adopt(&fresh.ns);
    node.ns.ip("link del eth0");
    scene.load_driver();
    predicts(&scene, "", ("checkpoint-missing", fresh.name()));
    // It stays without network, and the window says so.
    let run = scene.upgrade("--repair", &scene.reload()).exits(5);
    assert!(!fresh.has_eth0());
    run.stdout_has(&["Pods affected: 2 of 3 pods back, 1 not back"]);
    scene.assert_networks();
}

#[test]
fn the_last_line_names_the_pods_the_devices_with_their_drivers_and_the_host() {
    let node = Node::new();
    let pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod_on_other_nic("aside")),
    ];
    let scene = Scene::with_pods(&node, pods);
    scene.machine.start_kubelet(PACKAGES);
    let name = tool::run(scene.machine.exec("hostname").arg("-s"));
    for (options, pods, on) in [
        ("", 2, "2 pods on eth0 (veth 1.0) and other (vxlan 0.1)"),
        ("--nic eth0", 1, "1 pod on eth0 (veth 1.0)"),
    ] {
        let run = scene.netfix(&format!("upgrade --dry-run {options} -- true"));
        let run = run.exits(0);
        let expected = format!("The window would begin: {on}, {}", name.trim());
        assert_eq!(last_line(&run), expected, "{}", run.transcript());
        let words = format!("upgrade --dry-run {options} -o json -- true");
        let document = scene.netfix(&words).exits(0).json();
        assert_eq!(document["verdict"], expected.as_str());
        assert_eq!(document["pods"].as_array().map(Vec::len), Some(pods));
    }
}

#[test]
fn a_window_that_cannot_run_as_a_unit_is_refused_in_its_dry_run_too() {
    let node = Node::new();
    let words = "upgrade --dry-run --detach --nic none -o json -- true";
    let run = node.netfix(words).exits(4);
    run.errors(&[("systemd-unreachable", "")]);
}
