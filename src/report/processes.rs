//! Lines on stderr about other processes: those that netfix waits for, and those that it starts.

use std::ffi::OsStr;
use std::io;

use super::line;

/// Another netfix has the lock.
pub fn waits_for_lock(holder: &str) {
    line(&format!("netfix: waiting for the lock held by {holder}"));
}

/// A command was not started.
pub fn cannot_start(program: &OsStr, error: &io::Error) {
    line(&format!(
        "netfix: cannot start {}: {error}",
        program.display()
    ));
}

/// The namespaces of process 1 cannot be entered.
pub fn cannot_enter_host(error: &io::Error) {
    line(&format!("netfix: cannot enter the host: {error}"));
}
