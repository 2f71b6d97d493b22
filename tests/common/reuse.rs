//! Numbers that the kernel assigns again: inodes of namespaces, and pids.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::background::wait_until;
use super::namespace::Namespace;
use super::tool;

/// How long a number may take to become free; the kernel frees it later, in a worker.
const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 20;
/// The maximum of numbers below the wanted one to occupy; each is an open file. The next attempt starts lower.
const HELD: usize = 2000;

/// Another process on the machine got the number first, and may keep it.
#[derive(Debug)]
pub struct Taken;

/// Runs a scenario that needs an inode number again, and repeats it if another process took the number.
pub fn until_reused(scenario: impl Fn() -> Result<(), Taken>) {
    let came = (0..ATTEMPTS).any(|_| scenario().is_ok());
    assert!(
        came,
        "in {ATTEMPTS} attempts the kernel never gave the same inode number again"
    );
}

/// A namespace that only an open file keeps.
pub struct Unnamed(File);

impl Unnamed {
    pub fn new() -> Self {
        let born = std::thread::spawn(|| unshared(CloneFlags::CLONE_NEWNET, "net"));
        Self(born.join().expect("the scratch thread"))
    }

    /// A new namespace with this inode number, whose former namespace is gone or about to go.
    ///
    /// The kernel assigns the lowest free number to namespaces of all kinds. Namespaces of host names are fast to make:
    /// they occupy the numbers below, and show when the wanted one is free.
    pub fn with_inode(inode: u64) -> Result<Self, Taken> {
        let deadline = Instant::now() + TIMEOUT;
        let watch = move || {
            let mut below = Vec::new();
            while Instant::now() < deadline && below.len() < HELD {
                let file = unshared(CloneFlags::CLONE_NEWUTS, "uts");
                match number_of(&file).cmp(&inode) {
                    Ordering::Less => below.push(file),
                    Ordering::Greater => {}
                    Ordering::Equal => {
                        drop((file, unshared(CloneFlags::CLONE_NEWUTS, "uts")));
                        let namespace = unshared(CloneFlags::CLONE_NEWNET, "net");
                        if number_of(&namespace) == inode {
                            return Ok(Self(namespace));
                        }
                    }
                }
            }
            Err(Taken)
        };
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the hard limit as the soft one");
        std::thread::spawn(watch)
            .join()
            .expect("the scratch thread")
    }

    pub fn inode(&self) -> u64 {
        number_of(&self.0)
    }

    /// Starts a program in the namespace.
    pub fn start(&self, command: &mut Command) -> Child {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).expect("setns on a scratch thread");
                command.spawn()
            });
            let child = inside.join().expect("the scratch thread");
            child.unwrap_or_else(|e| panic!("cannot start a program in a namespace: {e}"))
        })
    }

    /// A path by which other programs open it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.0.as_raw_fd()
        ))
    }

    /// Mounts it like a runtime.
    pub fn mount(&self, path: &Path) {
        File::create(path).unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()));
        tool::run(
            tool::command("mount", ["--bind"])
                .arg(self.path())
                .arg(path),
        );
    }
}

/// Creates a namespace of this kind and moves the calling thread into it.
fn unshared(kind: CloneFlags, name: &str) -> File {
    unshare(kind).expect("a new namespace on a scratch thread");
    File::open(format!("/proc/thread-self/ns/{name}")).expect("the new namespace")
}

fn number_of(namespace: &File) -> u64 {
    namespace
        .metadata()
        .expect("the inode of a namespace")
        .ino()
}

/// The inode number of the namespace at a path.
pub fn inode_of(path: &Path) -> u64 {
    fs::metadata(path)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
        .ino()
}

impl Namespace {
    /// Deletes the namespace and creates another one with the same name and the same inode number.
    pub fn replace_with_same_inode(&self) -> Result<(), Taken> {
        let inode = inode_of(&self.path());
        self.delete();
        Unnamed::with_inode(inode)?.mount(&self.path());
        assert_eq!(
            inode_of(&self.path()),
            inode,
            "the namespace was to get its predecessor's inode"
        );
        self.ip("link set lo up");
        Ok(())
    }
}

/// A pid namespace in which a test chooses the next pid.
pub struct Pids {
    unshare: Child,
    init: u32,
}

impl Pids {
    /// Its first process is in `host`, like that of a machine.
    pub fn new(host: &Namespace) -> Self {
        let mut command = host.exec("unshare");
        command.args([
            "--mount",
            "--propagation",
            "slave",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sleep",
            "600",
        ]);
        let unshare = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start unshare: {e}"));
        let mut init = None;
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let started = wait_until(|| {
            init = fs::read_to_string(&children)
                .ok()
                .and_then(|pids| pids.trim().parse::<u32>().ok());
            let comm = init.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
            comm.is_some_and(|comm| comm.trim() == "sleep")
        });
        let pids = Self {
            init: init.unwrap_or_default(),
            unshare,
        };
        assert!(started, "no first process of a pid namespace");
        pids
    }

    /// The first process, by its pid in the machine.
    pub fn init(&self) -> u32 {
        self.init
    }

    /// A `sleep` that has this pid here and runs in `namespace`.
    pub fn sleep_as(&self, pid: u32, namespace: &Unnamed) -> Sleep {
        self.run(
            "sh",
            &[
                "-c",
                &format!("echo {} > /proc/sys/kernel/ns_last_pid", pid - 1),
            ],
        );
        let mut command = self.command("sleep");
        let child = namespace.start(command.arg("600"));
        let comm = format!("/proc/{}/root/proc/{pid}/comm", self.init);
        let sleeps = || fs::read_to_string(&comm).is_ok_and(|comm| comm.trim() == "sleep");
        assert!(wait_until(sleeps), "no sleep was started as pid {pid}");
        Sleep { child }
    }

    /// Ends the process with this pid here.
    pub fn kill(&self, pid: u32, mut sleep: Sleep) {
        self.run("kill", &["-9", &pid.to_string()]);
        let _ = sleep.child.wait();
    }

    fn run(&self, program: &str, args: &[&str]) -> String {
        tool::run(self.command(program).args(args))
    }

    fn command(&self, program: &str) -> Command {
        let init = self.init.to_string();
        tool::command("nsenter", ["--target", &init, "--mount", "--pid", program])
    }
}

/// A process with a pid that the test chose.
pub struct Sleep {
    /// Its parent, which ends with it.
    child: Child,
}

impl Sleep {
    /// A process in the same network namespace, by its pid in the machine.
    pub fn neighbour(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}
