//! A kubelet that the window would not pause refuses the window, unless `--no-pause` is given.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::scene::{KUBELET, Scene};
use super::units::{install, remove};
use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::{Node, Run, tool};

const OTHER: &str = "my-kubelet.service";

/// A program whose processes have this name.
fn program(node: &Node, name: &str) -> String {
    let path = node.temp().join(name);
    tool::copy_program("/bin/sleep", &path);
    path.display().to_string()
}

fn service(scene: &Scene<'_>, name: &str) -> String {
    let program = program(scene.node, name);
    format!("[Service]\nExecStart={program} infinity\n")
}

/// A process that a shell of the machine starts; its id there.
fn start(machine: &Machine, script: &str, program: &str) -> u32 {
    let script = format!("{{ {script} \"$1\" infinity >/dev/null 2>&1 & }}; echo $!");
    let pid = tool::run(machine.exec("sh").args(["-c", &script, "sh", program]));
    let pid = pid.trim().parse().expect("a pid");
    assert!(wait_until(|| machine.is_alive(pid)));
    pid
}

fn refuses(scene: &Scene<'_>, options: &str, process: &str, words: &[&str]) {
    let ran = scene.path("ran");
    let before = (scene.touchable(), scene.node.state_files());
    let dry = format!("upgrade --dry-run {options} -- true");
    let real = format!(
        "upgrade --yes --foreground {options} -- touch {}",
        ran.display()
    );
    for line in [&dry, &real] {
        let run = scene
            .netfix(line)
            .exits(4)
            .errors(&[("kubelet-not-paused", "")])
            .names("kubelet-not-paused", "", &[process, "--unit", "--no-pause"]);
        run.names("kubelet-not-paused", "", words);
        assert!(!ran.exists(), "COMMAND was run");
        if line == &dry {
            assert_eq!((scene.touchable(), scene.node.state_files()), before);
        }
    }
    assert_eq!(scene.touchable(), before.0);
    scene.assert_nothing_left();
}

fn one_in_another_unit_refuses_the_window(scene: &Scene<'_>) {
    for name in ["kubelet", "k3s-server", "kubelite"] {
        install(scene, OTHER, &service(scene, name));
        let pid = scene.machine.unit(OTHER, "MainPID");
        let words = [format!("pid {pid} "), format!("--unit {OTHER} ")];
        refuses(scene, "", name, &words.each_ref().map(String::as_str));
        scene.assert_runs(OTHER);
        remove(scene, OTHER);
    }
}

fn a_second_one_beside_the_paused_one_refuses_the_window(scene: &Scene<'_>) {
    install(scene, KUBELET, &service(scene, "kubelet"));
    install(scene, OTHER, &service(scene, "k3s-agent"));
    let ran = scene.path("ran");
    scene
        .upgrade("", &format!("touch {}", ran.display()))
        .exits(4)
        .errors(&[("kubelet-not-paused", "")])
        .names("kubelet-not-paused", "", &["k3s-agent", OTHER]);
    assert!(!ran.exists(), "COMMAND was run");
    scene.assert_runs(KUBELET);
    for unit in [KUBELET, OTHER] {
        remove(scene, unit);
    }
}

fn its_unit_can_be_chosen_and_its_own_process_refuses_nothing(scene: &Scene<'_>) {
    install(scene, OTHER, &service(scene, "kubelet"));
    let pid = scene.machine.unit(OTHER, "MainPID");
    scene
        .upgrade("--unit my-kubelet", &scene.reload())
        .exits(0)
        .errors(&[]);
    scene.assert_runs(OTHER);
    assert_eq!(scene.record()["hold"]["unit"], OTHER);
    assert_ne!(
        scene.machine.unit(OTHER, "MainPID"),
        pid,
        "it was not stopped"
    );
    scene.assert_networks();
    scene.assert_nothing_left();
}

#[test]
fn a_kubelet_in_another_unit_refuses_the_window_unless_that_unit_is_chosen() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    one_in_another_unit_refuses_the_window(&scene);
    a_second_one_beside_the_paused_one_refuses_the_window(&scene);
    its_unit_can_be_chosen_and_its_own_process_refuses_nothing(&scene);
}

#[test]
fn no_pause_runs_the_window_beside_a_running_kubelet() {
    let node = Node::new();
    let scene = Scene::new(&node);
    install(&scene, OTHER, &service(&scene, "kubelet"));
    let pids = || [OTHER, KUBELET].map(|unit| scene.machine.unit(unit, "MainPID"));
    let before = pids();
    let run = scene.upgrade("--no-pause", &scene.reload()).exits(0);
    run.errors(&[]).warnings(&[("kubelet-not-paused", "")]);
    assert_eq!(pids(), before, "a unit was stopped");
    assert!(scene.record()["hold"].is_null());
    scene.assert_networks();
}

#[test]
fn a_kubelet_without_a_unit_refuses_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let pid = start(&scene.machine, "setsid", &program(&node, "kubelet"));
    refuses(&scene, "", "kubelet", &[&format!("pid {pid} ")]);
    scene.assert_runs(KUBELET);
}

/// Processes that another user names kubelet, also by a program that root owns.
fn start_of_another_user(scene: &Scene<'_>, kubelet: &str) {
    let folder = scene.path("setuid");
    fs::create_dir(&folder).expect("a folder");
    let setuid = folder.join("kubelet");
    tool::copy_program("/bin/sleep", &setuid);
    for (path, mode) in [(&scene.node.temp(), 0o755), (&setuid, 0o4755)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }
    for program in [kubelet, &setuid.display().to_string()] {
        let other = "setsid setpriv --reuid 65534 --clear-groups";
        start(&scene.machine, other, program);
    }
}

/// kubelets in another namespace of process ids, and in containers.
fn start_in_containers(scene: &Scene<'_>, kubelet: &str) {
    start(&scene.machine, "setsid unshare --pid --fork", kubelet);
    let id = "06c9b8d0a80012345678901234567890abcdefabcdefabcdefabcdefabcdef01";
    for path in [
        format!("system.slice/docker-{id}.scope"),
        format!("kubepods.slice/cri-containerd-{id}.scope"),
    ] {
        let pid = start(&scene.machine, "setsid", kubelet);
        let script =
            "mkdir -p \"/sys/fs/cgroup/$1\" && echo \"$2\" >\"/sys/fs/cgroup/$1/cgroup.procs\"";
        let mut join = scene.machine.exec("sh");
        tool::run(join.args(["-c", script, "sh", &path, &pid.to_string()]));
    }
}

/// The refusal would name the process.
#[test]
fn what_is_no_kubelet_of_the_host_does_not_refuse_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let kubelet = program(&node, "kubelet");
    start_of_another_user(&scene, &kubelet);
    start_in_containers(&scene, &kubelet);
    // Command line tools that could run one too.
    for name in ["k3s", "rke2", "k0s"] {
        start(&scene.machine, "setsid", &program(&node, name));
    }
    scene.upgrade("", &scene.reload()).exits(0).errors(&[]);
    scene.assert_whole();
}

#[test]
fn without_systemd_a_kubelet_refuses_the_window() {
    let node = Node::new();
    let machine = Machine::start(&node);
    let pod = node.pod("web").simple();
    machine.adopt(&pod.ns);
    let pid = start(&machine, "setsid", &program(&node, "kubelet"));
    let run = |words: &str| {
        let words = format!("upgrade {words} --watch 0s --runtime none -- true");
        Run::inside(&machine, &node.state_dir(), &words)
    };
    for options in ["--dry-run", "--yes"] {
        run(options)
            .exits(4)
            .errors(&[("kubelet-not-paused", "")])
            .names(
                "kubelet-not-paused",
                "",
                &["kubelet", &format!("pid {pid} "), "--no-pause"],
            );
    }
    run("--yes --no-pause").exits(0).errors(&[]);
    assert!(machine.is_alive(pid));
}
