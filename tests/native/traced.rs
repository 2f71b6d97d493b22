//! netfix under strace: it writes only to its state directory and the pods' sysctls, and its main
//! thread never changes namespaces.

use std::path::Path;

use crate::common::Node;
use crate::common::cni::static_ipam;

#[test]
fn a_snapshot_writes_nothing_outside_the_state_directory() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    let trace = node.netfix_traced("snapshot");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    let inside = trace.calls(&["rename", "renameat", "renameat2"]).count();
    assert!(
        inside > 0,
        "the trace shows no rename at all, so it would show no stray write either"
    );
    let stray = trace.writes_outside(&[&node.state_dir()]);
    assert!(stray.is_empty(), "{stray:#?}");
}

#[test]
fn a_restore_writes_only_sysctls_and_the_state_directory() {
    let node = Node::new();
    let _pod = node
        .pod("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    node.snapshot();
    node.lose_and_reload();
    let trace = node.netfix_traced("restore");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    assert!(
        !trace.netlink_changes().is_empty(),
        "the trace shows no netlink change"
    );
    let stray = trace.writes_outside(&[&node.state_dir(), Path::new("/proc/sys/net/")]);
    assert!(stray.is_empty(), "{stray:#?}");
}

#[test]
fn the_main_thread_never_changes_its_namespaces() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    let check = |words: &str| {
        let trace = node.netfix_traced(words);
        let moves = trace.main_thread_moves();
        assert!(moves.is_empty(), "{words}: {moves:#?}");
        assert!(
            trace.thread_moves() > 0,
            "{words} entered no pod at all\n{}",
            trace.run.transcript()
        );
    };
    check("snapshot");
    check("diff");
    node.lose_and_reload();
    check("plan");
    check("restore");
    check("verify");
}
