//! The end of a window: its record is closed, at the latest by the next netfix that has the lock.

use crate::model::problem::StoreEffect;
use crate::model::{Exit, Problem, Window};
use crate::store::{Guard, StoreError};
use crate::systemd;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::session::{WindowSession, sign};
use crate::window::window_log::WindowLog;
use crate::window::{bus, window_log};

impl WindowSession {
    /// Leaves the window as it is on disk; returns it.
    pub(crate) fn leave(mut self) -> Window {
        self.log_file.end_echo();
        // The record on disk names the log.
        if let (false, Some(log)) = (self.is_saved, self.log_file.path()) {
            window_log::remove(log);
        }
        self.window
    }

    /// Writes the record of what never was an open window.
    pub(crate) fn keep(mut self, end: u8) {
        self.window.ended = Some(self.now());
        self.window.exit = Some(end);
        // The restore is what matters.
        let _ = self.amend();
    }

    /// Writes what was added to the record of a closed window; returns that.
    pub(crate) fn amend(mut self) -> Result<Window, StoreError> {
        sign(&mut self.window);
        if let Some(guard) = self.guard.take() {
            guard.save_record(&self.window)?;
        }
        Ok(self.window)
    }

    /// Closes the window and keeps its record; returns that, and what failed. A window that is over keeps the end that it had:
    /// its process died while it closed it, the disk refused its record, or a reboot has ended it.
    pub(crate) fn close(mut self, end: Exit, closed_by: Option<&str>) -> (Window, Vec<Problem>) {
        self.end_kernel_watch();
        if self.window.ended.is_none() {
            sign(&mut self.window);
            self.window.ended = Some(self.now());
            self.window.closed_by = closed_by.map(str::to_owned);
            self.window.exit = Some(end as u8);
        }
        self.log_file.end_echo();
        let problems = match self.guard.take() {
            Some(guard) => close(&mut self.window, &self.log_file, &guard),
            None => Vec::new(),
        };
        (self.window, problems)
    }
}

/// Closes the record of a window that is over; returns what failed.
fn close(window: &mut Window, log: &WindowLog, guard: &Guard) -> Vec<Problem> {
    let (kept, problem) = log.keep(&window.id, guard);
    window.log = kept.or(window.log.take());
    sign(window);
    let failed = match guard.close_window(window) {
        Ok(failed) if guard.store().has_window_file() => {
            let in_memory = |error: &StoreError| error.problem_with(StoreEffect::KeptInMemory);
            failed.iter().map(in_memory).map(Problem::demoted).collect()
        }
        Ok(failed) => failed
            .iter()
            .map(|error| error.problem().demoted())
            .collect(),
        // It was never on disk: nothing is open.
        Err(error) if !guard.store().has_window_file() => vec![error.problem().demoted()],
        Err(error) => vec![error.problem()],
    };
    problem.into_iter().chain(failed).collect()
}

/// Refuses to open a window while the record of an earlier one, which is over, cannot be closed.
pub(crate) fn require_closed(window: &Window, guard: &Guard) -> Result<(), StoreError> {
    let failed = guard.close_window(window)?;
    let mut failed = failed
        .into_iter()
        .filter(|_| guard.store().has_window_file());
    failed.next().map_or(Ok(()), Err)
}

/// What every netfix does first with the lock: closes a window that is over, and moves to the disk what it refused before.
pub(crate) fn settle(guard: &Guard) {
    let over = guard.store().unclosed_window().ok().flatten();
    if let Some(mut window) = over.filter(|window| window.ended.is_some()) {
        let runs_again = window.pause.is_some() && !window.is_paused();
        // The process that resumed the unit may have died before it stopped the deadline.
        if runs_again
            && !window.is_ended_by_reboot()
            && let Some(bus) = bus::connect().ok().flatten()
        {
            let _ = systemd::disarm(&bus);
        }
        let log = WindowLog::taken_over(&window, DEFAULT_LIMIT);
        close(&mut window, &log, guard);
    }
    guard.adopt_logs();
}
