//! What the program gives to every command.

use std::thread::JoinHandle;

use crate::progress::Listener;
use crate::store::Store;

/// What the program around a command provides.
pub struct Context {
    /// The state directory.
    pub store: Store,
    /// Shows progress.
    pub progress: Box<dyn Listener>,
    /// Whether only errors are wanted.
    pub quiet: bool,
    /// Whether stdout is to have one document and nothing else.
    pub json: bool,
    /// What is still to be sent after the answer is printed.
    pub(crate) pending: Pending,
}

impl Context {
    /// A context for output that is neither quiet nor JSON.
    #[must_use]
    pub fn new(store: Store, progress: Box<dyn Listener>) -> Self {
        Self {
            store,
            progress,
            quiet: false,
            json: false,
            pending: Pending::default(),
        }
    }

    /// Waits until everything is sent. To be called after the answer is printed.
    pub fn finish(&mut self) {
        self.pending.wait();
    }
}

/// Threads that still send something, such as the second announcement of a restored address.
#[derive(Debug, Default)]
pub(crate) struct Pending(Vec<JoinHandle<()>>);

impl Pending {
    /// Adds those of another piece of work.
    pub(crate) fn add(&mut self, other: Self) {
        self.extend(other.0);
    }

    /// Adds threads.
    pub(crate) fn extend(&mut self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        self.0.extend(threads);
    }

    fn wait(&mut self) {
        for thread in self.0.drain(..) {
            // What a thread that panicked was to send is lost, and fails nothing.
            let _ = thread.join();
        }
    }
}
