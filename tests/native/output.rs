//! The content of stdout and stderr, and the exit code of a command whose output is lost.

use crate::common::run::BINARY;
use crate::common::{Node, Run, tool};

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
    const COMMANDS: [(&str, i32); 8] = [
        ("check", 2),
        ("check --nagios", 2),
        ("diff", 5),
        ("plan --exit-code -o json", 5),
        ("snapshot", 1),
        ("restore --nic-wait 0", 1),
        ("restore -v -o json --nic-wait 0", 1),
        ("verify --answer-wait 1s", 1),
    ];
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    node.lose();
    for (number, (words, code)) in COMMANDS.into_iter().enumerate() {
        // One command loses its outputs in every way, the others each in two.
        let first = 2 * number;
        let ways = if number == 0 {
            0..LOST_OUTPUTS.len()
        } else {
            first..first + 2
        };
        for way in ways {
            let script = LOST_OUTPUTS[way % LOST_OUTPUTS.len()];
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
fn a_command_that_only_answers_fails_without_its_answer() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let exits = |script: &str, words: &str, code: i32| {
        let mut command = node.netfix_command(&["bash", "-c", script, "bash"], words);
        Run::of(&mut command).exits(code)
    };
    let show = format!("show {}", pod.name());
    let others = ["list -o json", "plan", "verify", "restore --dry-run"];
    for words in ["list", &show].into_iter().chain(others) {
        exits("\"$@\" >/dev/full", words, 1).stderr_has(&["cannot write the answer"]);
        exits("\"$@\" 2>/dev/full", words, 0);
    }
    for words in ["snapshot", "check", "restore --nic-wait 0"] {
        exits("\"$@\" >/dev/full", words, 0).stderr_has(&["cannot write the answer"]);
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
