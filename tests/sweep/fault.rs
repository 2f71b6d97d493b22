//! What can happen at a failure point.

use std::fmt;

use crate::stage::Ran;

/// As `src/fault.rs` names them.
pub const ACTIONS: [&str; 7] = ["kill", "ENOMEM", "EBUSY", "EINTR", "ENOBUFS", "ENOSPC", "EIO"];

#[derive(Clone, Copy)]
pub struct Fault {
    /// The point's number, from 1.
    pub point: usize,
    pub action: &'static str,
}

impl Fault {
    /// A run ends as it was made to, or in an orderly way.
    pub fn must_not_end_like(self, run: &Ran) -> Vec<String> {
        let is_good = match run.code {
            None | Some(137) => run.was_hit && self.action == "kill",
            Some(0) => self.action != "kill" || !run.was_hit,
            Some(code) => run.was_hit && [1, 4, 5].contains(&code),
        };
        if is_good { Vec::new() } else { vec![format!("it ends with {:?}", run.code)] }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at point {}", self.action, self.point)
    }
}
