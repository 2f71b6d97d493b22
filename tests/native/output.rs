//! The shape of `-o json`, and the content of stdout and stderr.

use serde_json::Value;

use crate::common::run::BINARY;
use crate::common::{Node, Pod, Run, tool};

fn assert_schema(run: &Run, command: &str, pods: &[Pod<'_>]) {
    let json = run.json();
    assert_eq!(json["schema"], "netfix/v1", "{}", run.transcript());
    assert_eq!(json["command"], command, "{}", run.transcript());
    assert_eq!(
        json["exit"].as_i64(),
        run.code.map(i64::from),
        "the document has another exit code\n{}",
        run.transcript()
    );
    assert!(json["node"].is_object(), "no node\n{}", run.transcript());
    assert!(
        json["problems"].is_array(),
        "no problems\n{}",
        run.transcript()
    );
    assert_eq!(
        json["pods"].as_array().map(Vec::len),
        Some(pods.len()),
        "{}",
        run.transcript()
    );
    for pod in pods {
        let entry = run.pod(pod);
        for key in ["id", "namespace", "name", "uid", "netns", "state"] {
            assert!(
                entry.get(key).is_some(),
                "a pod without {key}\n{}",
                run.transcript()
            );
        }
        assert!(
            entry["id"].is_string() && entry["state"].is_string(),
            "{}",
            run.transcript()
        );
        assert_eq!(
            entry["uid"],
            Value::Null,
            "the uid cannot be known\n{}",
            run.transcript()
        );
    }
}

#[test]
fn every_command_prints_the_same_schema() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    for command in ["snapshot", "list", "diff", "plan", "verify", "restore"] {
        assert_schema(&node.netfix_json(command).exits(0), command, &pods);
    }
    node.lose_and_reload();
    assert_schema(&node.netfix_json("diff").exits(3), "diff", &pods);
    assert_schema(&node.netfix_json("plan").exits(0), "plan", &pods);
    assert_schema(&node.netfix_json("verify").exits(1), "verify", &pods);
    assert_schema(&node.netfix_json("restore").exits(0), "restore", &pods);
}

#[test]
fn the_state_of_a_pod_shows_a_loss() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("link del eth0");
    let diff = node.netfix_json("diff").exits(3);
    assert_ne!(
        diff.pod(&pods[0])["state"],
        diff.pod(&pods[1])["state"],
        "{}",
        diff.transcript()
    );
    let restore = node.netfix_json("restore").exits(0);
    assert_ne!(
        restore.pod(&pods[0])["state"],
        diff.pod(&pods[0])["state"],
        "{}",
        restore.transcript()
    );
}

#[test]
fn a_failing_command_still_prints_one_document() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose();
    let run = node.netfix_json("restore --nic-wait 0").exits(1);
    assert_schema(&run, "restore", &pods);
    run.errors(&[
        ("parent-missing", ""),
        ("parent-missing", pods[0].name()),
        ("parent-missing", pods[1].name()),
    ]);
}

#[test]
fn a_pod_that_is_still_lost_is_shown_without_an_interface() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose();
    let run = node.netfix("restore --nic-wait 0").exits(1);
    let row = run.out.lines().find(|line| line.contains(pods[0].name()));
    assert!(
        !row.is_some_and(|row| row.contains("eth0")),
        "the pod has no eth0\n{}",
        run.transcript()
    );
}

#[test]
fn human_output_has_no_escape_sequences_and_no_progress_bar_in_a_pipe() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    for words in ["snapshot", "list", "diff", "plan", "verify", "restore"] {
        let run = node.netfix(words).exits(0).lacks("\u{1b}").lacks("\r");
        assert!(
            !run.out.trim().is_empty(),
            "{words} answers nothing\n{}",
            run.transcript()
        );
    }
}

#[test]
fn quiet_prints_nothing_without_problems() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let run = node.netfix("snapshot -q").exits(0);
    assert_eq!(run.err, "", "{}", run.transcript());
    node.lose_and_reload();
    let run = node.netfix("restore -q").exits(0);
    assert_eq!(run.err, "", "{}", run.transcript());
}

/// How stdout and stderr of `"$@"` may be lost; the last line is its exit code.
const LOST_OUTPUTS: [&str; 7] = [
    "\"$@\" | true; echo code ${PIPESTATUS[0]}",
    "\"$@\" 2>&1 >/dev/full | true; echo code ${PIPESTATUS[0]}",
    "\"$@\" >/dev/full; echo code $?",
    "\"$@\" 2>/dev/full; echo code $?",
    "\"$@\" >/dev/full 2>&1; echo code $?",
    "\"$@\" >&-; echo code $?",
    "\"$@\" >&- 2>&-; echo code $?",
];

#[test]
fn the_exit_code_is_the_commands_own_whatever_becomes_of_its_output() {
    const COMMANDS: [(&str, i32); 10] = [
        ("check", 2),
        ("check --nagios", 2),
        ("diff", 5),
        ("plan --exit-code -o json", 5),
        ("snapshot", 1),
        ("restore --nic-wait 0", 1),
        ("restore -v -o json --nic-wait 0", 1),
        ("verify --answer-wait 1s", 1),
        ("list", 0),
        ("list -o json", 0),
    ];
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    node.lose();
    for (words, code) in COMMANDS {
        node.netfix(words).exits(code);
        for script in LOST_OUTPUTS {
            let mut command = node.netfix_command(&["bash", "-c", script, "bash"], words);
            let run = Run::of(&mut command);
            assert!(
                run.out.ends_with(&format!("code {code}\n")),
                "{}",
                run.transcript()
            );
            run.lacks("panicked").lacks("Broken pipe");
        }
    }
}

#[test]
fn an_answer_that_cannot_be_written_still_has_its_problems_on_stderr() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    node.lose();
    let words = "restore --nic-wait 0";
    let mut command = node.netfix_command(&["bash", "-c", "\"$@\" >/dev/full", "bash"], words);
    Run::of(&mut command).exits(1).stderr_has(&[
        "parent-missing",
        "cannot write the answer: No space left on device",
    ]);
}

#[test]
fn texts_about_netfix_can_be_read_in_part() {
    for words in ["completions bash", "man", "--help"] {
        let script = "\"$@\" | true; echo code ${PIPESTATUS[0]}";
        let mut command = tool::command("bash", ["-c", script, "bash", BINARY]);
        let run = Run::of(command.args(words.split_whitespace()));
        run.stdout_has(&["code 0"]).lacks("panicked");
    }
}
