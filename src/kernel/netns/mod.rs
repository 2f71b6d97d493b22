//! Network namespaces: opening, identifying and visiting them.

mod below;
pub(crate) mod counters;
pub(crate) mod host;
pub mod nsid;
pub(crate) mod routing;

use std::fs::{self, File};
use std::io;
use std::iter;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::statfs::fstatfs;
use nix::unistd::close;

use crate::checked;
use crate::fault::point;
use crate::kernel::Error;
use crate::model::pod::identity::Holder;
use crate::model::{Bytes, NetnsIdentity};
use crate::side_by_side::processors;

/// Magic number of nsfs (linux/magic.h).
const NSFS_MAGIC: i64 = 0x6e73_6673;

/// A network namespace: while it is open, the kernel does not reuse its inode.
#[derive(Debug)]
pub struct Netns {
    /// `None` while it is closed.
    file: Option<File>,
    /// The path by which it was found, for messages.
    pub path: PathBuf,
    /// The oldest known process in it.
    pub holder: Option<Holder>,
    device: u64,
    inode: u64,
    /// Whether the path is a mount, which pins the nsfs inode.
    pub is_mount: bool,
    /// Whether a user without rights can have made it: another user namespace than the host's owns it, and it is not mounted.
    pub is_foreign: bool,
    /// Whether it is closed while there is no work in it: too many files would be open.
    pub is_transient: bool,
    /// When the nsfs inode was created, in microseconds since 1970.
    made: i64,
}

impl Netns {
    /// The path by which it was found, safe to print.
    pub fn shown(&self) -> String {
        Bytes::from(self.path.as_path()).to_string()
    }

    /// Opens the namespace at `path`. Fails with `EINVAL` when the file is no namespace, such as a plain file in
    /// `/run/netns` after `ip netns add` was killed.
    pub fn open(path: &Path) -> io::Result<Self> {
        // The path may come from a checkpoint and name any file.
        let file = match below::split(path) {
            Some((process, below)) => {
                let file = below::open(&process, &below)?;
                is_namespace(&file).map(|()| file)?
            }
            None => checked::open(path, is_namespace)?,
        };
        let meta = file.metadata()?;
        let made = meta.ctime() * 1_000_000 + meta.ctime_nsec() / 1000;
        let (device, inode) = (meta.dev(), meta.ino());
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
            holder: None,
            is_mount: false,
            is_foreign: false,
            is_transient: false,
            device,
            inode,
            made,
        })
    }

    /// The namespace of this process.
    pub fn host() -> io::Result<Self> {
        Self::open(Path::new("/proc/self/ns/net"))
    }

    /// The namespace of the calling thread.
    pub fn here() -> io::Result<Self> {
        // /proc/thread-self came with Linux 3.17.
        let thread = nix::unistd::gettid();
        Self::open(Path::new(&format!("/proc/self/task/{thread}/ns/net")))
    }

    /// Device and inode of the nsfs file.
    pub fn key(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Device and inode of the user namespace that owns it (`ioctl_ns(2)`); `None` before Linux 4.9.
    pub fn owner(&self) -> Option<(u64, u64)> {
        let file = user_namespace(self.file().ok()?).ok()?;
        let meta = file.metadata().ok()?;
        Some((meta.dev(), meta.ino()))
    }

    /// The value for `IFLA_NET_NS_FD`; that of no file while it is closed.
    pub fn raw_fd(&self) -> i32 {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Closes it. Whether the namespace is still the same must be proven once it is open again.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// A copy without an open file, which is open only while there is work in the namespace.
    pub fn closed_copy(&self) -> Self {
        Self {
            file: None,
            path: self.path.clone(),
            is_transient: true,
            ..*self
        }
    }

    /// Opens it again where it was closed.
    ///
    /// # Errors
    /// `ESTALE` if something else is at its path now, or open(2)'s.
    pub fn reopen(&mut self) -> io::Result<&Self> {
        if self.file.is_none() {
            let now = Self::open(&self.path)?;
            let is_same_mount = !self.is_mount || now.made == self.made;
            if now.key() != self.key() || !is_same_mount {
                return Err(Errno::ESTALE.into());
            }
            self.file = now.file;
        }
        Ok(self)
    }

    fn file(&self) -> Result<&File, Errno> {
        self.file.as_ref().ok_or(Errno::EBADF)
    }

    /// The identity of this namespace; `cookie` comes from a socket inside it.
    pub fn identity(&self, cookie: Option<u64>) -> NetnsIdentity {
        let Self {
            device,
            inode,
            made,
            holder,
            is_mount,
            is_foreign: _,
            is_transient: _,
            file: _,
            path: _,
        } = *self;
        NetnsIdentity {
            cookie,
            device,
            inode,
            made: is_mount.then_some(made),
            holder,
        }
    }

    /// Runs `work` inside the namespace on a thread of its own. Nothing waits for that thread: it may hang in a file system
    /// of the pod, and ends with the process then.
    pub fn spawn(&self, work: impl FnOnce(Result<(), Errno>) + Send + 'static) -> io::Result<()> {
        const STACK: usize = 256 * 1024;
        let file = self.file()?.try_clone()?;
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || work(setns(&file, CloneFlags::CLONE_NEWNET)))
            .map(drop)
    }

    /// Moves the calling thread into the namespace; only for scratch threads.
    fn enter(&self) -> Result<(), Errno> {
        setns(self.file()?, CloneFlags::CLONE_NEWNET)
    }
}

/// Runs `work` on a scratch thread in a new namespace. It has no name and no mount; what is in it is gone when nothing in
/// `work`'s result holds it open any more, and with this process at the latest.
pub fn in_new<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Error> {
    let enter = || unshare(CloneFlags::CLONE_NEWNET).map(|()| work());
    thread::scope(|scope| {
        let thread =
            point("unshare").and_then(|()| thread::Builder::new().spawn_scoped(scope, enter))?;
        let result = thread.join();
        Ok(result.map_err(|panic| Error::of_panic(&*panic))??)
    })
}

/// Runs `work` once for each item, each time in a new namespace, on scratch threads; the results are in the order of the items.
///
/// # Errors
/// Those of unshare(2) and of `work`; the first one ends it.
pub(crate) fn each_in_new<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (made, error) = on_threads(workers(count), || {
        let made = iter::from_fn(next).map(|(at, item)| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok((at, work(item)?))
        });
        made.collect::<Result<Vec<_>, Error>>()
    });
    let made: Result<Vec<_>, Error> = made.into_iter().collect();
    let mut made: Vec<_> = made?.into_iter().flatten().collect();
    if made.len() < count {
        return Err(error);
    }
    made.sort_unstable_by_key(|(at, _)| *at);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}

/// The user namespace that owns a namespace.
#[allow(unsafe_code)]
fn user_namespace(netns: &File) -> io::Result<File> {
    /// `_IO(NSIO, 0x1)` of linux/nsfs.h.
    const NS_GET_USERNS: libc::Ioctl = 0xb701;
    // SAFETY: the request has no argument, and its result is a new descriptor or -1.
    let fd = Errno::result(unsafe { libc::ioctl(netns.as_raw_fd(), NS_GET_USERNS) })?;
    // SAFETY: nothing else owns the descriptor.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Refuses a file that is not of nsfs.
fn is_namespace(file: &File) -> io::Result<()> {
    if fstatfs(file)?.filesystem_type().0 == NSFS_MAGIC {
        return Ok(());
    }
    Err(Errno::EINVAL.into())
}

/// The number of threads: two already saturate the RTNL lock, more speed up reads from `/proc`.
fn workers(items: usize) -> usize {
    const ITEMS_PER_WORKER: usize = 16;
    items.div_ceil(ITEMS_PER_WORKER).min(processors().min(4))
}

/// Runs `work` once for each item, on scratch threads inside the item's namespace, which `netns` opens if it is closed. The
/// items are begun in their order, so that one of them delays at most one thread.
///
/// The results are in the order of the items. An item whose namespace cannot be entered yields the errno; one whose work
/// panics yields that, and the others are visited. Without any thread, each yields the errno of the spawn.
pub fn visit<T, R>(
    items: &mut [T],
    netns: impl Fn(&mut T) -> io::Result<&Netns> + Sync,
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<Result<R, Error>>
where
    T: Send,
    R: Send,
{
    let count = items.len();
    let items = items.iter_mut().enumerate();
    let mut visited = visit_as_they_come(
        || (),
        items,
        count,
        |(_, item)| netns(item),
        |(_, item)| work(item),
    );
    visited.sort_unstable_by_key(|((at, _), _)| *at);
    visited.into_iter().map(|(_, result)| result).collect()
}

/// Enters the namespaces of about `count` items, each when the iterator has it, and returns each with its result, in any order.
/// `first` may send them: one of the threads begins with it, in the namespace of the calling one.
pub fn visit_as_they_come<T, R>(
    first: impl FnOnce() + Send,
    items: impl Iterator<Item = T> + Send,
    count: usize,
    netns: impl Fn(&mut T) -> io::Result<&Netns> + Sync,
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<(T, Result<R, Error>)>
where
    T: Send,
    R: Send,
{
    let visit_one = |mut item: T| {
        let result = catch_unwind(AssertUnwindSafe(|| {
            netns(&mut item)?.enter()?;
            Ok(work(&mut item))
        }));
        let result = result.unwrap_or_else(|panic| Err(Error::of_panic(&*panic)));
        (item, result)
    };
    let queue = Mutex::new(items);
    let first = Mutex::new(Some(first));
    let take_first = || first.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (visited, error) = on_threads(workers(count), || {
        if let Some(first) = take_first() {
            first();
        }
        iter::from_fn(|| queue.lock().unwrap_or_else(PoisonError::into_inner).next())
            .map(visit_one)
            .collect::<Vec<_>>()
    });
    // Without any thread nothing comes.
    drop(take_first());
    let mut visited: Vec<_> = visited.into_iter().flatten().collect();
    let left = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    visited.extend(left.map(|item| (item, Err(error.clone()))));
    visited
}

/// Runs the same on as many threads as there can be, up to `most`: their results, and what came of the others.
pub(crate) fn on_threads<R: Send>(most: usize, run: impl Fn() -> R + Sync) -> (Vec<R>, Error) {
    thread::scope(|scope| {
        let mut error = Error::Kernel(Errno::EAGAIN);
        let mut threads = Vec::new();
        for _ in 0..most {
            let spawned =
                point("thread").and_then(|()| thread::Builder::new().spawn_scoped(scope, &run));
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(refused) => error = refused.into(),
            }
        }
        let mut results = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(result) => results.push(result),
                Err(panic) => error = Error::of_panic(&*panic),
            }
        }
        (results, error)
    })
}

/// How many more files this process may open.
pub fn free_files() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_sub(open)
}

/// Raises the soft limit of open files to the hard one: every namespace and its socket stay open at once. To be called before
/// there are threads: from then on the kernel waits for an RCU grace period, of some milliseconds, each time that the table of
/// open files grows (`expand_fdtable` in `fs/file.c`).
pub fn raise_file_limit() {
    /// Those of a thousand pods. A table of this size has 32 KiB.
    const ROOM: i32 = 4096;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // If refused, fewer namespaces stay open.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    // If refused, the table grows later.
    let last = fcntl(io::stderr(), FcntlArg::F_DUPFD_CLOEXEC(ROOM - 1));
    let _ = last.map(close);
}
