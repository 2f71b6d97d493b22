//! One call to a runtime: its time limit and its failure.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::answer::Sandbox;

/// How long a runtime that has identified itself may be silent. One under load answers late, and one after the other.
const SILENCE: Duration = Duration::from_secs(8);
/// How long its whole list may take.
const WHOLE: Duration = Duration::from_secs(30);
/// How many calls to one runtime run at the same time.
pub(super) const AT_ONCE: usize = 16;

/// The answer of one runtime.
#[derive(Debug)]
pub(super) struct Listing {
    /// The kind of runtime: `cri`, `docker` or `podman`.
    pub kind: &'static str,
    pub version: String,
    /// Every running sandbox with its own network namespace.
    pub sandboxes: Vec<Sandbox>,
}

/// Why a runtime did not answer.
#[derive(Debug)]
pub(super) enum RuntimeFailure {
    /// The connection failed, with the reason.
    NotThere(String),
    /// It answers but does not offer the service.
    NotOffered,
    /// The call that failed, and the reason.
    Failed(String),
}

impl RuntimeFailure {
    /// A failed call.
    pub fn of(call: &str, why: impl Display) -> Self {
        Self::Failed(format!("{call}: {why}"))
    }
}

/// Waits for an answer until `until`.
pub(super) async fn before<T>(
    until: Instant,
    call: &str,
    answer: impl Future<Output = T>,
) -> Result<T, RuntimeFailure> {
    tokio::time::timeout_at(until.into(), answer)
        .await
        .map_err(|_| RuntimeFailure::of(call, "no answer"))
}

/// The time limit of a runtime's list of pods: it continues for as long as answers come.
#[derive(Debug)]
pub(super) struct Patience {
    answered: Cell<Instant>,
    end: Instant,
}

impl Patience {
    /// From now on.
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            answered: Cell::new(now),
            end: now + WHOLE,
        }
    }

    /// Waits for an answer while others come.
    pub async fn wait<T>(
        &self,
        call: &str,
        answer: impl Future<Output = T>,
    ) -> Result<T, RuntimeFailure> {
        let mut answer = pin!(answer);
        loop {
            let since = self.answered.get();
            let until = self.end.min(since + SILENCE);
            let settled = before(until, call, answer.as_mut()).await;
            if settled.is_ok() {
                self.answered.set(Instant::now());
            } else if self.answered.get() > since && until < self.end {
                continue;
            }
            return settled;
        }
    }
}

/// The errno at the root of an error, or the text of the root cause.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    loop {
        if let Some(errno) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Errno::from_raw(errno).to_string();
        }
        match error.source() {
            Some(source) => error = source,
            None => return error.to_string(),
        }
    }
}
