//! Work inside the namespaces of pods.
//!
//! Each pod costs open files. Where the limit does not hold all of them at once, a pod's are open only while there is work in
//! it, and each time its namespace must prove to be the one from before.

use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Pod;
use crate::kernel::{Error, netns};

/// A namespace, a socket in it, one more that listens, and one for pings.
const FILES_OF_POD: usize = 4;
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
pub(crate) fn visit<T: AsMut<Pod> + Send, R: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<Result<R, Error>> {
    let results = enter(items, |item| in_connected(item, &work));
    // Those in which nothing was done, or in which it panicked.
    for item in items {
        item.as_mut().release();
    }
    results
}

/// Runs `work` like [`visit`], for about `count` items, each of which is begun when the iterator has it: each with its
/// result, in any order. `first` may send them: one of the threads begins with it, in the host's namespace.
pub(crate) fn visit_as_they_come<'a, T: AsMut<Pod> + Send, R: Send>(
    first: impl FnOnce() + Send,
    items: impl Iterator<Item = &'a mut T> + Send,
    count: usize,
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<(&'a mut T, Result<R, Error>)> {
    netns::visit_as_they_come(
        first,
        items,
        count,
        |item| item.as_mut().netns.reopen(),
        |item| in_connected(&mut **item, &work),
    )
    .into_iter()
    .map(|(item, result)| {
        item.as_mut().release();
        (item, result.and_then(|result| result))
    })
    .collect()
}

/// Runs `work` like [`visit`], which needs no socket: one that was given away is not opened again.
pub(crate) fn visit_without_socket<T: AsMut<Pod> + Send, R: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<Result<R, Error>> {
    enter(items, |item| {
        if item.as_mut().netns.is_transient {
            in_connected(item, &work)
        } else {
            Ok(work(item))
        }
    })
}

fn in_connected<T: AsMut<Pod>, R>(item: &mut T, work: impl Fn(&mut T) -> R) -> Result<R, Error> {
    let result = item.as_mut().connect().map(|()| work(item));
    item.as_mut().release();
    result
}

/// Runs `work` like [`visit`]; the pods stay open after it, until [`Pod::release`].
pub(crate) fn hold<T: AsMut<Pod> + Send, R: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    enter(items, |item| {
        item.as_mut().connect().and_then(|()| work(item))
    })
}

fn enter<T: AsMut<Pod> + Send, R: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    let results = netns::visit(items, |item| item.as_mut().netns.reopen(), work);
    results.into_iter().map(|result| result?).collect()
}

/// How long a pod that a runtime is making, or an address that the kernel still probes, may take until it is a finding.
const BEING_MADE: Duration = Duration::from_secs(3);

/// Looks again as long as there is a finding about a pod that a runtime may be making.
pub(crate) fn confirm(mut look: impl FnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(500);
    let until = Instant::now() + BEING_MADE;
    loop {
        thread::sleep(PAUSE);
        if !look() || Instant::now() > until {
            return;
        }
    }
}
