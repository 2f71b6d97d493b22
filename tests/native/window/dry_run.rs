//! A dry run predicts the window: it ends with the exit code and the problems with which the window is refused, and changes
//! nothing.

use nix::sys::signal::Signal;

use super::refused::with_program;
use super::scene::{KUBELET, Scene};
use super::units::{PLAIN, install};
use crate::common::disk::Disk;
use crate::common::{Node, ReportedProblem, Run};

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
    for snapshot in [false, true] {
        let node = Node::new();
        let scene = with_program(&node);
        if snapshot {
            scene.netfix("snapshot").exits(5);
        }
        predicts(&scene, "", ("unsupported", scene.pods[0].name()));
        let forced = dry_run(&scene, "--force").exits(0).errors(&[]);
        forced.names("unsupported", scene.pods[0].name(), &["filter bpf"]);
        let other = scene.pods[1].ns.path();
        let run = dry_run(&scene, &format!("--netns {}", other.display())).exits(0);
        assert_eq!(run.json()["pods"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_refused_dry_run_says_why_and_lists_no_phases() {
    let node = Node::new();
    let scene = with_program(&node);
    let run = scene.netfix("upgrade --dry-run -- true").exits(4);
    assert!(run.out.is_empty(), "{}", run.transcript());
    run.stderr_has(&[scene.pods[0].name(), "filter bpf", "--force"]);
}

#[test]
fn a_runtime_that_does_not_answer_refuses_the_dry_run_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let options = "--runtime cri --runtime-endpoint unix:///run/nothing.sock";
    predicts(&scene, options, ("runtime-unreachable", ""));
}

#[test]
fn a_full_disk_refuses_the_dry_run_too() {
    let node = Node::new();
    let disk = Disk::under(&node, 16 << 20);
    let scene = Scene::new(&node);
    disk.fill();
    predicts(&scene, "", ("no-space", ""));
}

#[test]
fn two_kubelets_and_a_missing_unit_refuse_the_dry_run_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    predicts(&scene, "--unit missing", ("kubelet-not-paused", ""));
    install(&scene, "k3s.service", PLAIN);
    predicts(&scene, "", ("kubelet-not-paused", ""));
    dry_run(&scene, "--unit k3s").exits(0).errors(&[]);
}

#[test]
fn a_held_lock_refuses_the_dry_run_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let begun = scene.path("begun");
    let waiting = scene.script(
        "waiting",
        &format!("touch {}\nexec sleep 600", begun.display()),
    );
    let upgrade = scene.start_upgrade("", &waiting);
    scene.wait_for_file("begun");
    for options in ["--dry-run", "--yes --foreground"] {
        scene
            .netfix(&format!("upgrade {options} -- true"))
            .exits(4)
            .errors(&[("lock-held", "")]);
    }
    upgrade.signal(Signal::SIGTERM);
    upgrade.finish().exits(1);
}

#[test]
fn a_paused_kubelet_and_a_degraded_pod_do_not_refuse_a_dry_run() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.pods[0].ip("link del eth0");
    dry_run(&scene, "").exits(0).errors(&[]);
    scene.netfix("pause").exits(0);
    let run = scene.netfix("upgrade --dry-run -- true").exits(0);
    run.errors(&[]).warnings(&[("window-open", "")]);
    scene.assert_held(KUBELET);
    scene.netfix("resume").exits(0);
}
