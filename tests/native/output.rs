//! The shape of `-o json`, and the content of stdout and stderr.

use serde_json::Value;

use crate::common::{Node, Pod, Run};

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
    let run = node.netfix_json("restore").exits(1);
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
    let run = node.netfix("restore").exits(1);
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

#[test]
fn a_closed_pipe_is_not_an_error() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    let script = "\"$@\" | true; echo codes ${PIPESTATUS[0]}";
    let run = Run::of(&mut node.netfix_command(&["bash", "-c", script, "bash"], "list -o json"));
    run.stdout_has(&["codes 0"])
        .lacks("panicked")
        .lacks("Broken pipe");
}
