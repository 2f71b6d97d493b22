//! The window of `netfix upgrade`, phase by phase. Each phase takes what it needs and returns facts; the driver alone writes
//! them into the window's record. From the pause on, every path leads through the resume.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::context::Context;
use crate::journal;
use crate::kubelet::kubelet_pause;
use crate::model::problem::{CommandCause, WindowCause};
use crate::model::{Exit, Problem, Window};
use crate::refusal::Refusal;
use crate::restore::Restored;
use crate::restore::settle::LossWatch;
use crate::upgrade::condition::other_versions;
use crate::upgrade::driver::{Driver, panicked};
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::preflight::Baseline;
use crate::upgrade::rollback::already_rolled_back;
use crate::upgrade::{Request, network};
use crate::window::findings::{Area, Findings};
use crate::window::session;
use crate::window::signals::Signals;

const COMMAND: &str = "upgrade";

/// How a window ended.
pub(crate) struct Upgraded {
    pub end: Exit,
    /// The record; `None` where the window ended before its first change.
    pub window: Option<Window>,
    /// Whether the window is still open: kubelet does not run.
    pub is_open: bool,
    pub restored: Restored,
    pub problems: Vec<Problem>,
}

pub(crate) fn run(request: &Request<'_>, context: &mut Context) -> Result<Upgraded, Refusal> {
    // A signal ends netfix while it waits for the lock.
    let guard = context.store.lock(COMMAND)?;
    let signals = Signals::catch().map_err(|error| {
        let error = error.to_string();
        WindowCause::Signals { error }.error("signals")
    })?;
    let bus = kubelet_pause::systemd()?;
    let session = session::open_or_resume(
        guard,
        &context.store,
        request.echo && !context.quiet,
        request.log_limit,
    )?;
    if session.is_saved {
        journal::continues(COMMAND, &session.window.id);
    } else {
        journal::begins(COMMAND);
    }
    let was_paused = session.window.is_paused();
    let mut driver = Driver {
        request,
        context,
        bus,
        signals,
        session,
        findings: Findings::default(),
        restored: Restored::default(),
        losses: LossWatch::start(&[]),
        left_out: LeftOut::default(),
        budget: None,
        is_prepared: false,
    };
    // From here on kubelet is resumed on every path, even after a panic.
    let prepared = catch_unwind(AssertUnwindSafe(|| driver.prepare()));
    let baseline = match prepared.unwrap_or_else(|_| Err(panicked().into())) {
        Ok(baseline) => baseline,
        Err(refusal) => return Ok(driver.refuse(refusal, was_paused)),
    };
    if catch_unwind(AssertUnwindSafe(|| driver.work(&baseline))).is_err() {
        driver.findings.add(Area::Rebuild, [panicked()]);
    }
    driver.resume();
    driver.check_rebuilds(&baseline);
    Ok(driver.close())
}

impl Driver<'_> {
    /// Everything before COMMAND; what it returns as an error stops the window.
    fn prepare(&mut self) -> Result<Baseline, Refusal> {
        // Once COMMAND has begun, the network may not be what it was.
        let baseline = if self.session.window.has_begun() {
            self.recover()?
        } else {
            self.check_and_snapshot()?
        };
        self.stop_if_interrupted(CommandCause::InterruptedUnchanged)?;
        self.is_prepared = true;
        if !self.session.window.has_begun() {
            self.before()?;
            self.stop_if_interrupted(CommandCause::InterruptedUnchanged)?;
        }
        self.pause()?;
        self.stop_if_interrupted(CommandCause::InterruptedBefore)?;
        Ok(baseline)
    }

    /// COMMAND, and the pods' network after it.
    fn work(&mut self, baseline: &Baseline) {
        if self.session.window.rollback.is_some() {
            // The former driver is back, or a person has to bring it back: COMMAND would take it away again.
            self.findings.add(Area::Command, [already_rolled_back()]);
        } else {
            self.command(baseline);
        }
        let is_interrupted = self.bring_back(baseline);
        if self.roll_back(baseline, is_interrupted) {
            self.bring_back(baseline);
        }
        if self.session.window.rollback.is_none() {
            let other = other_versions(self.request.drivers);
            self.findings.add(Area::Command, other);
        }
        if self.report_broken() && self.request.keep_paused && self.session.window.is_paused() {
            self.hold_for_repair();
            self.restore(baseline, Duration::ZERO);
            self.verify(baseline);
        }
    }

    /// The pods' network after COMMAND or the rollback; returns whether a signal ended the wait for the NIC.
    fn bring_back(&mut self, baseline: &Baseline) -> bool {
        let is_interrupted = self.restore(baseline, self.request.wait);
        self.check_pause();
        self.verify(baseline);
        is_interrupted
    }

    /// Ends a window before COMMAND. A unit that was paused here runs again; one that was found paused stays paused.
    fn refuse(mut self, refusal: Refusal, was_paused: bool) -> Upgraded {
        self.findings.add(Area::Preflight, refusal.problems);
        if self.session.window.is_paused() && !was_paused {
            self.resume();
        }
        if self.is_prepared && !self.session.window.is_paused() {
            self.after(Exit::Refused);
        }
        let mut problems = self.findings.into_problems();
        self.session.window.problems.clone_from(&problems);
        let window = &self.session.window;
        if window.is_paused() || window.pause.is_none() {
            self.session.leave();
        } else {
            problems.extend(self.session.close(Exit::Refused, None).1);
        }
        Upgraded {
            end: Exit::Refused,
            window: None,
            is_open: false,
            restored: self.restored,
            problems,
        }
    }

    fn close(mut self) -> Upgraded {
        let mut end = self.findings.end();
        if !self.session.window.is_paused() {
            self.after(end);
        }
        let mut problems = self.findings.into_problems();
        let record = &mut self.session.window.problems;
        // The last probe reports those that are still silent.
        record.retain(|problem| !network::is_silent_before(problem));
        record.extend_from_slice(&problems);
        let is_open = self.session.window.is_paused();
        let window = if is_open {
            // kubelet does not run: the window stays open for the next process.
            self.session.save_if_possible();
            self.session.leave()
        } else {
            let (window, failed) = self.session.close(end, None);
            if end == Exit::Done && failed.iter().any(Problem::is_error) {
                // All is well but the window, which is still open.
                end = Exit::Failed;
            }
            problems.extend(failed);
            window
        };
        Upgraded {
            end,
            window: Some(window),
            is_open,
            restored: self.restored,
            problems,
        }
    }
}
