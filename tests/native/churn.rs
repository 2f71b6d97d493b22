//! Pods that start and end while netfix reads them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::common::background::wait_until;
use crate::common::run::injecting;
use crate::common::tool;
use crate::common::{CriNode, Node, Run};

/// Longer than netfix needs from one step to the next.
const STEP: Duration = Duration::from_millis(300);

#[test]
fn a_namespace_unmounted_between_listing_and_opening_is_gone_and_not_an_error() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let leaving = node.pod("leaving").simple();
    let path = leaving.ns.path();
    let slow = injecting("inject=openat:delay_enter=3000000");
    let of_path = ["-P", &path.to_string_lossy()];
    let mut command = node.netfix_command(&[&slow[..], &of_path].concat(), "snapshot");
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| Run::of(&mut command));
        assert!(
            wait_until(|| node.state_dir().join("lock").exists()),
            "no snapshot began"
        );
        thread::sleep(2 * STEP);
        // The mount goes first, as with every runtime, and leaves a plain file.
        tool::run(tool::command("umount", [&path]).arg("--lazy"));
        run.join().expect("netfix was run")
    });
    let run = run.exits(0).errors(&[]).warnings(&[]);
    assert!(
        node.checkpoint_of(&pods[0]).exists(),
        "{}",
        run.transcript()
    );
}

/// A pod without its interface but still with its namespace, at the first observation of a snapshot.
#[test]
fn a_pod_that_is_being_deleted_during_a_snapshot_is_not_degraded() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[1].ip("link del eth0");
    let mut command = node.netfix_command(&[], "snapshot");
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| Run::of(&mut command));
        thread::sleep(2 * STEP);
        pods[1].ns.delete();
        run.join().expect("netfix was run")
    });
    let run = run.exits(0).has_no("degraded");
    assert!(
        node.checkpoint_of(&pods[0]).exists(),
        "{}",
        run.transcript()
    );
}

/// The same, but the pod stays and a restore starts: the waiting snapshot must not hold the lock.
#[test]
fn a_snapshot_releases_the_lock_between_its_two_observations() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[1].capture();
    node.snapshot();
    pods[1].ip("link del eth0");
    let lock = node.state_dir().join("lock");
    let is_held = || fs::metadata(&lock).is_ok_and(|meta| meta.len() > 0);
    // Slow enough that the restore starts during the snapshot.
    let slowly = injecting("inject=sendto:delay_enter=15000");
    let mut command = node.netfix_command(&slowly, "snapshot --lock-wait 20s");
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| Run::of(&mut command));
        assert!(wait_until(is_held), "no snapshot began");
        assert!(wait_until(|| !is_held()), "it never gives up the lock");
        node.netfix("restore").exits(0);
        run.join().expect("netfix was run")
    });
    run.exits(0).has_no("degraded");
    pods[1].assert_same_as(&before);
}

/// Whether a running netfix has opened this namespace.
fn is_opened_by_netfix(inode: u64) -> bool {
    let is_netfix = |process: &PathBuf| {
        fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == "netfix")
    };
    let holds_it = |process: PathBuf| {
        let files = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter_map(|file| fs::metadata(file.path()).ok())
            .any(|target| target.ino() == inode)
    };
    let processes = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .map(|entry| entry.path());
    processes.filter(is_netfix).any(holds_it)
}

#[test]
fn a_pod_that_gets_its_first_link_during_a_snapshot_is_saved_with_its_parent() {
    let node = CriNode::new();
    let inside = |words: &str| tool::run(node.machine.exec("ip").args(words.split_whitespace()));
    inside("netns add late");
    let mounted = node.machine.root().join("run/netns/late");
    let inode = fs::metadata(&mounted)
        .unwrap_or_else(|e| panic!("{}: {e}", mounted.display()))
        .ino();
    let (machine, state_dir) = (&node.machine, node.node.state_dir());
    // While containerd hangs, the snapshot waits for it with every namespace open.
    node.freeze();
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| Run::inside(machine, &state_dir, "snapshot -o json"));
        assert!(
            wait_until(|| is_opened_by_netfix(inode)),
            "netfix does not open the namespace"
        );
        thread::sleep(STEP);
        inside("link add link eth0 name eth0 netns late type macvlan mode bridge");
        inside("-n late link set eth0 up");
        inside("-n late addr add 10.88.9.9/16 dev eth0");
        node.thaw();
        run.join().expect("netfix was run")
    });
    let run = run.exits(0);
    let interface = run.json()["pods"][0]["interfaces"][0].clone();
    assert_eq!(
        [&interface["name"], &interface["parent"]],
        ["eth0", "eth0"],
        "{}",
        run.transcript()
    );
    assert_eq!(
        interface["addresses"][0],
        "10.88.9.9/16",
        "{}",
        run.transcript()
    );
}
