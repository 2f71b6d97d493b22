//! What the program gives to every command.

use crate::progress::Listener;
use crate::restore::announce::Pending;
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
