//! Snapshots killed at random instants: every generation still loads, and every good state is still stored. `tests/sweep` kills
//! them at each write.

use std::time::Duration;

use crate::common::{Node, Pod};
use crate::killed::kill_after;

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
