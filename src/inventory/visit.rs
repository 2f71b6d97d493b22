//! Work inside the namespaces of pods.
//!
//! Each pod costs open files. Where the limit does not hold all of them at once, a pod's are open only while there is work in
//! it, and each time its namespace must prove to be the one from before.

use super::observe::Pod;
use super::procfs;
use crate::kernel::{Errno, Error, Netns, Socket, netns};
use crate::model::NetnsIdentity;

/// A namespace, a socket in it, and one more that listens.
const FILES_OF_POD: usize = 3;
/// For everything else that netfix opens: sockets of runtimes, D-Bus and journald, files, scratch.
const RESERVE: usize = 24;

/// Whether so many namespaces can stay open.
pub(super) fn can_stay_open(namespaces: usize) -> bool {
    netns::free_files() >= namespaces * FILES_OF_POD + RESERVE
}

/// How many of these pods can be open at once.
pub(crate) fn room<T: AsMut<Pod>>(items: &mut [T]) -> usize {
    if items
        .iter_mut()
        .any(|item| item.as_mut().netns.is_transient)
    {
        room_for(FILES_OF_POD)
    } else {
        items.len().max(1)
    }
}

/// How many times so many files can be open at once; at least one time.
pub(crate) fn room_for(files: usize) -> usize {
    (netns::free_files().saturating_sub(RESERVE) / files).max(1)
}

/// Runs `work` once for each item, on scratch threads inside its pod's namespace, side by side; the results are in their
/// order.
pub(crate) fn visit<T, R>(
    items: &mut [T],
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<Result<R, Error>>
where
    T: AsMut<Pod> + Send,
    R: Send,
{
    let results = enter(items, |item| in_connected(item, &work));
    // Those in which nothing was done, or in which it panicked.
    for item in items {
        item.as_mut().release();
    }
    results
}

/// The same for about `count` items, each of which is begun when the iterator has it: each with its result, in any order.
/// `first` may send them: one of the threads begins with it, in the host's namespace.
pub(crate) fn visit_as_they_come<'a, T, R>(
    first: impl FnOnce() + Send,
    items: impl Iterator<Item = &'a mut T> + Send,
    count: usize,
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<(&'a mut T, Result<R, Error>)>
where
    T: AsMut<Pod> + Send,
    R: Send,
{
    let visited = netns::visit_as_they_come(
        first,
        items,
        count,
        |item| item.as_mut().netns.reopen(),
        |item| in_connected(&mut **item, &work),
    );
    let visited = visited.into_iter();
    visited
        .map(|(item, result)| {
            item.as_mut().release();
            (item, result.and_then(|result| result))
        })
        .collect()
}

fn in_connected<T: AsMut<Pod>, R>(item: &mut T, work: impl Fn(&mut T) -> R) -> Result<R, Error> {
    let result = item.as_mut().connect().map(|()| work(item));
    item.as_mut().release();
    result
}

/// The same as [`visit`], and the pods stay open after it, until [`Pod::release`].
pub(crate) fn hold<T, R>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>>
where
    T: AsMut<Pod> + Send,
    R: Send,
{
    enter(items, |item| {
        item.as_mut().connect().and_then(|()| work(item))
    })
}

fn enter<T, R>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>>
where
    T: AsMut<Pod> + Send,
    R: Send,
{
    let results = netns::visit(items, |item| item.as_mut().netns.reopen(), work);
    results.into_iter().map(|result| result?).collect()
}

impl AsMut<Pod> for Pod {
    fn as_mut(&mut self) -> &mut Pod {
        self
    }
}

impl Pod {
    /// Opens the socket again where it was closed; the calling thread must be inside the namespace.
    ///
    /// # Errors
    /// `ESTALE` if this is not the namespace from before.
    fn connect(&mut self) -> Result<(), Error> {
        if self.socket.is_none() {
            let socket = Socket::open_here()?;
            prove(&self.netns, &self.identity, socket.netns_cookie()?)?;
            self.socket = Some(socket);
        }
        Ok(())
    }

    /// Closes what cannot stay open.
    pub(crate) fn release(&mut self) {
        if self.netns.is_transient {
            self.socket = None;
            self.netns.close();
        }
    }

    /// Gives its socket away; `None` while it is closed.
    pub(crate) fn take_socket(&mut self) -> Option<Socket> {
        self.socket.take()
    }

    /// The socket in the pod's namespace; only while there is work in it.
    pub(crate) fn socket(&mut self) -> Result<&mut Socket, Error> {
        self.socket.as_mut().ok_or(Error::Kernel(Errno::EBADF))
    }
}

/// Proves that a namespace that was closed meanwhile is the known one.
pub(super) fn prove(
    netns: &Netns,
    known: &NetnsIdentity,
    cookie: Option<u64>,
) -> Result<(), Error> {
    let inode = netns.key().1;
    let holder = netns.holder.filter(|one| procfs::is_in(*one, inode));
    let now = NetnsIdentity {
        holder,
        ..netns.identity(cookie)
    };
    if now.is_same(known) {
        return Ok(());
    }
    Err(Errno::ESTALE.into())
}
