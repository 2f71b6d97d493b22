//! netfix works where process 1 does: from another network namespace, or without the processes of the machine, it takes nothing for
//! the host and nothing for gone.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run};

/// On a machine with two pods and their snapshot, `wrapper` starts netfix where it does not see the host.
fn refuses_everything(wrapper: &str) {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<Capture> = pods.iter().map(Pod::capture).collect();
    let metrics = node.temp().join("netfix.prom");
    let script = format!(
        "unset NETFIX_HOST_NETNS; \"$@\" snapshot || exit 10
        sums() {{ find {state} -type f -not -name lock | sort | xargs cksum; }}; before=$(sums)
        for words in snapshot plan verify restore status 'guard --once' 'upgrade --yes --foreground --no-pause -- true'; do
            said=$({wrapper} \"$@\" $words 2>&1); code=$?; echo \"$words: $code $said\"
            [ $code = 4 ] || exit 11; case $said in *not-the-host*) ;; *) exit 12 ;; esac
        done
        {wrapper} \"$@\" check --textfile {metrics}; [ $? = 3 ] || exit 13; [ \"$before\" = \"$(sums)\" ] || exit 14
        {wrapper} \"$@\" list; [ $? = 0 ] || exit 15",
        state = node.state_dir().display(),
        metrics = metrics.display(),
    );
    Run::of(&mut node.script_alone("true", &script, ""))
        .exits(0)
        .stdout_has(&["UNKNOWN: not-the-host: "]);
    let metrics = fs::read_to_string(metrics).expect("metrics");
    let counted = metrics.lines().any(|line| line.contains("not-the-host"));
    assert!(
        metrics.contains("netfix_check_status 3") && counted,
        "{metrics}"
    );
    node.lose_and_reload();
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn another_network_namespace_is_never_the_host() {
    refuses_everything("unshare --net");
}

#[test]
fn a_pid_namespace_in_which_netfix_is_process_1_is_refused() {
    refuses_everything("unshare --pid --fork --mount-proc");
}

#[test]
fn a_pid_namespace_inside_that_of_the_records_is_refused() {
    refuses_everything("unshare --pid --fork --mount-proc sh -c '\"$@\"; exit $?' sh");
}

#[test]
fn a_proc_of_another_pid_namespace_is_refused() {
    refuses_everything("unshare --pid --fork");
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
