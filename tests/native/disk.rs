//! The disk of the state directory: full, read-only, without hard links; and many checkpoints on it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::common::disk::Disk;
use crate::common::kept::{json, names, with_checksum};
use crate::common::run::injecting;
use crate::common::{Node, Run};

/// In bytes.
const SIZE: usize = 512 << 10;

const FULL: &str = "No space left on device (os error 28)";
const READ_ONLY: &str = "Read-only file system (os error 30)";

#[test]
fn on_a_full_disk_a_snapshot_reports_the_file_and_all_old_files_stay_complete() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1450");
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1400");
    let filler = disk.fill();
    let before = node.state_files();
    node.netfix("snapshot -o json")
        .exits(5)
        .errors(&[("no-space", pods[0].name()), ("no-space", "")])
        .names(
            "no-space",
            pods[0].name(),
            &[FULL, &format!("checkpoints/{}", pods[0].name())],
        );
    assert_eq!(before, node.state_files(), "something is not what it was");
    node.assert_all_loads();
    fs::remove_file(filler).expect("room again");
    node.snapshot();
    assert_eq!(node.generations(), [1, 2, 3]);
}

#[test]
fn of_very_many_routes_the_widest_are_recorded_and_the_others_are_named() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[1].capture();
    let route = |n: u32| {
        let [_, a, b, c] = n.to_be_bytes();
        format!("route add {}.{b}.{c}.0/24 dev eth0\n", 20 + a)
    };
    let routes = (0..121_000).map(route);
    let batch = node.temp().join("batch");
    fs::write(&batch, routes.collect::<String>()).expect("a file");
    pods[0].ip(&format!("-batch {}", batch.display()));
    pods[0].ip("route add 172.16.0.0/12 dev eth0");
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("pod-budget", pods[0].name())])
        .names("pod-budget", pods[0].name(), &["120000 routes"]);
    node.assert_all_loads();
    node.lose_and_reload();
    node.netfix("restore --nic-wait 10s")
        .exits(5)
        .errors(&[("unsupported", pods[0].name())]);
    let routes = pods[0].ip("route show proto boot");
    assert_eq!(routes.lines().count(), 120_000);
    assert!(routes.contains("172.16.0.0/12"));
    pods[1].assert_same_as(&before);
}

#[test]
fn on_a_full_disk_no_file_is_replaced_without_a_generation() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let pods = node.simple_pods(2);
    node.snapshot();
    fs::write(node.checkpoint_of(&pods[0]), "damaged").expect("a damaged file");
    let filler = disk.fill();
    let before = node.state_files();
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("no-space", pods[0].name())])
        .names("no-space", pods[0].name(), &[FULL]);
    assert_eq!(before, node.state_files(), "something is not what it was");
    fs::remove_file(filler).expect("room again");
    node.snapshot();
    assert_eq!(node.kept_of(&pods[0])[1], b"damaged");
}

#[test]
fn a_restore_works_on_a_full_or_read_only_disk() {
    for read_only in [false, true] {
        let node = Node::new();
        let disk = Disk::under(&node, SIZE);
        let pods = node.simple_pods(1);
        let before = pods[0].capture();
        node.snapshot();
        if read_only {
            disk.mount(&["-o", "remount,ro"]);
        } else {
            disk.fill();
        }
        node.lose_and_reload();
        node.restore();
        pods[0].assert_same_as(&before);
    }
}

#[test]
fn in_a_read_only_directory_a_snapshot_reports_the_file_and_loses_nothing() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let pods = node.simple_pods(1);
    node.snapshot();
    let before = node.state_files();
    disk.mount(&["-o", "remount,ro"]);
    pods[0].ip("link set eth0 mtu 1400");
    node.netfix("snapshot -o json")
        .exits(1)
        .errors(&[("unwritable", pods[0].name()), ("unwritable", "")])
        .names("unwritable", pods[0].name(), &[READ_ONLY]);
    let pruned = node.netfix_json("prune --keep 1").exits(0);
    assert_eq!(pruned.json()["kept"]["removed"], serde_json::json!([]));
    assert_eq!(before, node.state_files());
    disk.mount(&["-o", "remount,rw"]);
    node.snapshot();
    disk.mount(&["-o", "remount,ro"]);
    node.netfix("prune --keep 1")
        .exits(1)
        .errors(&[("unwritable", "")])
        .names("unwritable", "", &[READ_ONLY, "generations/1"]);
    assert_eq!(node.generations(), [1, 2]);
}

#[test]
fn a_refused_write_and_an_unreadable_file_have_different_codes() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    for (errno, code) in [
        ("EDQUOT", "no-space"),
        ("ENOSPC", "no-space"),
        ("EIO", "unwritable"),
        ("EROFS", "unwritable"),
    ] {
        pods[0].ip("link set eth0 mtu 1400");
        let before = node.stored_of(&pods[0]);
        for call in ["fsync", "?rename,?renameat,?renameat2"] {
            let inject = format!("inject={call}:error={errno}");
            let wrapper = injecting(&inject);
            Run::of(&mut node.netfix_command(&wrapper, "snapshot -o json"))
                .exits(1)
                .errors(&[(code, pods[0].name()), (code, "")]);
            assert_eq!(
                node.stored_of(&pods[0]),
                before,
                "{call} {errno}: the old file is not what it was"
            );
        }
    }
    node.snapshot();
    node.assert_all_loads();
}

#[test]
fn a_snapshot_is_refused_if_the_state_directory_cannot_be_created() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let _pods = node.simple_pods(1);
    disk.mount(&["-o", "remount,ro"]);
    let run = node
        .netfix("snapshot")
        .exits(4)
        .errors(&[("unwritable", "")])
        .names("unwritable", "", &[READ_ONLY, "lock"]);
    assert!(run.out.is_empty(), "{}", run.transcript());
}

#[test]
fn without_hard_links_files_are_copied() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    for errno in ["EMLINK", "EPERM", "EXDEV", "EOPNOTSUPP"] {
        pods[0].ip("link set eth0 mtu 1400");
        let inject = format!("inject=?link,?linkat:error={errno}");
        let wrapper = injecting(&inject);
        Run::of(&mut node.netfix_command(&wrapper, "snapshot")).exits(0);
        let newest = *node.generations().last().expect("a generation");
        for pod in &pods {
            let meta = fs::metadata(node.kept_file(newest, pod)).expect("a kept file");
            assert_eq!(
                (meta.nlink(), meta.mode() & 0o777),
                (1, 0o600),
                "{errno}: {}",
                pod.name()
            );
            assert_eq!(
                fs::read(node.kept_file(newest, pod)).expect("a kept file"),
                node.stored_of(pod),
                "{errno}"
            );
        }
    }
    node.assert_all_loads();
}

#[test]
fn generations_are_private_and_complete() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    fs::write(node.checkpoint_of(&pods[0]), "damaged").expect("a damaged file");
    node.snapshot();
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("the path exists")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&node.generations_folder()), 0o700);
    for number in node.generations() {
        let folder = node.generation(number);
        assert_eq!(
            (mode(&folder), mode(&folder.join("checkpoints"))),
            (0o700, 0o700),
            "{number}"
        );
        assert_eq!(
            names(&folder.join("checkpoints")).len(),
            pods.len(),
            "{number}"
        );
        assert!(folder.join("node.json").exists(), "{number}");
    }
    let kept = node.state_files().into_iter().map(|(path, _)| path);
    for path in kept.filter(|path| path.starts_with(node.generations_folder())) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_generation_writable_by_other_users_is_not_used() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose_and_reload();
    for folder in [
        node.generations_folder(),
        node.generation(1),
        node.generation(1).join("checkpoints"),
    ] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("an open folder");
        node.netfix("restore --generation 1")
            .exits(4)
            .errors(&[("unreadable", "")]);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a private folder");
    }
    assert!(!pods[0].has_eth0(), "something was restored");
}

#[test]
fn a_thousand_unchanged_checkpoints_are_one_file_each() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    // Of another pod, which this test does not check.
    let mut other = json(&node.stored_of(&pods[0]));
    other["netfix"]["identity"] =
        serde_json::json!({"cookie": 1, "device": 1, "inode": 1, "holder": null});
    let text = with_checksum(other, "/netfix/checksum");
    let folder = node.state_dir().join("checkpoints");
    for number in 0..1000 {
        let path = folder.join(format!("other-{number}"));
        fs::write(&path, &text).expect("a checkpoint");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a private file");
    }
    for mtu in [1450, 1400, 1350] {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.netfix(&format!("snapshot --pod {}", pods[0].name()))
            .exits(0);
    }
    let generations = node.generations();
    assert_eq!(generations, [1, 2, 3, 4]);
    let inodes = |number: u64| -> Vec<u64> {
        let folder = node.generation(number).join("checkpoints");
        let inode = |name: String| fs::metadata(folder.join(name)).expect("a kept file").ino();
        // Only this pod changes.
        names(&folder)
            .into_iter()
            .filter(|name| name != pods[0].name())
            .map(inode)
            .collect()
    };
    assert_eq!(inodes(3).len(), 1000);
    assert_eq!(inodes(3), inodes(4), "what did not change was copied");
    node.assert_all_loads();
}
