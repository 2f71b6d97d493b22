//! What netfix opens: a FIFO in place of a file never stops a command, and a path of a checkpoint that is no namespace is
//! not opened.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Node, Run, tool};

const LIMIT: &[&str] = &["timeout", "--signal=KILL", "10"];

fn make_fifo(path: &Path) {
    let _ = fs::remove_file(path);
    tool::run(Command::new("mkfifo").args(["--mode=600"]).arg(path));
}

/// Runs each command with a FIFO at `path`; each must end by itself. Returns their runs.
fn with_fifo(node: &Node, path: &Path, commands: &[&str]) -> Vec<Run> {
    make_fifo(path);
    let run = |words: &&str| {
        let run = Run::of(&mut node.netfix_command(LIMIT, words));
        assert!(
            run.code.is_some_and(|code| code < 100),
            "{} stops it\n{}",
            path.display(),
            run.transcript()
        );
        run
    };
    commands.iter().map(run).collect()
}

const COMMANDS: &[&str] = &[
    "check",
    "plan",
    "diff",
    "list",
    "verify",
    "snapshot",
    "restore",
    "prune",
    "list --generations",
];

#[test]
fn a_fifo_in_place_of_the_lock_stops_no_command() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let runs = with_fifo(&node, &node.state_dir().join("lock"), COMMANDS);
    for run in runs {
        let writes = ["snapshot", "restore", "prune"].map(|word| format!("\"{word}\""));
        if writes.iter().any(|word| run.line.contains(word)) {
            run.exits(4).stderr_has(&["not a regular file"]);
        }
    }
    node.netfix_alone("status").exits(0);
}

#[test]
fn a_fifo_in_place_of_a_stored_file_stops_no_command() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let of_generation = node.state_dir().join("generations/1/node.json");
    for path in [
        node.checkpoint_of(&pods[0]),
        of_generation,
        node.state_dir().join("node.json"),
        node.state_dir().join("window.json"),
    ] {
        with_fifo(&node, &path, COMMANDS);
        Run::of(&mut node.netfix_command(LIMIT, "status"));
    }
}

#[test]
fn a_fifo_in_libcnis_cache_stops_no_restore() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let folder = node.temp().join("cache");
    fs::create_dir_all(folder.join("results")).expect("a folder");
    let words = format!(
        "plan --source cni-cache --cni-cache-dir {}",
        folder.display()
    );
    with_fifo(&node, &folder.join("results/net-abc-eth0"), &[&words]);
}

#[test]
fn a_device_at_the_path_of_a_namespace_is_not_opened() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let device = node.temp().join("device");
    tool::run(Command::new("mknod").arg(&device).args(["c", "1", "11"]));
    // A checkpoint of `i40e_net_fix` names a path and proves nothing.
    let text = serde_json::json!({
        "netns": device, "podname": "web", "sandbox": "", "ifname": "eth0",
        "result": {"cniVersion": "0.4.0", "interfaces": [{"name": "eth0"}], "ips": [], "routes": []},
    });
    let file = node.state_dir().join("checkpoints/0123456789ab");
    fs::write(file, text.to_string()).expect("a file");
    let trace = node.temp().join("trace");
    let wrapper = format!(
        "timeout 600 strace -f -e trace=open,openat -o {}",
        trace.display()
    );
    let wrapper: Vec<&str> = wrapper.split(' ').collect();
    Run::of(&mut node.netfix_command(&wrapper, "plan"));
    let trace = fs::read_to_string(trace).expect("strace's output");
    let name = device.display().to_string();
    let opened: Vec<&str> = trace.lines().filter(|line| line.contains(&name)).collect();
    assert!(!opened.is_empty(), "it never opened the path");
    assert!(
        opened.iter().all(|line| line.contains("O_PATH")),
        "{opened:#?}"
    );
}
