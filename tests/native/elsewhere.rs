//! netfix works where process 1 does: from another network namespace, or without the processes of the machine, it takes nothing for
//! the host and nothing for gone.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run};

/// They start netfix where it does not see the host.
const WRAPPERS: [&str; 4] = [
    // In another network namespace.
    "unshare --net",
    // As process 1 of a pid namespace.
    "unshare --pid --fork --mount-proc",
    // In a pid namespace inside that of the records.
    "unshare --pid --fork --mount-proc sh -c '\"$@\"; exit $?' sh",
    // With a /proc of another pid namespace.
    "unshare --pid --fork",
];
const END: &str = "--- next";

/// What a shell says of every command under `wrapper`.
fn refusals(wrapper: &str, metrics: &Path) -> String {
    format!(
        "for words in snapshot plan verify restore status 'guard --once' 'upgrade --yes --foreground --no-pause -- true'; do
            said=$({wrapper} \"$@\" $words 2>&1); code=$?; echo \"$words: $code $said\"
            [ $code = 4 ] || exit 11; case $said in *not-the-host*) ;; *) exit 12 ;; esac
        done
        {wrapper} \"$@\" check --textfile {metrics}; [ $? = 3 ] || exit 13; [ \"$before\" = \"$(sums)\" ] || exit 14
        {wrapper} \"$@\" list; [ $? = 0 ] || exit 15; echo '{END}'\n",
        metrics = metrics.display(),
    )
}

fn assert_counts_the_refusal(metrics: &Path) {
    let metrics = fs::read_to_string(metrics).expect("metrics");
    let counted = metrics.lines().any(|line| line.contains("not-the-host"));
    assert!(
        metrics.contains("netfix_check_status 3") && counted,
        "{metrics}"
    );
}

#[test]
fn from_another_network_or_pid_namespace_everything_is_refused() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<Capture> = pods.iter().map(Pod::capture).collect();
    let metrics = [0, 1, 2, 3].map(|at| node.temp().join(format!("netfix-{at}.prom")));
    let wrapped = WRAPPERS.iter().zip(&metrics);
    let wrapped: String = wrapped
        .map(|(wrapper, file)| refusals(wrapper, file))
        .collect();
    let script = format!(
        "unset NETFIX_HOST_NETNS; \"$@\" snapshot || exit 10
        sums() {{ find {state} -type f -not -name lock | sort | xargs cksum; }}; before=$(sums)
        {wrapped}",
        state = node.state_dir().display(),
    );
    let run = Run::of(&mut node.script_alone("true", &script, "")).exits(0);
    for (said, wrapper) in run.out.split(END).zip(WRAPPERS) {
        assert!(
            said.contains("UNKNOWN: not-the-host: "),
            "{wrapper}: {said}"
        );
    }
    for file in &metrics {
        assert_counts_the_refusal(file);
    }
    node.lose_and_reload();
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_device_a_pipe_and_standard_output_are_written_into_and_stay() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let folder = node.temp().join("places");
    fs::create_dir(&folder).expect("a folder");
    let script = format!(
        "cd {}; \"$@\" snapshot >snapshot || exit; mknod null c 1 3; mkfifo pipe; ln -s null link; ln -s /proc/self/fd/1 stdout; echo kept > file; ln -s file other; \
        mknod block b 7 0; cat pipe > read & for to in null pipe link; do \"$@\" check --textfile $to || exit; done; wait; \
        \"$@\" check --textfile stdout > printed || exit; for to in other block .; do \"$@\" check --textfile $to; [ $? = 3 ] || exit; done; exit 0",
        folder.display()
    );
    let mut command = node.script_alone("true", &script, "");
    Run::of(&mut command).exits(0);
    let kind = |name: &str| {
        fs::symlink_metadata(folder.join(name))
            .expect("it is there")
            .file_type()
    };
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("text");
    assert!(
        kind("null").is_char_device() && kind("pipe").is_fifo() && kind("block").is_block_device()
    );
    for link in ["link", "stdout", "other"] {
        assert!(kind(link).is_symlink(), "{link}");
    }
    assert_eq!(text("file"), "kept\n");
    for name in ["read", "printed"] {
        let text = text(name);
        assert!(text.contains("netfix_check_status 0"), "{name}: {text}");
    }
}
