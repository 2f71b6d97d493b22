//! A namespace whose path, inode or pid is reused gets nothing from the former checkpoint; a namespace that is proven
//! to be the same is restored.

use std::process::Command;

use serde_json::Value;

use crate::common::moment::{AFTER_LOOKING, AFTER_OPENING, Moment};
use crate::common::namespace::{Namespace, unique_name};
use crate::common::reuse::{Pids, Taken, Unnamed, inode_of, until_reused};
use crate::common::tenant::{Tenant, Wanderer, furnish};
use crate::common::{Node, Pod, Run, old_kernel};

/// Every checkpoint that a restore would read.
fn checkpoints(node: &Node) -> Vec<Value> {
    let folder = node.state_dir().join("checkpoints");
    let files = node
        .state_files()
        .into_iter()
        .filter(|(path, _)| path.starts_with(&folder));
    files
        .map(|(_, text)| serde_json::from_str(&text).expect("a checkpoint is JSON"))
        .collect()
}

/// The id of a pod without a mount and without a name from a runtime.
fn unnamed(inode: u64) -> String {
    format!("netns-{inode}")
}

/// A snapshot on a kernel without cookies; its files contain none.
fn snapshot_on_old_kernel(node: &Node, words: &str) {
    node.netfix_on_old_kernel(&format!("snapshot {words}"))
        .exits(0);
    let written = checkpoints(node);
    assert!(!written.is_empty(), "no checkpoint was written");
    for checkpoint in written {
        let identity = &checkpoint["netfix"]["identity"];
        assert!(
            identity["cookie"].is_null() && identity["inode"].is_u64(),
            "{identity}"
        );
    }
}

/// The pod that runs now is an error; the former one too where no cookie proves that it is gone.
#[track_caller]
fn assert_replaced(run: Run, pod: &Pod<'_>, has_cookies: bool) {
    let both = [
        ("checkpoint-missing", pod.name()),
        ("netns-replaced", pod.name()),
    ];
    run.names("netns-replaced", pod.name(), &[])
        .errors(if has_cookies { &both[..1] } else { &both });
}

/// Three pods, a snapshot, the loss; then the second one's namespace is recreated with the same inode number.
fn restore_with_one_reused_inode(
    run: impl Fn(&Node, &str) -> Run,
    has_cookies: bool,
) -> Result<(), Taken> {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    run(&node, "snapshot").exits(0);
    node.lose_and_reload();
    pods[1].ns.replace_with_same_inode()?;
    let fresh = pods[1].capture();
    for words in ["plan -o json", "restore"] {
        assert_replaced(run(&node, words).exits(5), &pods[1], has_cookies);
    }
    fresh.assert_same(&pods[1].capture(), "the namespace with the same inode");
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
    Ok(())
}

#[test]
fn a_namespace_with_a_reused_path_and_inode_gets_nothing_of_its_predecessor() {
    until_reused(|| restore_with_one_reused_inode(Node::netfix, true));
}

#[test]
fn without_cookies_a_namespace_with_a_reused_path_and_inode_gets_nothing_of_its_predecessor() {
    until_reused(|| restore_with_one_reused_inode(Node::netfix_on_old_kernel, false));
}

/// After the loss another pod has the path and the inode of the old one, and lost nothing.
fn snapshot_with_a_reused_inode() -> Result<(), Taken> {
    let node = Node::new();
    let run = Node::netfix_on_old_kernel;
    let pod = node.pod("web").simple();
    run(&node, "snapshot").exits(0);
    let old = std::fs::read_to_string(node.checkpoint_of(&pod)).expect("the old checkpoint");
    node.lose_and_reload();
    pod.ns.replace_with_same_inode()?;
    node.give_addresses();
    run(&node, "snapshot").exits(0).has_no("degraded");
    furnish(&node, &pod.ns, "10.88.7.7");
    let before = pod.capture();
    run(&node, "snapshot").exits(0);
    let new = std::fs::read_to_string(node.checkpoint_of(&pod)).expect("the new checkpoint");
    assert!(new.contains("10.88.7.7"), "{new}");
    assert!(
        node.state_files().iter().any(|(_, text)| *text == old),
        "the old checkpoint is nowhere any more"
    );
    node.lose_and_reload();
    run(&node, "restore").exits(0);
    pod.assert_same_as(&before);
    Ok(())
}

#[test]
fn without_cookies_a_namespace_with_a_reused_inode_gets_its_own_checkpoint() {
    until_reused(snapshot_with_a_reused_inode);
}

#[test]
fn without_cookies_an_empty_namespace_does_not_hide_the_next_one_with_its_inode() {
    until_reused(|| {
        let node = Node::new();
        let _pods = node.simple_pods(1);
        let empty = node.pod("empty");
        node.netfix_on_old_kernel("snapshot").exits(0);
        node.lose_and_reload();
        node.netfix_on_old_kernel("restore")
            .exits(0)
            .errors(&[])
            .lacks(empty.name());
        empty.ns.replace_with_same_inode()?;
        furnish(&node, &empty.ns, "10.88.7.7");
        empty.ip("link del eth0");
        node.netfix_on_old_kernel("restore")
            .exits(5)
            .errors(&[("checkpoint-missing", empty.name())]);
        node.netfix_on_old_kernel("verify")
            .exits(5)
            .errors(&[("checkpoint-missing", empty.name())]);
        Ok(())
    });
}

/// A mount proves the first; the oldest process of the second ends before the restore; the third is mounted again while its process
/// runs. A snapshot after the loss keeps the good checkpoints.
#[test]
fn without_cookies_a_namespace_that_a_mount_or_a_process_proves_is_kept_and_restored() {
    let node = Node::new();
    let mounted = node.pod("mounted").simple();
    let mut restarted = node.pod("restarted").simple().with_process();
    let remounted = node.pod("remounted").simple().with_process();
    let before = [&mounted, &restarted, &remounted].map(Pod::capture);
    snapshot_on_old_kernel(&node, "");
    let good = checkpoints(&node);
    node.lose_and_reload();
    restarted.replace_process();
    let pods = [&mounted, &restarted, &remounted];
    node.netfix_on_old_kernel("snapshot")
        .exits(1)
        .errors(&pods.map(|pod| ("degraded", pod.name())));
    assert_eq!(checkpoints(&node), good, "a good checkpoint was replaced");
    remounted.ns.delete();
    let again = Namespace::attach(remounted.name(), remounted.process_id());
    node.netfix_on_old_kernel("restore").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    drop(again);
}

#[test]
fn without_cookies_a_namespace_that_only_a_process_keeps_is_restored() {
    let node = Node::new();
    let pod = Tenant::new(&node).simple("10.88.3.1");
    let before = pod.capture();
    snapshot_on_old_kernel(&node, &pod.selector());
    node.lose_and_reload();
    node.netfix_on_old_kernel(&format!("restore {}", pod.selector()))
        .exits(0);
    pod.assert_same_as(&before);
}

#[test]
fn without_cookies_a_namespace_without_proof_is_not_changed() {
    let node = Node::new();
    let mut pod = Tenant::new(&node)
        .simple("10.88.3.1")
        .with_another_process();
    snapshot_on_old_kernel(&node, &pod.selector());
    let (then, path_then) = (pod.selector(), pod.path().display().to_string());
    pod.lose_oldest();
    node.lose_and_reload();
    let bare = pod.capture();
    let id = unnamed(inode_of(&pod.path()));
    node.netfix_on_old_kernel(&format!("restore {then} {}", pod.selector()))
        .exits(1)
        .errors(&[("netns-replaced", &id), ("checkpoint-missing", &id)])
        .names("netns-replaced", &id, &[&path_then, "cookie"])
        .has_no("netns-gone");
    bare.assert_same(
        &pod.capture(),
        "the namespace that is not proven to be the checkpoint's",
    );
}

/// A process ends, and a process in another namespace with the same inode number gets its pid.
fn restore_with_a_reused_pid(kernel: fn(&mut Command) -> Run) -> Result<(), Taken> {
    const PID: u32 = 4711;
    let node = Node::new();
    let pids = Pids::new(&node.ns);
    let run = |words: &str| {
        let init = pids.init().to_string();
        let inside = ["nsenter", "--target", &init, "--mount", "--pid"];
        let words = format!("{words} --netns /proc/{PID}/ns/net");
        kernel(&mut node.netfix_command(&inside, &words))
    };
    let home = Unnamed::new();
    let inode = home.inode();
    let first = pids.sleep_as(PID, &home);
    drop(home);
    furnish(
        &node,
        &Namespace::attach(&unique_name(), first.neighbour()),
        "10.88.3.1",
    );
    run("snapshot").exits(0);
    assert_eq!(
        checkpoints(&node).len(),
        1,
        "the process without a mount was not saved"
    );
    pids.kill(PID, first);
    node.lose_and_reload();
    let home = Unnamed::with_inode(inode)?;
    let second = pids.sleep_as(PID, &home);
    drop(home);
    let eye = Namespace::attach(&unique_name(), second.neighbour());
    let fresh = eye.capture(&node);
    let path = format!("/proc/{PID}/ns/net");
    let id = unnamed(inode);
    let errors = [
        ("netns-replaced", id.as_str()),
        ("checkpoint-missing", eye.name()),
    ];
    for verb in ["plan", "restore"] {
        run(verb)
            .exits(1)
            .errors(&errors)
            .names("netns-replaced", &id, &[&path]);
    }
    fresh.assert_same(
        &eye.capture(&node),
        "the namespace of the process with the same pid",
    );
    node.give_addresses();
    run("snapshot").exits(0).has_no("degraded");
    Ok(())
}

#[test]
fn a_process_with_a_reused_pid_in_a_namespace_with_a_reused_inode_gets_nothing_of_its_predecessor()
{
    until_reused(|| restore_with_a_reused_pid(Run::of));
}

#[test]
fn without_cookies_a_process_with_a_reused_pid_and_a_reused_inode_gets_nothing_of_its_predecessor()
{
    until_reused(|| restore_with_a_reused_pid(old_kernel::run));
}

#[test]
fn a_process_that_has_moved_to_another_namespace_with_the_same_inode_gets_nothing_of_the_first() {
    until_reused(|| {
        let node = Node::new();
        let mut process = Wanderer::new();
        let eye = || Namespace::attach(&unique_name(), process.id());
        furnish(&node, &eye(), "10.88.3.1");
        let words = |verb: &str| format!("{verb} --netns /proc/{}/ns/net", process.id());
        let (snapshot, restore) = (words("snapshot"), words("restore"));
        node.netfix(&snapshot).exits(0);
        node.lose_and_reload();
        let inode = inode_of(&process.path());
        process.move_to(&Unnamed::new());
        process.move_to(&Unnamed::with_inode(inode)?);
        let eye = Namespace::attach(&unique_name(), process.id());
        let fresh = eye.capture(&node);
        let (id, path) = (unnamed(inode), process.path().display().to_string());
        node.netfix(&restore)
            .exits(1)
            .errors(&[("netns-replaced", &id), ("checkpoint-missing", eye.name())])
            .names("netns-replaced", &id, &[&path]);
        fresh.assert_same(
            &eye.capture(&node),
            "the namespace that the process is in by now",
        );
        Ok(())
    });
}

/// A pod is deleted and recreated with the same inode, after netfix has listed all processes.
fn restore_while_a_pod_is_recreated(
    moment: &Moment,
    run: impl Fn(&Node, &str) -> Run,
    has_cookies: bool,
) -> Result<(), Taken> {
    let node = Node::new();
    let mut pods = node.simple_pods(2);
    pods[1].replace_process();
    let before = pods[0].capture();
    run(&node, "snapshot").exits(0);
    node.lose_and_reload();
    let mut fresh = Err(Taken);
    let restore = node.netfix_while("restore", moment, || {
        pods[1].end_process();
        fresh = pods[1]
            .ns
            .replace_with_same_inode()
            .map(|()| pods[1].capture());
    });
    let fresh = fresh?;
    assert_replaced(restore.exits(5), &pods[1], has_cookies);
    fresh.assert_same(&pods[1].capture(), "the pod that was recreated meanwhile");
    pods[0].assert_same_as(&before);
    Ok(())
}

#[test]
fn a_pod_recreated_during_the_observation_gets_nothing() {
    until_reused(|| restore_while_a_pod_is_recreated(&AFTER_LOOKING, Node::netfix, true));
}

#[test]
fn without_cookies_a_pod_recreated_during_the_observation_gets_nothing() {
    let moment = AFTER_LOOKING.without_cookies();
    until_reused(|| restore_while_a_pod_is_recreated(&moment, Node::netfix_on_old_kernel, false));
}

/// From one moment on, the path of a pod's mount leads to another namespace; the pod still runs.
fn restore_while_a_path_is_redirected(moment: &Moment) {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    // A thread writes sysctls inside the namespace.
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    let mut fresh = None;
    let restore = node.netfix_while("restore", moment, || {
        pod.ns.replace();
        fresh = Some(pod.capture());
    });
    restore.exits(0);
    fresh
        .expect("a capture")
        .assert_same(&pod.capture(), "the namespace that is at the path by now");
    let eye = Namespace::attach(&unique_name(), pod.process_id());
    before.assert_becomes("the pod whose path was taken", || eye.capture(&node));
}

#[test]
fn a_path_redirected_before_it_is_opened_is_not_used() {
    restore_while_a_path_is_redirected(&AFTER_LOOKING);
}

#[test]
fn a_path_redirected_after_it_was_opened_is_not_used_again() {
    restore_while_a_path_is_redirected(&AFTER_OPENING);
}

#[test]
fn a_namespace_that_cannot_be_entered_is_unreadable_and_not_gone() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let unreadable: Vec<_> = pods.iter().map(|pod| ("unreadable", pod.name())).collect();
    for words in ["plan -o json", "restore -o json"] {
        let without = &["setpriv", "--bounding-set=-sys_admin"];
        Run::of(&mut node.netfix_command(without, words))
            .exits(1)
            .errors(&unreadable);
    }
}
