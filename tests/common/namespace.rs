//! One mounted network namespace, removed on drop.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// Runs `work` on a scratch thread inside a namespace: `ip -n` creates a mount namespace each time, too.
fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| {
        let work = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("setns on a scratch thread");
            work()
        };
        scope.spawn(work).join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

    /// `Err` also where the namespace is gone.
    pub fn try_ip(&self, words: &(impl AsRef<[u8]> + ?Sized)) -> Result<String, String> {
        let mut ip = tool::command("ip", tool::words(words.as_ref()));
        let ran = self
            .file()
            .and_then(|file| inside(&file, || tool::try_run(&mut ip)));
        ran.map_err(|error| format!("in {}: {error}", self.name))
    }

    /// Runs lines of ip(8) in one process. What it prints, or the lines, must fit into a pipe.
    pub fn batch(&self, lines: &str) -> String {
        let mut ip = tool::command("ip", ["-batch", "-"]);
        let ran = self.enter(|| tool::try_feed(&mut ip, lines));
        ran.unwrap_or_else(|error| panic!("in {}: {error}\n{lines}", self.name))
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
        let file = self.file().unwrap_or_else(|e| panic!("{e}"));
        inside(&file, work)
    }

    fn file(&self) -> Result<File, String> {
        File::open(self.path()).map_err(|e| format!("cannot open {}: {e}", self.path().display()))
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
        self.delete();
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
