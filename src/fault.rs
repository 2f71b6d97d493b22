//! Failure points: where a test can make the program die, or one call fail, at any instant.
//!
//! They exist with the feature `failpoints` only; without it [`point`] is nothing.

use std::io;

/// Somewhere a call into the kernel, to the disk or to systemd is about to be made. `what` names the sort of call.
///
/// # Errors
/// The errno that the test has asked for at this point.
#[inline]
#[allow(
    clippy::missing_const_for_fn,
    clippy::unnecessary_wraps,
    reason = "it does something with the feature"
)]
pub fn point(what: &'static str) -> io::Result<()> {
    let _ = what;
    Ok(())
}
