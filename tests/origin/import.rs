//! The directory of `i40e_net_fix`, imported by `netfix import`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;

use netfix::model::PodId;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::common::libcni::sandbox_id;
use crate::common::traffic::reaches;
use crate::common::{Node, Pod, Run};

/// A node's directory of `i40e_net_fix`: one of the test.
fn folder(node: &Node) -> PathBuf {
    let folder = node.temp().join("origin");
    fs::create_dir_all(&folder).expect("the directory of i40e_net_fix");
    folder
}

/// The file's name: the first 12 characters of the sandbox id.
fn short_id(pod: &Pod<'_>) -> String {
    sandbox_id(pod)[..12].to_owned()
}

/// The file that the CNI plugin of `i40e_net_fix` wrote when the pod was created.
fn file_of(pod: &Pod<'_>) -> Value {
    let netns = pod.ns.path();
    json!({
        "netns": netns, "podname": "web-0", "sandbox": sandbox_id(pod), "ifname": "eth0",
        "result": {
            "interfaces": [{"name": "eth0", "mac": pod.mac(), "sandbox": netns}],
            "ips": [{"version": "4", "interface": 0, "address": format!("{}/16", pod.address()), "gateway": "10.88.0.1"}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.88.0.1"}], "dns": {},
        },
    })
}

fn place(node: &Node, pod: &Pod<'_>) -> PathBuf {
    let path = folder(node).join(short_id(pod));
    fs::write(&path, file_of(pod).to_string()).expect("the file of i40e_net_fix");
    path
}

fn import(node: &Node) -> Run {
    node.netfix_alone(&format!("import {} -o json", folder(node).display()))
}

fn states(run: &Run) -> Vec<String> {
    let json = run.json();
    let pods = json["pods"].as_array().cloned().unwrap_or_default();
    pods.iter()
        .map(|pod| pod["state"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The files of a directory with everything that shows a change.
fn listing(folder: &PathBuf) -> Vec<(PathBuf, String, u32, std::time::SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .flatten()
        .map(|entry| {
            let meta = entry.metadata().expect("its metadata");
            let text = if meta.is_file() {
                fs::read_to_string(entry.path()).unwrap_or_default()
            } else {
                String::new()
            };
            (
                entry.path(),
                text,
                meta.permissions().mode(),
                meta.modified().expect("its time"),
            )
        })
        .collect();
    files.sort();
    files
}

fn stored(node: &Node, name: &str) -> PathBuf {
    node.state_dir().join("checkpoints").join(name)
}

#[test]
fn pods_are_restored_from_imported_files() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let files = pods.iter().map(|pod| place(&node, pod)).collect::<Vec<_>>();
    let before = listing(&folder(&node));
    let run = import(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", "", &[]);
    assert_eq!(
        states(&run),
        ["imported", "imported"],
        "{}",
        run.transcript()
    );
    assert_eq!(
        before,
        listing(&folder(&node)),
        "the directory of i40e_net_fix was changed"
    );
    for (pod, file) in pods.iter().zip(&files) {
        let copy = stored(&node, &short_id(pod));
        assert_eq!(
            fs::metadata(&copy).expect("the copy").permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_to_string(&copy).expect("the copy"),
            fs::read_to_string(file).expect("the file")
        );
    }
    node.lose_and_reload();
    let run = node.netfix("restore --parent eth0").exits(0);
    assert!(
        pods.iter().all(|pod| reaches(pod, "10.88.0.1:9")),
        "{}",
        run.transcript()
    );
    let bare = node.netfix_alone("list").exits(0);
    bare.stdout_has(&["web-0"]);
}

#[test]
fn check_requires_more_than_an_imported_file() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    place(&node, &pods[0]);
    import(&node).exits(0);
    let run = node.netfix("check -o json").exits(1).errors(&[]);
    let of_pod = run
        .coded("partial-source")
        .into_iter()
        .filter_map(|problem| problem.pod)
        .collect::<Vec<_>>();
    assert_eq!(of_pod, [short_id(&pods[0])], "{}", run.transcript());
}

#[test]
fn a_pod_with_its_network_needs_no_parent() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    place(&node, &pods[0]);
    place(&node, &pods[1]);
    import(&node).exits(0);
    pods[1].ip("link del eth0");
    let before = pods[0].capture();
    let run = node
        .netfix_json("restore")
        .exits(5)
        .errors(&[("parent-missing", &short_id(&pods[1]))]);
    run.names("parent-missing", &short_id(&pods[1]), &["--parent"]);
    before.assert_same(&pods[0].capture(), "the living pod");
    node.netfix("restore --parent eth0").exits(0);
    assert!(reaches(&pods[1], "10.88.0.1:9"));
}

#[test]
fn a_second_import_writes_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let file = place(&node, &pods[0]);
    import(&node).exits(0);
    let before = listing(&node.state_dir().join("checkpoints"));
    let run = import(&node).exits(0);
    assert_eq!(states(&run), ["unchanged"]);
    assert_eq!(before, listing(&node.state_dir().join("checkpoints")));
    // The pod was attached again: the newer file of `i40e_net_fix` counts.
    let text = fs::read_to_string(&file)
        .expect("the file")
        .replace("10.88.1.", "10.88.3.");
    fs::write(&file, &text).expect("the file");
    assert_eq!(states(&import(&node).exits(0)), ["imported"]);
    assert_eq!(
        fs::read_to_string(stored(&node, &short_id(&pods[0]))).expect("the copy"),
        text
    );
}

#[test]
fn a_checkpoint_of_netfix_is_kept_instead_of_an_imported_file() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    place(&node, &pods[0]);
    node.netfix_alone("snapshot").exits(0);
    let before = listing(&node.state_dir().join("checkpoints"));
    let run = import(&node).exits(0);
    assert_eq!(states(&run), ["kept"]);
    assert_eq!(before, listing(&node.state_dir().join("checkpoints")));
}

#[test]
fn a_snapshot_after_the_import_replaces_the_imported_file() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    place(&node, &pods[0]);
    import(&node).exits(0);
    let before = pods[0].capture();
    node.netfix_alone("snapshot").exits(0);
    let text = fs::read_to_string(stored(&node, &short_id(&pods[0]))).expect("the checkpoint");
    assert!(text.contains("\"netfix\""), "{text}");
    node.lose_and_reload();
    node.restore();
    pods[0].assert_same_as(&before);
}

#[test]
fn an_import_replaces_a_damaged_checkpoint() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    place(&node, &pods[0]);
    import(&node).exits(0);
    let copy = stored(&node, &short_id(&pods[0]));
    fs::write(&copy, "{").expect("a damaged file");
    let run = import(&node).exits(0).errors(&[]);
    assert_eq!(
        run.coded("checkpoint-corrupt").len(),
        1,
        "{}",
        run.transcript()
    );
    assert_eq!(states(&run), ["imported"]);
    assert!(
        fs::read_to_string(&copy)
            .expect("the copy")
            .contains("web-0")
    );
}

#[test]
fn files_of_deleted_pods_are_skipped() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let _files = [place(&node, &pods[0]), place(&node, &pods[1])];
    pods[1].ns.delete();
    let run = import(&node).exits(0).errors(&[]);
    assert_eq!(run.coded("netns-gone").len(), 1, "{}", run.transcript());
    let mut states = states(&run);
    states.sort_unstable();
    assert_eq!(states, ["gone", "imported"], "{}", run.transcript());
    assert!(!stored(&node, &short_id(&pods[1])).exists());
}

#[test]
fn two_files_for_one_namespace_are_both_refused() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    place(&node, &pods[0]);
    // As after a reuse of a process id.
    let mut stale = file_of(&pods[1]);
    stale["netns"] = json!(pods[0].ns.path());
    fs::write(folder(&node).join(short_id(&pods[1])), stale.to_string()).expect("the stale file");
    let run = import(&node).exits(1).errors(&[
        ("netns-replaced", &short_id(&pods[0])),
        ("netns-replaced", &short_id(&pods[1])),
    ]);
    assert_eq!(states(&run), ["failed", "failed"]);
    assert!(listing(&node.state_dir().join("checkpoints")).is_empty());
}

/// Adds something that is not a good file to the directory, next to a good one.
fn is_named(name: &str, put: impl Fn(&PathBuf, &Value), code: &str, words: &[&str]) {
    let node = Node::new();
    let pods = node.simple_pods(2);
    place(&node, &pods[0]);
    let path = folder(&node).join(name);
    put(&path, &file_of(&pods[1]));
    let before = listing(&folder(&node));
    // A pod's id is its file's name, limited to the characters of netfix's file names.
    let id = PodId::from_text(name);
    let run = import(&node)
        .exits(5)
        .errors(&[(code, id.as_str())])
        .names(code, id.as_str(), words)
        .lacks("panicked");
    let mut states = states(&run);
    states.sort_unstable();
    assert_eq!(states, ["failed", "imported"], "{}", run.transcript());
    assert_eq!(
        before,
        listing(&folder(&node)),
        "the directory of i40e_net_fix was changed"
    );
    assert_eq!(
        listing(&node.state_dir().join("checkpoints")).len(),
        1,
        "{}",
        run.transcript()
    );
}

#[test]
fn damaged_files_are_reported_and_the_others_are_imported() {
    let corrupt = "checkpoint-corrupt";
    is_named(
        "06c9b8d0a800",
        |path, _| fs::write(path, "").expect("a file"),
        corrupt,
        &["EOF"],
    );
    is_named(
        "06c9b8d0a800",
        |path, _| fs::write(path, "{\"netns\":").expect("a file"),
        corrupt,
        &["EOF"],
    );
    is_named(
        "06c9b8d0a800",
        |path, _| fs::write(path, [0xff, 0xfe]).expect("a file"),
        corrupt,
        &["UTF-8"],
    );
    let empty = |path: &PathBuf, file: &Value| {
        let mut file = file.clone();
        file["result"]["interfaces"] = json!([]);
        fs::write(path, file.to_string()).expect("a file");
    };
    is_named("06c9b8d0a800", empty, corrupt, &["interface"]);
    // The kernel would give each new link another number.
    let numbered = |path: &PathBuf, file: &Value| {
        let mut file = file.clone();
        file["ifname"] = json!("eth%d");
        file["result"]["interfaces"][0]["name"] = json!("eth%d");
        fs::write(path, file.to_string()).expect("a file");
    };
    is_named("06c9b8d0a800", numbered, corrupt, &["eth%d"]);
}

#[test]
fn file_names_that_i40e_net_fix_does_not_use_are_refused() {
    let write = |path: &PathBuf, file: &Value| fs::write(path, file.to_string()).expect("a file");
    for name in ["web-0", "06c9b8d0a800", ".hidden", "a b"] {
        is_named(name, write, "checkpoint-corrupt", &[]);
    }
    is_named(
        "folder",
        |path, _| fs::create_dir(path).expect("a folder"),
        "checkpoint-corrupt",
        &[],
    );
}

#[test]
fn files_writable_by_other_users_are_refused() {
    let write = |path: &PathBuf, file: &Value| fs::write(path, file.to_string()).expect("a file");
    let corrupt = "checkpoint-corrupt";
    let open = |path: &PathBuf, file: &Value| {
        write(path, file);
        fs::set_permissions(path, Permissions::from_mode(0o666)).expect("its mode");
    };
    is_named("06c9b8d0a800", open, corrupt, &["root"]);
    let foreign = |path: &PathBuf, file: &Value| {
        write(path, file);
        chown(path, Some(65534), None).expect("its owner");
    };
    is_named("06c9b8d0a800", foreign, corrupt, &["root"]);
    is_named(
        "06c9b8d0a800",
        |path, _| symlink("/etc/hostname", path).expect("a link"),
        "unreadable",
        &["symbolic link"],
    );
    is_named(
        "06c9b8d0a800",
        |path, _| mkfifo(path, Mode::S_IRUSR).expect("a FIFO"),
        corrupt,
        &["root"],
    );
    let huge = |path: &PathBuf, _: &Value| {
        fs::File::create(path)
            .and_then(|file| file.set_len(33 << 20))
            .expect("a huge file");
    };
    is_named("06c9b8d0a800", huge, corrupt, &["33 MiB"]);
}

#[test]
fn a_path_to_a_pipe_does_not_block_the_others() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    place(&node, &pods[0]);
    let pipe = node.temp().join("pipe");
    mkfifo(&pipe, Mode::S_IRUSR).expect("a FIFO");
    let mut hostile = file_of(&pods[1]);
    hostile["netns"] = json!(pipe);
    fs::write(folder(&node).join(short_id(&pods[1])), hostile.to_string()).expect("a file");
    let mut states = states(&import(&node).exits(0));
    states.sort_unstable();
    assert_eq!(states, ["gone", "imported"]);
}

#[test]
fn a_file_of_netfix_is_not_imported() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    let own = node.checkpoint_of(&pods[0]);
    fs::copy(&own, folder(&node).join(own.file_name().expect("a name"))).expect("a copy");
    import(&node)
        .exits(1)
        .errors(&[("checkpoint-corrupt", pods[0].name())])
        .names("checkpoint-corrupt", pods[0].name(), &["--state-dir"]);
}

#[test]
fn an_import_of_nothing_changes_nothing() {
    let node = Node::new();
    let refused = |path: &str, code: &str, word: &str| {
        node.netfix_alone(&format!("import {path}"))
            .exits(4)
            .errors(&[(code, "")])
            .names(code, "", &[word]);
        assert!(!node.state_dir().exists(), "the state folder was made");
    };
    refused(
        "/nonexistent/checkpoints",
        "not-found",
        "/nonexistent/checkpoints",
    );
    refused("/etc/hostname", "unreadable", "/etc/hostname");
    let empty = folder(&node).display().to_string();
    refused(&empty, "not-found", &empty);
    let pods = node.simple_pods(1);
    place(&node, &pods[0]);
    import(&node).exits(0);
    let own = node.state_dir().join("checkpoints");
    node.netfix_alone(&format!("import {}", own.display()))
        .exits(4)
        .errors(&[("not-found", "")]);
}

#[test]
fn the_text_output_counts_the_files_by_result() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let _files = [place(&node, &pods[0]), place(&node, &pods[1])];
    fs::write(folder(&node).join("broken"), "").expect("a file");
    pods[1].ns.delete();
    let run = node
        .netfix_alone(&format!("import {}", folder(&node).display()))
        .exits(5);
    run.errors(&[("checkpoint-corrupt", "broken")])
        .stdout_has(&["1 of 3", "broken"]);
}
