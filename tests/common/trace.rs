//! netfix under strace: which files it writes, which threads change namespace, which netlink changes it requests.

use std::fs;
use std::path::Path;

use super::node::Node;
use super::run::Run;

#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat",
    "chmod", "fchmodat", "chown", "fchownat", "truncate", "mknod", "mknodat", "mount", "umount2",
];
const OPENING: &[&str] = &["open", "openat", "openat2"];
const MOVING: &[&str] = &["setns", "unshare"];
const SENDING: &[&str] = &["sendto", "sendmsg", "sendmmsg", "write", "writev"];

pub struct Trace {
    pub run: Run,
    lines: Vec<Call>,
    main: String,
}

/// One system call of one thread; an interrupted call is joined again.
pub struct Call {
    thread: String,
    pub text: String,
}

impl Node {
    pub fn netfix_traced(&self, words: &str) -> Trace {
        let file = self.temp().join("strace");
        let name = file.to_string_lossy().into_owned();
        let wrapper = [
            "timeout", "600", "strace", "-f", "-y", "-s", "65536", "-v", "-o", &name,
        ];
        let run = Run::of(&mut self.netfix_command(&wrapper, words));
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|e| panic!("no strace output: {e}\n{}", run.transcript()));
        let lines = join(&text);
        let main = lines
            .first()
            .map(|call| call.thread.clone())
            .unwrap_or_default();
        Trace { run, lines, main }
    }
}

fn join(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let rest = rest.trim_start();
        match rest
            .strip_prefix("<... ")
            .and_then(|resumed| resumed.split_once("resumed>"))
        {
            Some((_, end)) => {
                if let Some(call) = calls.iter_mut().rev().find(|call| call.thread == thread) {
                    call.text.push_str(end);
                }
            }
            None => {
                calls.push(Call {
                    thread: thread.to_owned(),
                    text: rest.replace(" <unfinished ...>", ""),
                });
            }
        }
    }
    calls
}

impl Call {
    fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    fn succeeded(&self) -> bool {
        !self.text.contains(" = -1 ")
    }
}

impl Trace {
    pub fn calls(&self, names: &'static [&str]) -> impl Iterator<Item = &Call> {
        self.lines
            .iter()
            .filter(move |call| names.contains(&call.name()))
    }

    /// Calls that create, open for writing, rename or remove something outside the given directories.
    pub fn writes_outside(&self, allowed: &[&Path]) -> Vec<&str> {
        let writing = |text: &str| {
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| text.contains(flag))
        };
        let inside = |text: &str| {
            allowed
                .iter()
                .any(|folder| text.contains(&folder.to_string_lossy().into_owned()))
        };
        let made = self.calls(CHANGING).map(|call| &call.text);
        let opened = self
            .calls(OPENING)
            .map(|call| &call.text)
            .filter(|text| writing(text));
        made.chain(opened)
            .filter(|text| !inside(text) && !text.contains("/dev/null"))
            .map(String::as_str)
            .collect()
    }

    /// Successful calls by which the main thread left or changed its namespaces.
    pub fn main_thread_moves(&self) -> Vec<&str> {
        let moves = self.calls(MOVING);
        moves
            .filter(|call| call.thread == self.main && call.succeeded())
            .map(|call| call.text.as_str())
            .collect()
    }

    /// How often any thread entered another namespace.
    pub fn thread_moves(&self) -> usize {
        self.calls(&["setns"]).count()
    }

    /// Netlink messages that request a change.
    pub fn netlink_changes(&self) -> Vec<&str> {
        let sends = self.calls(SENDING);
        let is_wanted = |text: &str| {
            ["RTM_NEW", "RTM_DEL", "RTM_SET"]
                .iter()
                .any(|verb| text.contains(verb))
        };
        sends
            .map(|call| call.text.as_str())
            .filter(|text| is_wanted(text))
            .collect()
    }

    /// Netlink messages that query state.
    pub fn netlink_queries(&self) -> usize {
        let sends = self.calls(SENDING);
        sends.filter(|call| call.text.contains("RTM_GET")).count()
    }
}
