//! One question to a runtime: how long it may take, and how its failure is told.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Instant;

use nix::errno::Errno;

use super::Sandbox;

/// How many questions a runtime is asked at once.
pub(super) const AT_ONCE: usize = 16;

/// What one runtime said.
#[derive(Debug)]
pub(super) struct Told {
    /// The kind of runtime: `cri`, `docker` or `podman`.
    pub kind: &'static str,
    /// Name and version, as it says them.
    pub version: String,
    /// Every running sandbox that does not use the host's namespace.
    pub sandboxes: Vec<Sandbox>,
}

/// Why a runtime could not be asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody can be connected to, and why.
    NotThere(String),
    /// Somebody answers, and does not offer the service that was asked for.
    NotOffered,
    /// What was tried, and what came of it.
    Failed(String),
}

impl Failure {
    /// A step that did not work.
    pub fn of(step: &str, why: impl Display) -> Self {
        Self::Failed(format!("{step}: {why}"))
    }
}

/// Waits for an answer, but not longer than `until`.
pub(super) async fn before<T>(
    until: Instant,
    step: &str,
    call: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::time::timeout_at(until.into(), call).await.map_err(|_| Failure::of(step, "no answer"))
}

/// The errno at the bottom of an error, or where there is none, what its last cause says.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    loop {
        if let Some(errno) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Errno::from_raw(errno).to_string();
        }
        match error.source() {
            Some(source) => error = source,
            None => return error.to_string(),
        }
    }
}
