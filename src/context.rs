//! What the program gives to every command.

use std::path::PathBuf;
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

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
    /// What the configuration file sets.
    pub config: ConfigFile,
    /// What is still to be sent after the answer is printed.
    pub(crate) pending: Pending,
}

/// What a configuration file sets.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    /// The file; `None`: there is none.
    pub path: Option<PathBuf>,
    /// Its settings, those of one command last.
    pub settings: Vec<ConfigSetting>,
    /// Why it is not used.
    pub error: Option<String>,
}

/// An option with another default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSetting {
    /// The command that it is for; `None`: every command that has the option.
    pub command: Option<String>,
    /// The option without its dashes.
    pub option: String,
    /// One value; several for an option that can be repeated.
    pub values: Vec<String>,
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
            config: ConfigFile::default(),
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
