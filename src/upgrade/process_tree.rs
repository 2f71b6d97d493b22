//! A command of the user with the processes that it has started and waits for: it may hang in one of them.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::inventory::procfs;
use crate::model::pod::identity::Holder;

/// A process group, and the descendants of its leader in other groups, such as those of timeout(1).
#[derive(Debug)]
pub(crate) struct ProcessTree {
    leader: u32,
    others: Vec<Holder>,
}

impl ProcessTree {
    /// As it is now. What a daemon has left behind is no descendant.
    pub(crate) fn of(leader: u32) -> Self {
        // Where /proc cannot be read, the group is all that is known.
        let others = procfs::descendants(leader).unwrap_or_default();
        Self { leader, others }
    }

    /// Adds what was started since.
    pub(crate) fn update(&mut self) {
        let Self { others, .. } = Self::of(self.leader);
        self.others.extend(others);
    }

    /// Sends a signal to each of them; a process that has just ended gets none.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = pid(self.leader);
        let _ = killpg(group, signal);
        for other in &self.others {
            let is_outside = nix::unistd::getpgid(Some(pid(other.pid))) != Ok(group);
            if is_outside && procfs::is_running(other) {
                let _ = kill(pid(other.pid), signal);
            }
        }
    }

    /// Whether one of them still runs.
    pub(crate) fn is_running(&self) -> bool {
        procfs::runs_in_group(self.leader) || self.others.iter().any(procfs::is_running)
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed())
}
