//! Only one netfix at a time changes the node; another one reports the holder, at once or after its wait limit.
//! Read-only commands never wait.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::background::wait_until;
use crate::common::{Node, Pod, Run};

/// A netfix that runs beside the test; the drop kills it, by its process id.
struct Beside {
    child: Child,
    stderr: PathBuf,
}

impl Beside {
    fn start(node: &Node, name: &str, words: &str) -> Self {
        let stderr = node.temp().join(name);
        // If a shell runs the tests in the background, SIGINT is ignored, and netfix would inherit that.
        let mut command: Command = node.netfix_command(&["env", "--default-signal=INT"], words);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&stderr).expect("a file for stderr"));
        Self {
            child: command.spawn().expect("netfix starts"),
            stderr,
        }
    }

    /// A restore that holds the lock and waits for the NIC.
    fn holding(node: &Node) -> Self {
        let holder = Self::start(node, "holder", "restore --nic-wait 600s");
        let lock = node.state_dir().join("lock");
        let word = format!("pid {} ", holder.pid());
        let is_named = || fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&word));
        assert!(
            wait_until(is_named),
            "the first netfix never took the lock: {}",
            holder.stderr()
        );
        holder
    }

    /// A netfix that waits for the lock.
    fn waiting(node: &Node, words: &str, holder: &Self) -> Self {
        let waiting = Self::start(node, "waiting", words);
        let who = format!("pid {} ", holder.pid());
        let is_named = || waiting.stderr().contains(&who);
        assert!(
            wait_until(is_named),
            "it does not report the lock holder: {}",
            waiting.stderr()
        );
        waiting
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("a signal to a child");
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn finish(mut self) -> ExitStatus {
        assert!(
            wait_until(|| self.has_ended()),
            "it does not end: {}",
            self.stderr()
        );
        self.child.wait().expect("an ended child")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_is_free(node: &Node) {
    let run = node.netfix_alone("status -o json").exits(0);
    assert!(
        run.json()["status"]["lock"].is_null(),
        "{}",
        run.transcript()
    );
}

/// The time after `since ` in a message.
fn since(text: &str) -> Timestamp {
    let (_, rest) = text
        .split_once("(restore) since ")
        .unwrap_or_else(|| panic!("no start in {text}"));
    let word = rest.split([';', ' ', '\n', '"']).next().unwrap_or_default();
    word.parse()
        .unwrap_or_else(|e| panic!("{word:?} is no time: {e}"))
}

fn is_refused_at_once(node: &Node, holder: &Beside) {
    let who = format!("pid {}", holder.pid());
    for words in ["restore", "snapshot", "prune"] {
        let begin = Instant::now();
        let run = node
            .netfix(words)
            .exits(4)
            .errors(&[("lock-held", "")])
            .names("lock-held", "", &[&who, "restore"]);
        assert!(begin.elapsed() < Duration::from_secs(30), "{words} waited");
        assert_eq!(run.err.lines().count(), 1, "{}", run.transcript());
    }
}

/// `before` is a time before its start.
fn status_names(node: &Node, holder: &Beside, before: Timestamp) {
    let who = format!("pid {}", holder.pid());
    node.netfix_alone("status").stdout_has(&[&who]);
    let status = node.netfix_alone("status -o json").json();
    let lock = status["status"]["lock"].as_str().expect("a holder");
    assert!(
        lock.starts_with(&format!("{who} (restore) since ")),
        "{lock}"
    );
    let start = since(lock);
    // The message has whole seconds.
    assert!(
        (before.as_second()..=Timestamp::now().as_second()).contains(&start.as_second()),
        "{start}"
    );
}

fn read_only_commands_do_not_wait(node: &Node, pod: &Pod<'_>) {
    let show = format!("show {}", pod.name());
    for (words, code) in [
        ("list", 0),
        (&show, 0),
        ("diff", 5),
        ("plan", 5),
        ("check", 2),
    ] {
        let begin = Instant::now();
        node.netfix(words).exits(code).has_no("lock-held");
        assert!(begin.elapsed() < Duration::from_secs(30), "{words} waited");
    }
}

fn the_wait_times_out(node: &Node, holder: &Beside) {
    let begin = Instant::now();
    let run = node.netfix("snapshot --lock-wait 700ms").exits(4);
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(700) && took < Duration::from_secs(30),
        "{took:?}"
    );
    let who = format!("pid {} ", holder.pid());
    run.errors(&[("lock-held", "")])
        .names("lock-held", "", &[&who, "--lock-wait"]);
    node.netfix("snapshot -q --lock-wait 100ms")
        .exits(4)
        .errors(&[("lock-held", "")])
        .lacks("warning")
        .lacks("waiting");
}

fn an_interrupt_ends_the_wait_at_once(node: &Node, holder: &Beside) {
    for words in [
        "snapshot --lock-wait 60s",
        "prune --lock-wait 60s",
        "upgrade --foreground --yes --lock-wait 60s -- true",
    ] {
        let waiting = Beside::waiting(node, words, holder);
        let begin = Instant::now();
        waiting.signal(Signal::SIGINT);
        let status = waiting.finish();
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{words}: it continued to wait"
        );
        let is_interrupted = status.signal() == Some(Signal::SIGINT as i32);
        assert!(
            is_interrupted || status.code() == Some(4),
            "{words}: {status}"
        );
    }
    node.netfix("restore")
        .exits(4)
        .errors(&[("lock-held", "")])
        .names("lock-held", "", &[&format!("pid {}", holder.pid())]);
}

/// With `--lock-wait` it reports the holder, waits until the NIC is back and the holder has ended, and runs.
fn it_waits_and_runs(node: &Node, mut holder: Beside) {
    let waiting = Beside::waiting(node, "snapshot --lock-wait 30s", &holder);
    assert!(!holder.has_ended(), "nothing was waited for");
    node.reload();
    assert_eq!(holder.finish().code(), Some(0), "the first netfix failed");
    let stderr = waiting.stderr();
    assert_eq!(
        waiting.finish().code(),
        Some(0),
        "the second netfix failed: {stderr}"
    );
    assert_eq!(stderr.matches("pid ").count(), 1, "{stderr}");
}

#[test]
fn a_second_netfix_reports_the_lock_holder_at_once_or_waits_and_read_only_commands_do_not_wait() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let of_pod = pods[0].capture();
    node.snapshot();
    node.lose();
    let before = Timestamp::now();
    let holder = Beside::holding(&node);
    is_refused_at_once(&node, &holder);
    status_names(&node, &holder, before);
    read_only_commands_do_not_wait(&node, &pods[0]);
    the_wait_times_out(&node, &holder);
    an_interrupt_ends_the_wait_at_once(&node, &holder);
    it_waits_and_runs(&node, holder);
    pods[0].assert_same_as(&of_pod);
    assert_is_free(&node);
    node.restore();
}

#[test]
fn a_killed_holder_frees_the_lock_and_is_not_reported_as_the_next_holder() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    node.lose();
    let dead = Beside::holding(&node);
    dead.signal(Signal::SIGKILL);
    let pid = dead.pid();
    dead.finish();
    let text = fs::read_to_string(node.state_dir().join("lock")).expect("the lock's file");
    assert!(text.contains(&format!("pid {pid} ")), "{text}");
    assert_is_free(&node);
    // A holder that could not write its identity, as on a full disk.
    let lock = node.state_dir().join("lock").to_string_lossy().into_owned();
    let mut command = node.netfix_command(&["flock", "--no-fork", &lock], "prune --keep 1");
    let run = Run::of(&mut command)
        .exits(4)
        .errors(&[("lock-held", "")])
        .lacks(&format!("pid {pid}"));
    assert!(run.err.contains("pid "), "{}", run.transcript());
    node.reload();
    node.restore();
}

#[test]
fn many_at_once_with_lock_wait_all_run_one_after_the_other() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let start = |number: usize| {
        Beside::start(
            &node,
            &format!("stderr-{number}"),
            "snapshot --lock-wait 60s",
        )
    };
    let all: Vec<_> = (0..8).map(start).collect();
    for one in all {
        let stderr = one.stderr.clone();
        let code = one.finish().code();
        assert_eq!(
            code,
            Some(0),
            "{}",
            fs::read_to_string(stderr).unwrap_or_default()
        );
    }
    node.assert_all_loads();
    node.netfix("diff").exits(0);
    assert_eq!(
        node.netfix_json("list").json()["pods"]
            .as_array()
            .map(Vec::len),
        Some(pods.len())
    );
}
