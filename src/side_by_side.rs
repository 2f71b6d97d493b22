//! Work on many items, on all processors.

use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use crate::fault::point;

/// The number of processors that this process may use. It is asked for once: the answer is in the files of cgroups.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// The results of `work` on each item, in the order of the items. A panic of `work` is passed on.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    /// A thread takes so many at a time; fewer are not worth one.
    const PART: usize = 16;
    let others = items
        .len()
        .div_ceil(PART)
        .min(processors())
        .saturating_sub(1);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let part: Vec<_> = queue.by_ref().take(PART).collect();
        Some(part).filter(|part| !part.is_empty())
    };
    let run = || {
        while let Some(part) = next() {
            let done: Vec<_> = part
                .into_iter()
                .map(|(at, item)| (at, work(item)))
                .collect();
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(done);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // Without it there is the calling one.
            let _ = point("thread").and_then(|()| thread::Builder::new().spawn_scoped(scope, run));
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The results of two pieces of work, the first of them on a thread of its own where one can be started. A panic of either is
/// passed on.
pub(crate) fn both<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        // It works for no single pod, and so it has a name as the main thread has one.
        let named = thread::Builder::new().name("netfix-beside".to_owned());
        let thread = point("thread").and_then(|()| named.spawn_scoped(scope, &one));
        let second = other();
        let first = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => one(),
        };
        (first, second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_any_number_of_items() {
        for count in [0, 1, 16, 17, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = (1..=count).collect();
            assert_eq!(map(items, |item| item + 1), expected, "{count}");
        }
    }
}
