//! What the program gives to every command.

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
}
