//! netfix itself, run in a node's namespace as an administrator would, and what it answered.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::machine::Machine;
use super::node::Node;
use super::pod::Pod;

pub const BINARY: &str = env!("CARGO_BIN_EXE_netfix");
/// No command may take longer, whatever it waits for.
const LIMIT_SECONDS: &str = "120";

pub struct Run {
    pub line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Node {
    /// `netfix WORDS` for this node's pods, with the test's own state folder.
    pub fn netfix(&self, words: &str) -> Run {
        Run::of(&mut self.netfix_command(&["timeout", LIMIT_SECONDS], words))
    }

    /// The same, as JSON.
    pub fn netfix_json(&self, words: &str) -> Run {
        self.netfix(&format!("{words} -o json"))
    }

    /// The command, under `wrapper` (such as strace), not yet started.
    pub fn netfix_command(&self, wrapper: &[&str], words: &str) -> Command {
        let mut command = match wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = self.ns.exec(first);
                command.args(rest).arg(BINARY);
                command
            }
            None => self.ns.exec(BINARY),
        };
        command.args(words.split_whitespace());
        command.arg("--state-dir").arg(self.state_dir());
        // `show` names its one pod itself, and generations are not about some pods.
        if !["show", "prune", "list --generations"].iter().any(|own| words.starts_with(own)) {
            command.args(["--netns", &self.pods_glob()]);
        }
        command.env_remove("NETFIX_STATE_DIR").env("NETFIX_RUNTIME", "none").env("NO_COLOR", "1");
        command
    }

    /// `netfix WORDS` without any selection, on a machine that has this node's pods and no other namespace.
    pub fn netfix_alone(&self, words: &str) -> Run {
        self.alone("true", words)
    }

    /// The same on another machine: its machine-id says something else.
    pub fn netfix_alone_elsewhere(&self, words: &str) -> Run {
        self.alone(&self.bind_identity("/etc/machine-id"), words)
    }

    fn alone(&self, prelude: &str, words: &str) -> Run {
        let script = format!(
            "{prelude}; others=; for netns in /run/netns/*; do case $netns in {}) ;; *) others=\"$others $netns\" ;; esac; done
            umount -l $others; exec \"$@\"",
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
        command.args(["sh", BINARY]).args(words.split_whitespace()).arg("--state-dir").arg(self.state_dir());
        Run::of(command.env_remove("NETFIX_STATE_DIR").env("NETFIX_RUNTIME", "none").env("NO_COLOR", "1"))
    }

    /// netfix on a machine whose file `path` (its machine-id, its boot's id) says something else.
    pub fn netfix_elsewhere(&self, path: &str, words: &str) -> Run {
        let script = format!("{} && exec \"$@\"", self.bind_identity(path));
        Run::of(&mut self.netfix_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], words))
    }

    /// A shell command that makes the file `path` say something else.
    fn bind_identity(&self, path: &str) -> String {
        let other = self.temp().join("other-identity");
        std::fs::write(&other, "0123456789abcdef0123456789abcdef\n").expect("another identity");
        format!("mount --bind {} {path}", other.display())
    }

    /// Writes the checkpoints of all pods; every one of them must be good.
    pub fn snapshot(&self) -> Run {
        self.netfix("snapshot").exits(0)
    }

    pub fn restore(&self) -> Run {
        self.netfix("restore").exits(0)
    }
}

impl Run {
    /// `netfix WORDS` inside a machine of its own, with nothing selected.
    pub fn inside(machine: &Machine, state_dir: &Path, words: &str) -> Self {
        let mut command = machine.exec("timeout");
        command.args([LIMIT_SECONDS, BINARY]).args(words.split_whitespace());
        command.arg("--state-dir").arg(state_dir).env("NO_COLOR", "1");
        Self::of(command.env_remove("NETFIX_STATE_DIR").env_remove("NETFIX_RUNTIME"))
    }

    pub fn of(command: &mut Command) -> Self {
        let line = format!("{command:?}");
        let output = command.output().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
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

    /// Everything about the run, for the text of a failed assertion.
    pub fn told(&self) -> String {
        format!("{}\nexit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.line, self.code, self.out, self.err)
    }

    pub fn exits(self, code: i32) -> Self {
        self.exits_with_one_of(&[code])
    }

    pub fn exits_with_one_of(self, codes: &[i32]) -> Self {
        assert!(
            self.code.is_some_and(|code| codes.contains(&code)),
            "expected exit {codes:?}\n{}",
            self.told()
        );
        self
    }

    pub fn fails(self) -> Self {
        assert!(
            self.code.is_some_and(|code| ![0, 101, 124].contains(&code)),
            "expected an orderly failure\n{}",
            self.told()
        );
        self
    }

    /// The text, on either stream, holds each of these.
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.out.contains(text) || self.err.contains(text),
                "nothing says {text:?}\n{}",
                self.told()
            );
        }
        self
    }

    pub fn says_one_of(self, texts: &[&str]) -> Self {
        let said = |text: &&str| self.out.contains(*text) || self.err.contains(*text);
        assert!(texts.iter().any(said), "nothing says any of {texts:?}\n{}", self.told());
        self
    }

    pub fn does_not_say(self, text: &str) -> Self {
        assert!(
            !self.out.contains(text) && !self.err.contains(text),
            "something says {text:?}\n{}",
            self.told()
        );
        self
    }

    /// Standard output as the one JSON document it must be.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("stdout is not one JSON document: {e}\n{}", self.told()))
    }

    /// The entry of a pod, found by its namespace's path.
    pub fn pod(&self, pod: &Pod<'_>) -> Value {
        let json = self.json();
        let names = |entry: &&Value| {
            entry["netns"].as_str().is_some_and(|path| path.ends_with(&format!("/{}", pod.name())))
        };
        let mut found = json["pods"].as_array().into_iter().flatten().filter(names);
        found
            .next()
            .cloned()
            .unwrap_or_else(|| panic!("no pod {} in the answer\n{}", pod.name(), self.told()))
    }

    /// The problems with this code, each of which must carry a severity and a message.
    pub fn problems(&self, code: &str) -> Vec<Value> {
        let json = self.json();
        let all = json["problems"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| panic!("no list of problems\n{}", self.told()));
        let found: Vec<_> = all.into_iter().filter(|problem| problem["code"] == code).collect();
        for problem in &found {
            assert!(
                problem["severity"].is_string() && problem["message"].is_string(),
                "{problem}\n{}",
                self.told()
            );
        }
        found
    }

    /// There is a problem with this code, and it names the pod.
    pub fn has_problem(self, code: &str, pod: &Pod<'_>) -> Self {
        let found = self.problems(code);
        let names = |problem: &Value| problem.to_string().contains(pod.name());
        assert!(found.iter().any(names), "no problem {code} names {}\n{}", pod.name(), self.told());
        self
    }
}
