//! netfix itself, run in a node's namespace as an administrator would, and its output.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::machine::Machine;
use super::node::Node;
use super::pod::Pod;
use super::problem::{self, ReportedProblem};
use super::schema;

pub const BINARY: &str = env!("CARGO_BIN_EXE_netfix");
/// The time limit of every command, which ends a hang: a busy machine takes long, and longer under strace.
pub const LIMIT_SECONDS: &str = "600";

pub struct Run {
    pub line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Node {
    /// `netfix WORDS` for this node's pods, with the test's state directory.
    pub fn netfix(&self, words: &str) -> Run {
        Run::of(&mut self.netfix_command(&["timeout", LIMIT_SECONDS], words))
    }

    /// The same, as JSON.
    pub fn netfix_json(&self, words: &str) -> Run {
        self.netfix(&format!("{words} -o json"))
    }

    /// The command under `wrapper` (such as strace), not started yet.
    pub fn netfix_command(&self, wrapper: &[&str], words: &str) -> Command {
        let mut command = match wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = self.ns.exec(first);
                command.args(rest).arg(BINARY);
                command
            }
            None => self.ns.exec(BINARY),
        };
        // What is behind `--` is another command's.
        let (words, behind) = words.split_once(" -- ").unwrap_or((words, ""));
        command.args(words.split_whitespace());
        command.arg("--state-dir").arg(self.state_dir());
        // `show` names its one pod itself, and generations take no selection.
        if !["show", "prune", "list --generations"]
            .iter()
            .any(|own| words.starts_with(own))
        {
            command.args(["--netns", &self.pods_glob()]);
        }
        if !behind.is_empty() {
            command.arg("--").args(behind.split_whitespace());
        }
        command
            .env_remove("NETFIX_STATE_DIR")
            .env("NETFIX_RUNTIME", "none")
            // Other tests are in that of the machine.
            .env("NETFIX_KMSG", "/dev/null")
            .env("NO_COLOR", "1");
        command
    }

    /// `netfix WORDS` without any selection, on a machine that has this node's pods and no other namespace.
    pub fn netfix_alone(&self, words: &str) -> Run {
        self.alone("true", words)
    }

    /// The same on another machine: with another machine-id.
    pub fn netfix_alone_elsewhere(&self, words: &str) -> Run {
        self.alone(&self.bind_identity("/etc/machine-id"), words)
    }

    /// The same after a shell command.
    pub fn alone(&self, prelude: &str, words: &str) -> Run {
        Run::of(&mut self.script_alone(prelude, "exec \"$@\"", words))
    }

    /// Such a machine that runs `script`, where `"$@"` is `netfix WORDS`, and `$1` netfix; after a shell command.
    pub fn script_alone(&self, prelude: &str, script: &str, words: &str) -> Command {
        let script = format!(
            "{prelude}; others=; for netns in /run/netns/*; do case $netns in {}) ;; *) others=\"$others $netns\" ;; esac; done
            umount -l $others; {script}",
            self.pods_glob()
        );
        let mut command = self.ns.exec("timeout");
        command.args([
            LIMIT_SECONDS,
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            &script,
        ]);
        command
            .args(["sh", BINARY])
            .args(words.split_whitespace())
            .arg("--state-dir")
            .arg(self.state_dir())
            .env_remove("NETFIX_STATE_DIR")
            .env("NETFIX_RUNTIME", "none")
            // Other tests are in that of the machine.
            .env("NETFIX_KMSG", "/dev/null")
            .env("NO_COLOR", "1");
        command
    }

    /// netfix on a machine where the file `path` (machine-id, boot id) has another content.
    pub fn netfix_elsewhere(&self, path: &str, words: &str) -> Run {
        let script = format!("{} && exec \"$@\"", self.bind_identity(path));
        Run::of(&mut self.netfix_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], words))
    }

    /// A shell command that gives the file `path` another content.
    fn bind_identity(&self, path: &str) -> String {
        let other = self.temp().join("other-identity");
        std::fs::write(&other, "0123456789abcdef0123456789abcdef\n").expect("another identity");
        format!("mount --bind {} {path}", other.display())
    }

    /// Writes the checkpoints of all pods; every one must be good.
    pub fn snapshot(&self) -> Run {
        self.netfix("snapshot").exits(0)
    }

    pub fn restore(&self) -> Run {
        self.netfix("restore").exits(0)
    }
}

impl Run {
    /// `netfix WORDS` inside a separate machine, without a selection.
    pub fn inside(machine: &Machine, state_dir: &Path, words: &str) -> Self {
        Self::wrapped(machine, &[], state_dir, words)
    }

    /// The same, as the last words of another command.
    pub fn wrapped(machine: &Machine, wrapper: &[&str], state_dir: &Path, words: &str) -> Self {
        Self::of(&mut Self::command(machine, wrapper, state_dir, words))
    }

    /// The same, not started yet.
    pub fn command(machine: &Machine, wrapper: &[&str], state_dir: &Path, words: &str) -> Command {
        let mut command = machine.exec("timeout");
        command
            .arg(LIMIT_SECONDS)
            .args(wrapper)
            .arg(BINARY)
            .args(words.split_whitespace());
        command
            .arg("--state-dir")
            .arg(state_dir)
            .env("NO_COLOR", "1")
            .env_remove("NETFIX_STATE_DIR")
            .env_remove("NETFIX_RUNTIME");
        command
    }

    pub fn of(command: &mut Command) -> Self {
        let line = format!("{command:?}");
        let output = command
            .output()
            .unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        Self::from_output(line, &output)
    }

    pub fn from_output(line: String, output: &Output) -> Self {
        Self {
            line,
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The whole run, for the text of a failed assertion.
    pub fn transcript(&self) -> String {
        format!(
            "{}\nexit {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.line, self.code, self.out, self.err
        )
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "the exit code\n{}",
            self.transcript()
        );
        self
    }

    /// stdout contains each of these.
    #[track_caller]
    pub fn stdout_has(self, texts: &[&str]) -> Self {
        assert_holds("stdout", &self.out, texts, &self);
        self
    }

    /// stderr contains each of these.
    #[track_caller]
    pub fn stderr_has(self, texts: &[&str]) -> Self {
        assert_holds("stderr", &self.err, texts, &self);
        self
    }

    /// Neither stream contains this.
    #[track_caller]
    pub fn lacks(self, text: &str) -> Self {
        assert!(
            !self.out.contains(text) && !self.err.contains(text),
            "the output holds {text:?}\n{}",
            self.transcript()
        );
        self
    }

    /// stdout, which must be one JSON document that follows the schema.
    #[track_caller]
    pub fn json(&self) -> Value {
        let document = serde_json::from_str(&self.out).unwrap_or_else(|e| {
            panic!(
                "stdout is not one JSON document: {e}\n{}",
                self.transcript()
            )
        });
        let faults = schema::faults(&document);
        assert!(
            faults.is_empty(),
            "the document does not follow the schema: {faults:#?}\n{}",
            self.transcript()
        );
        document
    }

    /// The entry of a pod, found by its namespace's path.
    pub fn pod(&self, pod: &Pod<'_>) -> Value {
        let json = self.json();
        let names = |entry: &&Value| {
            entry["netns"]
                .as_str()
                .is_some_and(|path| path.ends_with(&format!("/{}", pod.name())))
        };
        let mut found = json["pods"].as_array().into_iter().flatten().filter(names);
        found
            .next()
            .cloned()
            .unwrap_or_else(|| panic!("no pod {} in the answer\n{}", pod.name(), self.transcript()))
    }

    /// Every problem, from the JSON document or from the text lines.
    pub fn problems(&self) -> Vec<ReportedProblem> {
        if self.out.starts_with('{') {
            problem::from_json(&self.json())
        } else {
            let lines = self.out.lines().chain(self.err.lines());
            lines.flat_map(problem::from_line).collect()
        }
    }

    /// The problems with this code.
    pub fn coded(&self, code: &str) -> Vec<ReportedProblem> {
        let mut problems = self.problems();
        problems.retain(|problem| problem.code == code);
        problems
    }

    /// The errors are exactly these pairs of a code and a pod (`""` for the host or the command itself).
    #[track_caller]
    pub fn errors(self, expected: &[(&str, &str)]) -> Self {
        self.has_exactly("error", expected)
    }

    /// The same for warnings.
    #[track_caller]
    pub fn warnings(self, expected: &[(&str, &str)]) -> Self {
        self.has_exactly("warning", expected)
    }

    #[track_caller]
    fn has_exactly(self, severity: &str, expected: &[(&str, &str)]) -> Self {
        let problems = self.problems();
        let found: BTreeSet<(&str, &str)> = problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .map(|problem| (problem.code.as_str(), problem.pod.as_deref().unwrap_or("")))
            .collect();
        let expected: BTreeSet<(&str, &str)> = expected.iter().copied().collect();
        assert_eq!(found, expected, "every {severity}\n{}", self.transcript());
        self
    }

    /// A problem with this code and pod (`""` for none) has each of these in its object or message.
    #[track_caller]
    pub fn names(self, code: &str, pod: &str, data: &[&str]) -> Self {
        let is_it = |problem: &ReportedProblem| {
            problem.code == code
                && problem.pod.as_deref().unwrap_or("") == pod
                && data.iter().all(|word| problem.has(word))
        };
        assert!(
            self.problems().iter().any(is_it),
            "no {code} of {pod:?} names {data:?}\n{}",
            self.transcript()
        );
        self
    }

    /// Two pods claim one object: each has an error with this code that names the object and the other pod.
    #[track_caller]
    pub fn claimed_by_both(self, code: &str, pods: [&Pod<'_>; 2], thing: &str) -> Self {
        let [first, second] = pods.map(Pod::name);
        self.errors(&[(code, first), (code, second)])
            .names(code, first, &[thing, second])
            .names(code, second, &[thing, first])
    }

    /// No problem has this code.
    #[track_caller]
    pub fn has_no(self, code: &str) -> Self {
        assert!(
            self.coded(code).is_empty(),
            "a {code}\n{}",
            self.transcript()
        );
        self
    }

    /// The steps of a pod in the JSON document.
    pub fn steps(&self, pod: &Pod<'_>) -> Vec<String> {
        let pod = self.pod(pod);
        let steps = pod["steps"].as_array().into_iter().flatten();
        steps
            .map(|step| step.as_str().expect("a step is a text").to_owned())
            .collect()
    }
}

#[track_caller]
fn assert_holds(name: &str, stream: &str, texts: &[&str], run: &Run) {
    for text in texts {
        assert!(
            stream.contains(text),
            "{name} lacks {text:?}\n{}",
            run.transcript()
        );
    }
}

/// A wrapper for netfix that injects into its system calls, as `inject=` of strace(1) does.
pub fn injecting(inject: &str) -> [&str; 8] {
    [
        "timeout",
        LIMIT_SECONDS,
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        inject,
    ]
}
