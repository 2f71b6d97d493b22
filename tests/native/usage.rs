//! Refusals and their messages: wrong usage, missing rights, no checkpoints.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::common::machine::Machine;
use crate::common::namespace::Namespace;
use crate::common::run::BINARY;
use crate::common::{Node, Run, tool};

#[test]
fn wrong_usage_exits_with_2() {
    for words in [
        "frobnicate",
        "restore --no-such-flag",
        "show",
        "restore --wait soon",
        "snapshot -o yaml",
        "snapshot --every 10ms",
        "check --every 5m --merge x.json",
        "host",
    ] {
        let run = Run::of(&mut tool::command(BINARY, words.split_whitespace())).exits(2);
        assert!(
            !run.err.is_empty() && run.out.is_empty(),
            "{}",
            run.transcript()
        );
    }
    let mut bare = tool::command(BINARY, [] as [&str; 0]);
    let help = Run::of(&mut bare).exits(2).err;
    assert!(help.contains("Usage: netfix"), "{help}");
    let configured = Run::of(bare.env("NETFIX_STATE_DIR", "/nowhere")).exits(2);
    assert_eq!(configured.err, help);
}

#[test]
fn host_runs_a_program_of_the_host_and_ends_with_its_exit_code() {
    let node = Node::new();
    let machine = Machine::start(&node);
    let namespaces = "cd /proc/self/ns && for one in cgroup ipc mnt net pid uts; do \
        [ $one -ef /proc/1/ns/$one ] || exit 8; done; exit 9";
    let container = ["--mount", "--uts", "--ipc", "--net", "--cgroup"];
    let run = |options: &[&str], words: &[&str]| {
        let mut command = machine.exec("unshare");
        Run::of(
            command
                .args(options)
                .args([BINARY, "host", "--"])
                .args(words),
        )
    };
    for (words, code) in [
        (&["sh", "-c", namespaces][..], 9),
        (&["/nowhere/program"], 127),
        (&["/etc"], 126),
    ] {
        run(&container, words).exits(code);
    }
    // Without the process ids of the host, process 1 is netfix itself.
    let own = ["--pid", "--fork", "--mount-proc"];
    run(&own, &["true"]).exits(4).stderr_has(&["hostPID"]);
    let user = ["--setuid", "4242"];
    run(&user, &["true"]).exits(4).stderr_has(&["/proc/1/ns"]);
}

#[test]
fn a_release_build_has_no_failure_points() {
    let found = tool::command("grep", ["--quiet", "--text", "NETFIX_FAILPOINT", BINARY])
        .status()
        .expect("grep");
    assert_eq!(found.success(), cfg!(feature = "failpoints"));
}

#[test]
fn help_and_version_exit_with_0() {
    Run::of(&mut tool::command(BINARY, ["--help"]))
        .exits(0)
        .stdout_has(&["snapshot", "restore", "verify", "plan", "diff"]);
    Run::of(&mut tool::command(BINARY, ["--version"]))
        .exits(0)
        .stdout_has(&["netfix"]);
    Run::of(&mut tool::command(BINARY, ["restore", "--help"]))
        .exits(0)
        .stdout_has(&["--nic-wait", "--dry-run"]);
}

#[test]
fn the_configuration_file_sets_what_the_command_line_does_not() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let file = node.temp().join("config.toml");
    let write = |text: &str| fs::write(&file, text).expect("a file");
    let run = |words: &str| node.netfix(&format!("{words} --config {}", file.display()));
    write("max-age = \"1h\"\n[check]\nmax-age = \"1s\"\nnic = [\"eth0\"]\n");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    run("check").exits(1).stdout_has(&["last verified"]);
    run("check --max-age 1h").exits(0);
    let alone = |words: &str| node.netfix_alone(&format!("{words} --config {}", file.display()));
    let status = alone("status -o json").json();
    assert_eq!(
        status["status"]["config"],
        json!({ "file": file, "settings": [
            { "command": null, "option": "max-age", "values": ["1h"] },
            { "command": "check", "option": "max-age", "values": ["1s"] },
            { "command": "check", "option": "nic", "values": ["eth0"] },
        ], "error": null })
    );
    alone("status -v").stdout_has(&["check --max-age 1s"]);
    let named = |line: &str| format!("{}:{line}", file.display());
    write("keep = 3\n\ndeadlin = 7\n");
    run("check").exits(2).stderr_has(&[&named("3: deadlin:")]);
    run("check --nagios")
        .exits(3)
        .stdout_has(&["NETFIX UNKNOWN", "deadlin"]);
    // The night goes on with the defaults.
    let goes_on = [
        run("restore"),
        run("verify"),
        alone("status"),
        alone("report --list"),
        alone("resume"),
    ];
    for warned in goes_on {
        warned
            .exits(0)
            .stderr_has(&[&named("3: deadlin:"), "continuing without"]);
    }
    alone("status").stdout_has(&[
        &format!("config     not used: {}", named("3: deadlin:")),
        "Did you mean deadline?",
        "next       correct the configuration file",
    ]);
    write("keep = 3\n\n\"a\u{202e}b\" = 7\n");
    let shown = alone("status").exits(0).stderr_has(&["a\\u{202e}b"]);
    assert!(!shown.err.contains('\u{202e}'), "{}", shown.transcript());
    for (line, limit) in [
        ("deadline = \"1000000years\"", "at most"),
        ("unit = \"../../x\"", "the name of a unit"),
    ] {
        write(&format!("{line}\n"));
        alone("pause").exits(2).stderr_has(&[&named("1: "), limit]);
    }
    node.netfix("check --config none").exits(0);
    write("keep = 3\n");
    run("check").exits(0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("chmod");
    run("check").exits(2).stderr_has(&["only root can write"]);
    fs::remove_file(&file).expect("rm");
    run("check").exits(2).stderr_has(&["does not exist"]);
}

#[test]
fn a_pod_that_does_not_exist_is_refused_with_the_same_code_by_every_command() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let before = node.state_files();
    for words in [
        "snapshot no-such-pod",
        "list no-such-pod",
        "show no-such-pod",
        "diff no-such-pod",
        "plan no-such-pod",
        "restore no-such-pod",
        "verify no-such-pod",
        "upgrade --yes --foreground no-such-pod -- true",
    ] {
        let run = node.netfix(words).exits(4);
        assert!(run.err.contains("no-such-pod"), "{}", run.transcript());
    }
    // The convention of monitoring plugins.
    node.netfix("check no-such-pod").exits(3);
    assert_eq!(node.state_files(), before);
    // It writes what it found.
    node.netfix("guard --once no-such-pod").exits(4);
    assert!(pods[0].has_eth0());
}

#[test]
fn without_root_commands_that_need_it_are_refused() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let before = node.state_files();
    node.lose_and_reload();
    for words in ["snapshot", "restore", "plan", "diff", "verify"] {
        let nobody = [
            "setpriv",
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
        ];
        Run::of(&mut node.netfix_command(&nobody, words))
            .exits(4)
            .errors(&[("permission-denied", "")])
            .lacks("panicked");
    }
    assert_eq!(before, node.state_files(), "the state folder was changed");
    assert!(!pods[0].has_eth0());
}

#[test]
fn root_without_the_capability_reports_the_errno() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose_and_reload();
    let bare = [
        "setpriv",
        "--bounding-set",
        "-net_admin,-sys_admin",
        "--inh-caps",
        "-all",
        "--",
    ];
    let run = Run::of(&mut node.netfix_command(&bare, "restore")).exits(1);
    run.names("unreadable", pods[0].name(), &["EPERM"])
        .lacks("panicked");
    assert!(!pods[0].has_eth0());
}

#[test]
fn without_any_checkpoint_a_restore_fails_and_changes_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.lose_and_reload();
    let (bare, host) = (pods[0].capture(), node.capture());
    node.netfix("restore").exits(4).errors(&[
        ("checkpoint-missing", ""),
        ("checkpoint-missing", pods[0].name()),
        ("checkpoint-missing", pods[1].name()),
    ]);
    node.netfix("diff").exits(4).errors(&[
        ("checkpoint-missing", ""),
        ("checkpoint-missing", pods[0].name()),
        ("checkpoint-missing", pods[1].name()),
    ]);
    node.netfix_json("restore").exits(4).errors(&[
        ("checkpoint-missing", ""),
        ("checkpoint-missing", pods[0].name()),
        ("checkpoint-missing", pods[1].name()),
    ]);
    bare.assert_same(&pods[0].capture(), pods[0].name());
    host.assert_same(&node.capture(), "the node");
}

#[test]
fn a_selection_that_matches_no_namespace_fails() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    node.netfix("snapshot --pod no-such-pod")
        .exits(4)
        .errors(&[("not-found", "")])
        .names("not-found", "", &["no-such-pod"]);
    node.netfix("restore --pod no-such-pod")
        .exits(4)
        .errors(&[("checkpoint-missing", "")])
        .names("checkpoint-missing", "", &["no-such-pod"]);
}

#[test]
fn a_selector_without_a_pod_beside_one_with_a_pod_is_an_error_of_every_command() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let selectors = format!("--pod {} --pod no-such-pod", pods[0].name());
    for (verb, code) in [
        ("snapshot", 5),
        ("check", 3),
        ("plan", 5),
        ("restore", 5),
        ("verify", 5),
        ("list", 5),
    ] {
        let run = node.netfix(&format!("{verb} {selectors}")).exits(code);
        run.errors(&[("not-found", "")])
            .names("not-found", "", &["--pod no-such-pod"]);
    }
    node.netfix(&format!("upgrade --no-pause --yes {selectors} -- true"))
        .exits(4)
        .names("not-found", "", &["--pod no-such-pod"]);
}

#[test]
fn the_namespace_of_the_node_is_never_a_pod() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let home: &Namespace = &node.ns;
    let glob = format!("/run/netns/{}*", home.name());
    let run = node.netfix_json(&format!("snapshot --netns {glob}"));
    let paths: Vec<_> = run.json()["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pod| pod["netns"].clone())
        .collect();
    assert!(
        paths
            .iter()
            .any(|path| path == &format!("/run/netns/{}", pods[0].name())),
        "{}",
        run.transcript()
    );
    assert!(
        !paths
            .iter()
            .any(|path| path == &format!("/run/netns/{}", home.name())),
        "{}",
        run.transcript()
    );
}
