//! The faults at a failure point.

use std::fmt;

use crate::stage::Ran;

/// As in `src/fault.rs`.
pub const ACTIONS: [&str; 7] = [
    "kill", "ENOMEM", "EBUSY", "EINTR", "ENOBUFS", "ENOSPC", "EIO",
];

/// The faults of this many points: `kill`, and an errno that rotates from point to point; or all of the chosen ones. With
/// `in_turn`, every other point has only the one, the next only the other.
pub fn faults(points: usize, chosen: &[&'static str], in_turn: bool) -> Vec<Fault> {
    let [kill, errnos @ ..] = ACTIONS;
    let at_point = |point: usize| {
        let actions = match chosen {
            [] if in_turn && point.is_multiple_of(2) => vec![kill],
            [] if in_turn => vec![errnos[point / 2 % errnos.len()]],
            [] => vec![kill, errnos[point % errnos.len()]],
            chosen => chosen.to_vec(),
        };
        actions
            .into_iter()
            .map(move |action| Fault { point, action })
    };
    (1..=points).flat_map(at_point).collect()
}

#[derive(Clone, Copy)]
pub struct Fault {
    /// The point's number, from 1.
    pub point: usize,
    pub action: &'static str,
}

impl Fault {
    /// A run must end as its fault demands, or with an ordinary exit code; `exit` is that of an undisturbed one.
    pub fn must_not_end_like(self, run: &Ran, exit: i32) -> Vec<String> {
        let is_good = match run.code {
            None | Some(137) => run.was_hit && self.action == "kill",
            Some(code) if code == exit => self.action != "kill" || !run.was_hit,
            Some(code) => run.was_hit && [1, 4, 5].contains(&code),
        };
        if is_good {
            Vec::new()
        } else {
            vec![format!("it ends with {:?}", run.code)]
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at point {}", self.action, self.point)
    }
}
