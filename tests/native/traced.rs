//! netfix under strace: it writes only to its state directory and the pods' sysctls, and its main
//! thread never changes namespaces.

use std::path::Path;

use crate::common::Node;
use crate::common::cni::static_ipam;
use crate::common::trace::Trace;

#[test]
fn only_sysctls_and_the_state_directory_are_written_and_the_main_thread_stays_in_its_namespaces() {
    let node = Node::new();
    let both = static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]);
    let _pods = [
        node.pod_with_dad("web").attach(&both),
        node.pod("api").simple(),
    ];
    let traced = |words: &str| {
        let trace = node.netfix_traced(words);
        let moves = trace.main_thread_moves();
        assert!(moves.is_empty(), "{words}: {moves:#?}");
        assert!(
            trace.thread_moves() > 0,
            "{words} entered no pod at all\n{}",
            trace.run.transcript()
        );
        trace
    };
    let writes_only_to = |trace: &Trace, folders: &[&Path]| {
        assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
        let stray = trace.writes_outside(folders);
        assert!(stray.is_empty(), "{stray:#?}");
    };
    let state = node.state_dir();
    let snapshot = traced("snapshot");
    writes_only_to(&snapshot, &[&state]);
    let inside = snapshot.calls(&["rename", "renameat", "renameat2"]).count();
    assert!(
        inside > 0,
        "the trace shows no rename at all, so it would show no stray write either"
    );
    traced("diff");
    node.lose_and_reload();
    traced("plan");
    let restore = traced("restore");
    writes_only_to(&restore, &[&state, Path::new("/proc/sys/net/")]);
    assert!(
        !restore.netlink_changes().is_empty(),
        "the trace shows no netlink change"
    );
    traced("verify");
}
