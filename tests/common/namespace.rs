//! One mounted network namespace, removed on drop.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns};

use super::capture::Capture;
use super::leftovers::{self, PREFIX};
use super::node::Node;
use super::tool;

#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// A name that no other test, in this process or another one, uses.
pub fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    leftovers::sweep();
    format!(
        "{PREFIX}{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

impl Namespace {
    pub fn new(name: &str) -> Self {
        tool::ip(&format!("netns add {name}"));
        let namespace = Self {
            name: name.to_owned(),
        };
        namespace.ip("link set lo up");
        namespace
    }

    /// A name for an existing namespace, by a file that refers to it.
    pub fn of_file(name: &str, file: &Path) -> Self {
        let namespace = Self {
            name: name.to_owned(),
        };
        File::create_new(namespace.path()).unwrap_or_else(|e| panic!("cannot make {name}: {e}"));
        tool::run(
            tool::command("mount", ["--no-canonicalize", "--bind"])
                .arg(file)
                .arg(namespace.path()),
        );
        namespace
    }

    /// A name for the network namespace of a process.
    pub fn attach(name: &str, process: u32) -> Self {
        tool::ip(&format!("netns attach {name} {process}"));
        Self {
            name: name.to_owned(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    pub fn ip(&self, words: &(impl AsRef<[u8]> + ?Sized)) -> String {
        self.try_ip(words).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn try_ip(&self, words: &(impl AsRef<[u8]> + ?Sized)) -> Result<String, String> {
        tool::try_run(
            Command::new("ip")
                .args(["-n", &self.name])
                .args(tool::words(words.as_ref())),
        )
    }

    /// Runs many lines of ip(8) at once.
    pub fn batch(&self, lines: &str) {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.name, "-batch", "-"]);
        let mut ip = ip.stdin(Stdio::piped()).spawn().expect("ip -batch");
        let mut stdin = ip.stdin.take().expect("the input of ip");
        stdin.write_all(lines.as_bytes()).expect("the lines");
        drop(stdin);
        let status = ip.wait().expect("the end of ip");
        assert!(status.success(), "ip -batch in {}: {status}", self.name);
    }

    /// A command that starts in this namespace, with its own /sys, as an administrator would start it. To netfix it is the host's.
    pub fn exec(&self, program: &str) -> Command {
        let mut command = tool::command("ip", ["netns", "exec", &self.name, program]);
        command.env("NETFIX_HOST_NETNS", "self");
        command
    }

    /// Runs `work` on a scratch thread inside the namespace. Sockets and child processes that it creates stay in the
    /// namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(self.path())
            .unwrap_or_else(|e| panic!("cannot open {}: {e}", self.path().display()));
        let result = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    setns(&file, CloneFlags::CLONE_NEWNET).expect("setns on a scratch thread");
                    work()
                })
                .join()
        });
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    pub fn capture(&self, node: &Node) -> Capture {
        Capture::of_pod(self, &node.ns)
    }

    /// Writes one key below /proc/sys/net, such as `ipv6/conf/eth0/accept_ra`.
    pub fn set_sysctl(&self, key: &(impl AsRef<[u8]> + ?Sized), value: &str) {
        let path = Path::new("/proc/sys/net").join(OsStr::from_bytes(key.as_ref()));
        let result = self.enter(|| fs::write(&path, value));
        let (path, name) = (path.display(), &self.name);
        result.unwrap_or_else(|e| panic!("cannot write {value} to {path} in {name}: {e}"));
    }

    pub fn sysctl(&self, key: &str) -> String {
        let path = format!("/proc/sys/net/{key}");
        let result = self.enter(|| fs::read_to_string(&path));
        result
            .unwrap_or_else(|e| panic!("cannot read {path} in {}: {e}", self.name))
            .trim()
            .to_owned()
    }

    /// Deletes the namespace and makes a new, empty one of the same name. Its link goes first, as with a plugin's DEL: the kernel
    /// deletes a namespace later than `ip netns del` ends, and until then a macvlan with that MAC cannot be up (EADDRINUSE).
    pub fn replace(&self) {
        let _ = self.try_ip("link del eth0");
        tool::ip(&format!("netns del {}", self.name));
        tool::ip(&format!("netns add {}", self.name));
        self.ip("link set lo up");
    }

    /// Deletes the namespace before the drop, as a runtime does when the pod ends.
    pub fn delete(&self) {
        tool::ip(&format!("netns del {}", self.name));
    }

    /// The index of a link that must exist.
    pub fn index_of(&self, link: &str) -> u32 {
        let index = self.enter(|| if_nametoindex(link));
        index.unwrap_or_else(|e| panic!("no {link} in {}: {e}", self.name))
    }

    pub fn has_link(&self, name: &str) -> bool {
        self.try_ip(&format!("link show dev {name}")).is_ok()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.path().exists() {
            let _ = tool::try_run(&mut tool::command("ip", ["netns", "del", &self.name]));
        }
    }
}
