//! Programs that watch during a test: `ip monitor`, tcpdump.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::capture::Capture;
use super::namespace::Namespace;
use super::node::Node;

/// Ends a hang. What a test waits for may take long on a busy machine.
pub const HANG: Duration = Duration::from_secs(300);

/// A program whose output goes to a file; the drop kills it, by its process id.
pub struct Background {
    child: Child,
    file: PathBuf,
}

impl Background {
    pub fn start(command: &mut Command, file: PathBuf) -> Self {
        let out =
            File::create(&file).unwrap_or_else(|e| panic!("cannot create {}: {e}", file.display()));
        let err = out.try_clone().expect("a second handle of an open file");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        Self {
            child: child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}")),
            file,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    pub fn wait_for(&self, text: &str) {
        assert!(
            wait_until(|| self.text().contains(text)),
            "{text:?} never came:\n{}",
            self.text()
        );
    }

    /// Waits until the program ends.
    pub fn finish(mut self) -> String {
        let mut ended = None;
        wait_until(|| {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some()
        });
        assert!(ended.is_some(), "the program did not end:\n{}", self.text());
        self.text()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for an event.
pub fn wait_until(done: impl FnMut() -> bool) -> bool {
    within(HANG, done)
}

/// The same where the event need not come.
pub fn within(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let begin = Instant::now();
        if done() {
            return true;
        }
        if begin >= deadline {
            return false;
        }
        pause_after(begin);
    }
}

/// A question that takes long is asked less often: most of the time is for what the test waits for.
pub fn pause_after(begin: Instant) {
    let pause = (3 * begin.elapsed()).clamp(Duration::from_millis(10), Duration::from_secs(1));
    std::thread::sleep(pause);
}

/// Waits until the netfix that has the lock of this directory has slept for a second: it waits for something. `proc` is a /proc
/// with its process id.
pub fn wait_until_it_waits(state_dir: &Path, proc: &Path) {
    let (mut last, mut since) = (None, Instant::now());
    let waits = wait_until(|| {
        let now = asleep(state_dir, proc);
        if now.is_none() || now != last {
            (last, since) = (now, Instant::now());
        }
        last.is_some() && since.elapsed() > Duration::from_secs(1)
    });
    assert!(waits, "no netfix waits");
}

/// The processor time that it has used, while it sleeps.
fn asleep(state_dir: &Path, proc: &Path) -> Option<[u64; 2]> {
    let lock = fs::read_to_string(state_dir.join("lock")).ok()?;
    let pid = lock.strip_prefix("pid ")?.split(' ').next()?;
    let stat = fs::read_to_string(proc.join(pid).join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let time = |at: usize| fields.get(at)?.parse().ok();
    (fields.first() == Some(&"S")).then_some([time(11)?, time(12)?])
}

/// `ip monitor` for everything except neighbours, which change without a cause in the test.
pub struct Monitor<'a> {
    ns: &'a Namespace,
    background: Background,
}

impl<'a> Monitor<'a> {
    pub fn of(ns: &'a Namespace, node: &Node) -> Self {
        let file = node.temp().join(format!("monitor-{}", ns.name()));
        let mut command = Command::new("ip");
        // Earlier changes, such as a link's delayed change of state, must not be recorded.
        let _ = Capture::of_node(ns);
        command.args([
            "-n",
            ns.name(),
            "monitor",
            "link",
            "address",
            "route",
            "rule",
            "netconf",
        ]);
        let monitor = Self {
            ns,
            background: Background::start(&mut command, file),
        };
        let heard = wait_until(|| {
            monitor.ring("192.0.2.253");
            monitor.background.text().contains("192.0.2.253")
        });
        assert!(heard, "ip monitor hears nothing in {}", ns.name());
        monitor.mark("192.0.2.254");
        monitor
    }

    /// The records since the start, between two changes that the test makes as marks.
    pub fn heard(self) -> String {
        self.mark("192.0.2.252");
        let text = self.background.text();
        let mine = |line: &&str| !line.contains("192.0.2.25") && !line.contains("valid_lft");
        let since = text.rfind("192.0.2.254").unwrap_or_default();
        let lines: Vec<_> = text[since..].lines().skip(1).filter(mine).collect();
        lines.join("\n")
    }

    fn mark(&self, address: &str) {
        self.ring(address);
        let gone = format!("Deleted local {address}");
        self.background.wait_for(&gone);
    }

    fn ring(&self, address: &str) {
        self.ns.ip(&format!("addr add {address}/32 dev lo"));
        self.ns.ip(&format!("addr del {address}/32 dev lo"));
    }
}

/// tcpdump at the gateway's end of the wire, already capturing.
pub fn tcpdump(node: &Node, filter: &str) -> Background {
    capture(
        node,
        node.gateway.exec("tcpdump").args(["-i", "up0"]),
        filter,
    )
}

/// The same of what the node sends, with the time when it was sent: a busy machine delivers it later.
pub fn tcpdump_sent(node: &Node, filter: &str) -> Background {
    let mut command = node.ns.exec("tcpdump");
    capture(node, command.args(["-i", "eth0", "-Q", "out"]), filter)
}

fn capture(node: &Node, command: &mut Command, filter: &str) -> Background {
    command
        .args(["-l", "-n", "-e"])
        .args(filter.split_whitespace());
    let background = Background::start(command, node.temp().join("tcpdump"));
    background.wait_for("listening on");
    background
}
