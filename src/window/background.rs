//! Threads beside the work of a window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A thread that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// `work` ends soon after the flag is set.
    pub(crate) fn start(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        Self {
            stop,
            // Without a thread its facts stay unknown.
            thread: thread::Builder::new().spawn(move || work(&stopped)).ok(),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It may be parked.
            thread.thread().unpark();
            // The panic was reported there.
            let _ = thread.join();
        }
    }
}
