//! The job and the plan: a window that a pod starts on its node, under a real systemd.

use std::fs;

use super::with_image;
use crate::common::background::wait_until;
use crate::common::manifest::Manifest;
use crate::common::run::BINARY;
use crate::common::systemd::PACKAGES;
use crate::common::workload::Workload;
use crate::common::{CriNode, CriPod, tool};
use crate::containerd::{assert_all_lost, captures};

/// What an administrator replaces in the manifests.
const DRIVER: &str = "--driver-version i40e=2.28.7";
const COMMAND: &str = "sh /root/i40e_upgrade.sh";

/// A node with netfix, systemd, a unit for kubelet and containerd.
fn node() -> CriNode {
    let node = with_image(CriNode::with_systemd());
    node.machine.start_kubelet(PACKAGES);
    let script = "mount -t tmpfs programs /usr/local/sbin && cp \"$1\" /usr/local/sbin/netfix";
    tool::run(node.machine.exec("sh").args(["-c", script, "sh", BINARY]));
    node
}

/// A COMMAND that shows its begin, and waits for the test.
fn command(node: &CriNode, end: &str) -> String {
    let path = |name: &str| node.node.temp().join(name).display().to_string();
    let text = format!(
        "systemctl is-active kubelet.service >{}\ntouch {}\nuntil [ -e {} ]; do sleep 0.05; done\n{end}\n",
        path("kubelet"),
        path("begun"),
        path("go")
    );
    fs::write(node.node.temp().join("upgrade.sh"), text).expect("a script");
    format!("sh {}", path("upgrade.sh"))
}

fn is_kubelet_active(node: &CriNode) -> bool {
    node.machine.systemctl("is-active kubelet.service").is_ok()
}

fn wait_for_begin(node: &CriNode, job: &Workload<'_>) {
    let begun = node.node.temp().join("begun");
    assert!(wait_until(|| begun.exists()), "no window:\n{}", job.log());
}

fn go(node: &CriNode) {
    fs::write(node.node.temp().join("go"), "").expect("a file");
}

/// A window around a loss of the NIC, from this manifest, and the exit code of its container.
fn window(node: &CriNode, pods: &[CriPod], file: &str, id: &str, end: &str) -> (i32, String) {
    for name in ["kubelet", "begun", "go"] {
        let _ = fs::remove_file(node.node.temp().join(name));
    }
    let run = [("RUN_ID", id)];
    let (before, sandboxes) = (captures(node, pods), node.cri().list());
    let words = command(node, end);
    let manifest = Manifest::read(
        file,
        &[(DRIVER, "--unless false --watch 1s"), (COMMAND, &words)],
    );
    let job = Workload::start(node, &manifest, &run);
    wait_for_begin(node, &job);
    assert!(!is_kubelet_active(node), "kubelet runs in the window");
    assert!(job.is_running(), "{}", job.log());
    node.node.lose_and_reload();
    assert_all_lost(node, pods);
    // The window does not need the pod that waits for it.
    let again = if file == "job.yaml" {
        job
    } else {
        job.delete();
        Workload::start(node, &manifest, &run)
    };
    go(node);
    let code = again.exit_code();
    let log = again.log();
    node.assert_same_as(pods, &before);
    node.assert_cni_check(pods);
    again.delete();
    assert_eq!(
        sandboxes,
        node.cri().list(),
        "a sandbox was made anew\n{log}"
    );
    assert!(is_kubelet_active(node), "kubelet does not run\n{log}");
    (code, log)
}

/// Where the driver is new, and where the window is refused.
fn assert_nothing_is_done(node: &CriNode) {
    let words = command(node, "true");
    for (options, code) in [("--unless true", 0), ("--unless /nowhere/program", 4)] {
        let manifest = Manifest::read("job.yaml", &[(DRIVER, options), (COMMAND, &words)]);
        let job = Workload::start(node, &manifest, &[("RUN_ID", "7c1d")]);
        assert_eq!(job.exit_code(), code, "{options}\n{}", job.log());
        job.delete();
        assert!(
            !node.machine.outside("/run/netfix-run-7c1d").exists(),
            "{options}"
        );
    }
    assert!(!node.node.temp().join("begun").exists(), "COMMAND ran");
    assert!(is_kubelet_active(node));
}

/// The second pod of a plan waits for the window of the first, and has its exit code.
#[test]
fn the_job_does_nothing_without_need_and_ends_with_0_when_every_pod_is_back_and_the_plan_waits() {
    let node = node();
    let pods = node.pods(2);
    assert_nothing_is_done(&node);
    let (code, log) = window(&node, &pods, "job.yaml", "7c1e", "true");
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("2 of 2"), "{log}");
    let (code, log) = window(&node, &pods, "plan.yaml", "7c1f", "exit 7");
    assert_eq!(code, 1, "{log}");
}

#[test]
fn the_job_and_the_plan_run_the_same_command_with_the_same_rights() {
    let [job, plan] = ["job.yaml", "plan.yaml"].map(|file| Manifest::read(file, &[]));
    assert_eq!(job.words("args"), plan.words("args"));
    assert_eq!(
        job.container()["securityContext"],
        plan.container()["securityContext"]
    );
}
