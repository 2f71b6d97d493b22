//! Several files for one namespace, and one pod under several names: netfix uses the newest state, and keeps every file
//! that it replaces.

use std::fs;
use std::time::Duration;

use crate::common::Node;

#[test]
fn of_two_checkpoints_for_one_namespace_the_newer_one_is_used() {
    let older = "zzz";
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let file = node.checkpoint_of(&pods[0]);
    let old = fs::read_to_string(&file).expect("the old checkpoint");
    // The times in checkpoints are whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    pods[0].ip("link set eth0 mtu 1400");
    pods[1].ip("link set eth0 mtu 1300");
    let before = [pods[0].capture(), pods[1].capture()];
    node.snapshot();
    fs::write(file.with_file_name(older), &old).expect("the old checkpoint under another name");
    node.lose_and_reload();
    node.netfix("restore").exits(0).has_no("netns-gone").names(
        "checkpoint-stale",
        older,
        &[pods[0].name()],
    );
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.snapshot();
    assert!(
        file.exists() ^ file.with_file_name(older).exists(),
        "there is still more than one about one pod"
    );
    node.netfix("restore").exits(0).has_no("checkpoint-stale");
}
