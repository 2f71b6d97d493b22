//! How long COMMAND and the rollback may run: the restore after them comes before the deadline starts kubelet. Pure.

use std::time::Duration;

use crate::model::Window;
use crate::model::window::PhaseName;
use crate::upgrade::request::UpgradeRequest;

/// What a restore may take beside its waits, with the end of COMMAND.
const MARGIN: Duration = Duration::from_secs(60);
/// The least time for the rollback: one that is cut short at once leaves no driver at all.
const LEAST: Duration = Duration::from_secs(60);
/// The least time from SIGTERM to SIGKILL.
const LEAST_GRACE: Duration = Duration::from_millis(500);

/// How long a command of the user may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    /// From its start to SIGTERM.
    pub limit: Duration,
    /// From SIGTERM to SIGKILL; after that time again netfix continues without its end.
    pub grace: Duration,
}

impl TimeLimit {
    /// The usual time from SIGTERM to SIGKILL.
    pub(crate) const GRACE: Duration = Duration::from_secs(10);

    /// With the usual time to end.
    pub(crate) fn of(limit: Duration) -> Self {
        let grace = Self::GRACE;
        Self { limit, grace }
    }
}

/// How long COMMAND may run: `--command-timeout`, else from the pause of kubelet on until the restore has to begin, but at least
/// half of the deadline.
pub(crate) fn of_command(request: &UpgradeRequest<'_>) -> Duration {
    let waits = if request.rollback.is_some() { 2 } else { 1 };
    let until_restore = || until_restore(request, waits);
    request.command_timeout.unwrap_or_else(until_restore)
}

fn until_restore(request: &UpgradeRequest<'_>, waits: u32) -> Duration {
    let waits = request.wait.saturating_mul(waits);
    before_restore(
        request.deadline,
        waits.saturating_add(request.manager_grace),
    )
}

/// What a deadline leaves before a restore with these waits.
fn before_restore(deadline: Duration, waits: Duration) -> Duration {
    let restore = waits.saturating_add(MARGIN);
    deadline.saturating_sub(restore).max(deadline / 2)
}

/// What is left of it for COMMAND, or the rollback, that starts now, in milliseconds since the window's start. Where no kubelet is
/// paused, no deadline runs.
pub(crate) fn left(
    request: &UpgradeRequest<'_>,
    phase: PhaseName,
    window: &Window,
    now: u64,
) -> TimeLimit {
    let since_pause = if window.is_paused() {
        Duration::from_millis(now.saturating_sub(window.armed_at()))
    } else {
        Duration::ZERO
    };
    let limit = match (request.command_timeout, phase) {
        (Some(limit), _) => limit,
        (None, PhaseName::Rollback) => {
            let left = until_restore(request, 1).saturating_sub(since_pause);
            left.max(LEAST)
        }
        (None, _) => of_command(request).saturating_sub(since_pause),
    };
    let until_deadline = request.deadline.saturating_sub(of_command(request));
    TimeLimit {
        limit,
        grace: (until_deadline / 4).clamp(LEAST_GRACE, TimeLimit::GRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_less_the_restore_or_half_of_it_is_left() {
        let second = Duration::from_secs;
        for (deadline, waits, left) in [
            (600, 60 + 5, 475),
            (600, 2 * 60 + 5, 415),
            (1800, 20 + 5, 1715),
            (360, 180 + 5, 180),
            (6, 20 + 5, 3),
        ] {
            assert_eq!(
                before_restore(second(deadline), second(waits)),
                second(left)
            );
        }
    }
}
