//! Snapshots killed at any instant: every generation still loads, and every good state is still stored.

use std::time::Duration;

use crate::common::{Node, Pod, Run};
use crate::killed::kill_after;

/// The system calls that change the state directory; strace can kill at each of them.
const CALLS: &str = "?mkdir,?mkdirat,?rename,?renameat,?renameat2,?link,?linkat,?unlink,?unlinkat,?rmdir,fsync,openat";

/// Kills a snapshot at the `number`th of these calls. Returns whether the snapshot reached it.
fn kill_at(node: &Node, number: usize) -> bool {
    let inject = format!("inject={CALLS}:signal=KILL:when={number}");
    let run = Run::of(&mut node.netfix_command(
        &["timeout", "60", "strace", "-o", "/dev/null", "-e", &inject],
        "snapshot --keep 1",
    ));
    assert!(
        run.code == Some(0) || run.code.is_none() || run.code == Some(137),
        "{}",
        run.transcript()
    );
    run.code != Some(0)
}

/// Each of these is still stored, as the current file or in a generation.
fn assert_nothing_is_lost(node: &Node, pods: &[Pod<'_>], before: &[Vec<u8>], when: &str) {
    // Leftovers have other names than generations.
    node.assert_all_loads();
    for (pod, before) in pods.iter().zip(before) {
        let in_generations = || {
            let all = std::fs::read_dir(node.generations_folder())
                .into_iter()
                .flatten()
                .flatten();
            let whole = all.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
            let files = whole.map(|entry| entry.path().join("checkpoints").join(pod.name()));
            files
                .filter_map(|file| std::fs::read(file).ok())
                .any(|held| held == *before)
        };
        let still = node.stored_of(pod) == *before || in_generations();
        assert!(still, "{when}: the checkpoint of {} is nowhere", pod.name());
    }
}

fn change(pods: &[Pod<'_>], number: usize) {
    for pod in pods {
        pod.ip(&format!("link set eth0 mtu {}", 1200 + number % 200));
    }
}

#[test]
fn a_snapshot_killed_at_any_of_its_calls_loses_nothing_good() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix("snapshot --keep 1").exits(0);
    let mut number = 1;
    loop {
        let before: Vec<_> = pods.iter().map(|pod| node.stored_of(pod)).collect();
        change(&pods, number);
        let killed = kill_at(&node, number);
        assert_nothing_is_lost(&node, &pods, &before, &format!("killed at call {number}"));
        if !killed {
            break;
        }
        number += 1;
    }
    assert!(number > 40, "the snapshot was never killed where it writes");
    node.netfix("diff").exits(0);
    node.netfix("snapshot --keep 1").exits(0);
    assert_eq!(
        node.generations().len(),
        1,
        "nothing is left of the killed ones"
    );
}

#[test]
fn snapshots_killed_at_random_instants_lose_nothing_good() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.netfix("snapshot --keep 2").exits(0);
    let mut random = u64::from(std::process::id());
    for number in 0..40 {
        let before: Vec<_> = pods.iter().map(|pod| node.stored_of(pod)).collect();
        change(&pods, number);
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let delay = Duration::from_micros((random >> 33) % 40_000);
        kill_after(&node, "snapshot --keep 2", delay);
        assert_nothing_is_lost(&node, &pods, &before, &format!("killed after {delay:?}"));
    }
    node.snapshot();
    node.netfix("diff").exits(0);
}
