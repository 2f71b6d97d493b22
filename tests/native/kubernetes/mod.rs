//! The image and the manifests of `contrib/kubernetes` on a node with a real containerd: the pods run over CRI as kubelet
//! would run them, with the mounts, namespaces and rights that the manifests state. ip(8), files and CRI supply the expected
//! state.

mod manifests;
mod monitor;
mod plugin;
mod rights;
mod upgrade;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::manifest::Manifest;
use crate::common::run::BINARY;
use crate::common::{CriNode, CriPod, Run, image, tool};

/// Names an archive of netfix's image that was built from the Dockerfile: `scripts/test --all` has one.
const BUILT_IMAGE: &str = "NETFIX_TEST_IMAGE";

/// A node whose containerd has netfix's image, and whose mounts reach the containers that ask for it, as under systemd.
fn with_image(node: CriNode) -> CriNode {
    tool::run(node.machine.exec("mount").args(["--make-rshared", "/"]));
    let name = Manifest::read("snapshot.yaml", &[]).container()["image"]
        .as_str()
        .expect("an image")
        .to_owned();
    match std::env::var_os(BUILT_IMAGE) {
        Some(archive) => node.import(&PathBuf::from(archive)),
        None => node.import(&image::netfix(
            &node.node.temp().join("netfix-image"),
            &full(&name),
        )),
    }
    node
}

/// The name under which containerd finds an image that a manifest names in short.
fn full(name: &str) -> String {
    format!("docker.io/library/{name}")
}

/// Moves each pod's process into the cgroup that kubelet and the runtime would make. containerd cannot make it where the machine has
/// no controllers.
fn in_cgroups(node: &CriNode, pods: &[CriPod]) {
    for CriPod { sandbox, .. } in pods {
        let cgroup = format!("/sys/fs/cgroup/kubepods/pod{}/{}", sandbox.uid, sandbox.id);
        let script = "mkdir -p \"$1\" && echo \"$2\" >\"$1/cgroup.procs\"";
        let pid = sandbox.pid.to_string();
        tool::run(
            node.machine
                .exec("sh")
                .args(["-c", script, "sh", &cgroup, &pid]),
        );
    }
}

/// netfix of the host, with its usual state directory.
fn on_host(node: &CriNode, words: &str) -> Run {
    let mut command = node.machine.exec("timeout");
    command.args(["600", BINARY]).args(words.split_whitespace());
    command.env_remove("NETFIX_STATE_DIR").env("NO_COLOR", "1");
    Run::of(&mut command)
}

/// The names of the host's checkpoints.
fn checkpoints(node: &CriNode) -> Vec<String> {
    let folder = node.machine.outside("/var/lib/netfix/checkpoints");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

/// A checkpoint of the host.
fn checkpoint(node: &CriNode, name: &str) -> Value {
    let path = node
        .machine
        .outside("/var/lib/netfix/checkpoints")
        .join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
