//! The driver of a window: runs the phases in their order, logs and records what came of each, and decides what follows from it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::kubelet::resume::resume;
use crate::kubelet::unit;
use crate::model::problem::{Cause, CommandCause, KubeletCause, RollbackCause, WindowCause};
use crate::model::window::{PhaseName, command_line};
use crate::model::{Exit, Problem, Severity};
use crate::refusal::Refusal;
use crate::restore::Restored;
use crate::restore::settle::{LossWatch, Settle};
use crate::systemd::Bus;
use crate::upgrade::baseline;
use crate::upgrade::baseline::Baseline;
use crate::upgrade::condition::other_versions;
use crate::upgrade::ending;
use crate::upgrade::ending::Upgraded;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::open;
use crate::upgrade::open::OpenedWindow;
use crate::upgrade::phases::check::Preflight;
use crate::upgrade::phases::command::Progress;
use crate::upgrade::phases::rollback::NetworkAfter;
use crate::upgrade::phases::verify::Probe;
use crate::upgrade::phases::{
    check, command, hooks, pause, rebuild_check, repair, restore, rollback, snapshot, verify,
};
use crate::upgrade::problems::{Area, WindowProblems};
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals::Signals;
use crate::window::background::Background;
use crate::window::event::{Event, Reached};
use crate::window::session::WindowSession;

/// The window of `netfix upgrade`.
pub(crate) fn run(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Upgraded, Refusal> {
    let OpenedWindow {
        signals,
        bus,
        session,
    } = open::run(context, request.echo, request.log_limit)?;
    let driver = Driver {
        request,
        context,
        bus,
        signals,
        session,
        problems: WindowProblems::default(),
        restored: Restored::default(),
        network: NetworkAfter::default(),
        losses: LossWatch::start(&[]),
        left_out: LeftOut::default(),
        budget: None,
    };
    Ok(driver.run())
}

/// The driver, and what the phases have found so far.
struct Driver<'a> {
    request: &'a UpgradeRequest<'a>,
    context: &'a mut Context,
    bus: Option<Bus>,
    signals: Signals,
    session: WindowSession,
    problems: WindowProblems,
    /// What all restores together did.
    restored: Restored,
    /// The network after the last restore.
    network: NetworkAfter,
    losses: LossWatch,
    left_out: LeftOut,
    /// Warns while kubelet is paused for too long.
    budget: Option<Background>,
}

impl Driver<'_> {
    /// The phases, in their order. From the pause on, every path leads through the resume.
    fn run(mut self) -> Upgraded {
        let was_paused = self.session.window().is_paused();
        let has_begun = self.session.window().has_begun();
        let mut is_prepared = false;
        let prepared = catch_unwind(AssertUnwindSafe(|| {
            let baseline = if has_begun {
                // Read the snapshot of an interrupted window: COMMAND has begun, and the network may not be what it was.
                self.recover()?
            } else {
                // Check that every pod could be restored, and save everything that a restore needs.
                let found = self.check()?;
                self.snapshot(found)?
            };
            self.stop_if_interrupted(CommandCause::InterruptedUnchanged)?;
            is_prepared = true;
            if !has_begun {
                // Run --before, which may drain a load balancer.
                hooks::before(self.request.before, &self.session, &self.signals)?;
                self.stop_if_interrupted(CommandCause::InterruptedUnchanged)?;
            }
            // Pause kubelet: with kubelet at work COMMAND would cost pods.
            self.pause()?;
            self.stop_if_interrupted(CommandCause::InterruptedBefore)?;
            Ok(baseline)
        }));
        let baseline = match prepared.unwrap_or_else(|_| Err(panicked().into())) {
            Ok(baseline) => baseline,
            Err(refusal) => {
                self.refuse(refusal, was_paused, is_prepared);
                return ending::refused(self.session, self.problems, self.restored);
            }
        };
        let worked = catch_unwind(AssertUnwindSafe(|| {
            // Run COMMAND, which reloads the driver.
            self.command(&baseline);
            // Wait for the NIC, restore the pods and probe the gateways.
            let is_interrupted = self.bring_back(&baseline);
            // Bring the former driver back, if the NIC or too many pods are lost; then restore and probe again.
            if self.roll_back(&baseline, is_interrupted) {
                self.bring_back(&baseline);
            }
            // Check that the driver runs in the wanted version.
            self.check_versions();
            // Keep kubelet paused for a repair (--keep-paused), if pods are not restored.
            self.repair(&baseline);
        }));
        if worked.is_err() {
            self.problems.add(Area::Rebuild, [panicked()]);
        }
        // Start kubelet.
        self.resume();
        // Watch for losses and rebuilt pods, and observe everything a last time.
        self.check_rebuilds(&baseline);
        // Run --after, and close the window.
        let end = self.problems.end();
        self.after(end);
        ending::closed(self.session, end, self.problems, self.restored)
    }

    fn recover(&mut self) -> Result<Baseline, Refusal> {
        self.session.begin(PhaseName::Check, &Event::ResumingWindow);
        let window = self.session.window();
        let baseline = baseline::recover(window, &self.request.selection, &self.context.store);
        self.session.end(baseline.is_ok());
        let baseline = baseline?;
        self.left_out = LeftOut::of_window(self.session.window(), &baseline.stored);
        Ok(baseline)
    }

    fn check(&mut self) -> Result<Preflight, Refusal> {
        self.session.begin(PhaseName::Check, &Event::Checking);
        let found = check::run(self.request, self.context)?;
        self.session
            .end(found.blockers.may_pass(self.request.force));
        Ok(found)
    }

    fn snapshot(&mut self, found: Preflight) -> Result<Baseline, Refusal> {
        let Preflight {
            mut blockers,
            left_out,
            captured,
            inventory,
        } = found;
        let (request, progress) = (self.request, self.context.progress.as_mut());
        self.session
            .begin(PhaseName::Snapshot, &Event::TakingSnapshot);
        let Some(guard) = self.session.guard() else {
            return Err(panicked().into());
        };
        let written = snapshot::write(captured, Some(guard), request, &left_out, progress);
        (self.restored, self.left_out) = (written.restored, left_out);
        self.session.note_pods(written.pods);
        blockers.add_of_snapshot(written.problems);
        let pods = &self.session.window().pods;
        let before = snapshot::observe(inventory, pods, request, self.context)?;
        let silent = &before.baseline.silent;
        self.session
            .note_before(&before.sandboxes, before.nics, silent);
        let pods = self.session.window().pods.len();
        self.session.log(&Event::SnapshotTaken { pods });
        let count = silent.len();
        if count > 0 {
            self.session.log(&Event::SilentGateways { count });
        }
        let accepted = blockers.gate(request.force);
        self.session.end(accepted.is_ok());
        self.problems.add(Area::Preflight, accepted?);
        Ok(before.baseline)
    }

    fn pause(&mut self) -> Result<(), Refusal> {
        let (session, bus) = (&mut self.session, self.bus.as_ref());
        let deadline = self.request.deadline;
        if !pause::is_still_paused(session, bus, deadline)? {
            // An interrupted netfix may have died while it stopped or started its unit.
            let window = Some(session.window());
            let (unit, note) = unit::find_for_upgrade(bus, self.request.pause, window)?;
            self.problems.add(Area::Preflight, note);
            pause::run(session, bus, unit.as_deref(), deadline)?;
        }
        self.budget = pause::watch(session);
        Ok(pause::verify(
            session,
            bus,
            KubeletCause::StartedBeforeCommand,
        )?)
    }

    fn command(&mut self, baseline: &Baseline) {
        if self.session.window().rollback.is_some() {
            // The former driver is back, or a person has to bring it back: COMMAND would take it away again.
            let problem = rollback::already_rolled_back();
            self.problems.add(Area::Command, [problem]);
            return;
        }
        let argv = self.request.command;
        let event = Event::Running {
            argv: argv.to_vec(),
        };
        let (failure, elapsed) = self.carry_out(PhaseName::Command, &event, argv, baseline);
        let failure = failure.map(|cause| cause.error(command_line(argv)));
        self.note_end(failure, Event::CommandSucceeded { elapsed });
        self.acknowledge(CommandCause::Interrupted);
    }

    /// Runs COMMAND or the rollback as a phase; returns why it failed, and how long it took.
    fn carry_out(
        &mut self,
        phase: PhaseName,
        event: &Event,
        argv: &[String],
        baseline: &Baseline,
    ) -> (Option<CommandCause>, Duration) {
        let begin = Instant::now();
        let session = &mut self.session;
        session.begin(phase, event);
        let (id, log) = (session.window().id.clone(), session.log_file().for_thread());
        // The next process must not run it beside this one, and must know a loss that this one saw before it was killed.
        let (run, lost) = command::run(argv, &id, &log, &self.signals, &mut |progress| {
            match progress {
                Progress::Started(run) => session.note_run(run.clone()),
                Progress::Lost(lost) => session.note_losses(lost, &baseline.stored),
            }
            session.save_if_possible();
        });
        let failure = command::failure(&run);
        session.note_run(run);
        session.end(failure.is_none());
        session.note_losses(&lost, &baseline.stored);
        (failure, begin.elapsed())
    }

    /// Logs how COMMAND or the rollback ended.
    fn note_end(&mut self, failure: Option<Problem>, success: Event) {
        let failed = failure.clone().map(Event::CommandFailed);
        self.session.log(&failed.unwrap_or(success));
        self.problems.add(Area::Command, failure);
    }

    /// The pods' network after COMMAND or the rollback; returns whether a signal ended the wait for the NIC.
    fn bring_back(&mut self, baseline: &Baseline) -> bool {
        let is_interrupted = self.restore(baseline, self.request.wait);
        self.check_pause();
        self.verify(baseline);
        is_interrupted
    }

    /// Restores the pods; returns whether a signal ended the wait for the NIC.
    fn restore(&mut self, baseline: &Baseline, wait: Duration) -> bool {
        self.session.begin(PhaseName::Restore, &Event::Restoring);
        let mut restored = self.restore_once(baseline, wait);
        if !restored.is_complete() && !self.signals.interrupted() {
            // The failure may pass, and after a window that ends like this the next snapshot has the loss.
            self.session.log(&Event::RestoringAgain);
            restored = restored.then(self.restore_once(baseline, Duration::ZERO));
        }
        self.losses = LossWatch::start(&restored.pods);
        self.session.end(restored.is_complete());
        self.take(restored);
        self.acknowledge(CommandCause::InterruptedRestore)
    }

    fn restore_once(&mut self, baseline: &Baseline, wait: Duration) -> Restored {
        let mut restored = restore::run(baseline, self.request, wait, &self.signals, self.context);
        self.left_out.leave(&mut restored);
        restored
    }

    /// Records what a restore did and how it left everything.
    fn take(&mut self, mut restored: Restored) {
        self.session.note_restored(&restored);
        self.log_all(&restore::events(&restored));
        self.network = NetworkAfter::of(&restored);
        self.problems.forget_network();
        let problems = std::mem::take(&mut restored.problems);
        self.problems.add(Area::Network, problems);
        self.restored = std::mem::take(&mut self.restored).then(restored);
    }

    /// The pods' network comes first, then what has started kubelet in the meantime. After a rollback it is checked again.
    fn check_pause(&mut self) {
        if self.problems.of(Area::Kubelet).next().is_none() {
            let cause = KubeletCause::StartedBeforeRestore;
            let verified = pause::verify(&self.session, self.bus.as_ref(), cause);
            self.problems.add(Area::Kubelet, verified.err());
        }
    }

    fn log_all(&self, events: &[Event]) {
        for event in events {
            self.session.log(event);
        }
    }

    fn verify(&mut self, baseline: &Baseline) {
        self.session.begin(PhaseName::Verify, &Event::Verifying);
        let is_well = self.probe(baseline);
        self.session.end(is_well);
    }

    fn probe(&mut self, baseline: &Baseline) -> bool {
        let pods = &self.session.window().pods;
        let Probe {
            verified,
            problems,
            nics,
        } = verify::after(pods, baseline, self.request, self.context);
        if let Some(verified) = verified {
            self.session.log(&Event::Verified(Reached::of(&verified)));
            self.session.note_verified(&verified);
            self.network.unanswered = verified.unanswered;
        }
        let is_well = !problems.iter().any(Problem::is_error);
        self.problems.add(Area::Network, problems);
        self.session.note_nics_after(nics);
        is_well
    }

    /// Runs the rollback where it is needed, at most once in a window; returns whether it ran. A wait that a signal ended
    /// does not show that the NIC stays away.
    fn roll_back(&mut self, baseline: &Baseline, is_interrupted: bool) -> bool {
        let window = self.session.window();
        let Some(request) = self.request.rollback else {
            return false;
        };
        let Some(rollback) = rollback::needed(self.request, window, &self.network) else {
            return false;
        };
        if is_interrupted || self.signals.interrupted() {
            let not_run = RollbackCause::NotRun.warning(request.command);
            self.session.log(&Event::Failed(not_run.clone()));
            self.problems.add(Area::Command, [not_run]);
            return false;
        }
        let problem = rollback::problem(&rollback, self.request.wait, request.max_lost);
        let argv = rollback.run.argv.clone();
        // On disk before it starts: another process must not run it again.
        self.session.note_rollback(rollback.clone());
        let event = Event::RollingBack(rollback);
        self.problems.add(Area::Command, [problem]);
        let (failure, elapsed) = self.carry_out(PhaseName::Rollback, &event, &argv, baseline);
        let failure =
            failure.map(|cause| RollbackCause::Failed { cause }.error(command_line(&argv)));
        self.note_end(failure, Event::RolledBack { elapsed });
        self.acknowledge(RollbackCause::Interrupted);
        true
    }

    fn check_versions(&mut self) {
        if self.session.window().rollback.is_none() {
            let other = other_versions(self.request.drivers);
            self.problems.add(Area::Command, other);
        }
    }

    /// Logs the pods that are not restored, and keeps kubelet paused for a repair where that is wanted.
    fn repair(&mut self, baseline: &Baseline) {
        let unrestored = restore::unrestored(&self.restored);
        self.log_all(&unrestored);
        let is_paused = self.session.window().is_paused();
        if unrestored.is_empty() || !self.request.keep_paused || !is_paused {
            return;
        }
        self.session.begin(PhaseName::Repair, &Event::HeldForRepair);
        let waited = repair::run(&mut self.session, &self.context.store, &self.signals);
        self.session.end(waited.is_ok());
        match waited {
            Ok(Some(resumed)) => self.session.take_resume_of(resumed),
            Ok(None) => {}
            Err(problem) => self.problems.add(Area::Kubelet, [problem]),
        }
        self.acknowledge(CommandCause::InterruptedRepair);
        self.restore(baseline, Duration::ZERO);
        self.verify(baseline);
    }

    fn resume(&mut self) {
        if let (Some(bus), true) = (&self.bus, self.session.window().is_paused()) {
            let left = resume(&mut self.session, bus).unwrap_or_else(Some);
            self.problems.add(Area::Kubelet, left);
        }
        self.budget = None;
    }

    /// Watches until `--settle` is over, restores what is lost meanwhile, and observes everything a last time.
    fn check_rebuilds(&mut self, baseline: &Baseline) {
        if self.session.window().is_paused() {
            return;
        }
        let settle = self.request.settle;
        self.session
            .begin(PhaseName::RebuildCheck, &Event::Watching { settle });
        self.watch(baseline);
        let pods = &self.session.window().pods;
        let (after, unreachable) = rebuild_check::run(pods, baseline, self.request, &self.signals);
        let rebuilt = self.session.note_rebuilds(&after, &baseline.stored);
        let pods = &self.session.window().pods;
        let same = pods.iter().filter(|pod| pod.rebuilt == Some(false)).count();
        let pods = pods.len();
        self.session.log(&Event::RebuildChecked { same, pods });
        self.observe_again(baseline, Duration::ZERO);
        self.session
            .end(same == pods && !self.signals.interrupted());
        self.problems.add(Area::Rebuild, unreachable);
        self.problems.add(Area::Rebuild, rebuilt);
        self.acknowledge(CommandCause::InterruptedRebuildCheck);
    }

    /// Something may make the parents again after the restore: a network manager, or a driver that resets twice.
    fn watch(&mut self, baseline: &Baseline) {
        let mut time = Settle::begin(self.request.settle, self.request.manager_grace);
        loop {
            let signals = &self.signals;
            if !self.losses.has_losses(&mut time, &|| signals.interrupted()) {
                return;
            }
            if self.observe_again(baseline, self.request.wait) {
                time.note_loss();
            }
        }
    }

    /// Restores what is lost, if anything is, and probes the gateways; returns whether something was.
    fn observe_again(&mut self, baseline: &Baseline, wait: Duration) -> bool {
        self.session.log(&Event::LookingAgain);
        let mut again = self.restore_once(baseline, wait);
        restore::retain(&mut again, &self.session.window().pods, &self.left_out);
        let lost_again = again.lost_again_after(&self.restored, false);
        if let Some(problem) = &lost_again {
            self.session.log(&Event::Failed(problem.clone()));
        }
        let was_lost = lost_again.is_some();
        self.problems.add(Area::Rebuild, lost_again);
        self.take(again);
        self.probe(baseline);
        was_lost
    }

    fn stop_if_interrupted(&self, cause: CommandCause) -> Result<(), Refusal> {
        if self.signals.interrupted() {
            return Err(cause.error("signal").into());
        }
        Ok(())
    }

    /// An interruption ends one phase; the next ones run. Returns whether there was one.
    fn acknowledge(&mut self, cause: impl Into<Cause>) -> bool {
        let is_interrupted = self.signals.acknowledge();
        let problem = is_interrupted.then(|| Problem::new(Severity::Error, "signal", cause));
        self.problems.add(Area::Command, problem);
        is_interrupted
    }

    /// Runs `--after`, unless kubelet is still paused.
    fn after(&mut self, end: Exit) {
        if !self.session.window().is_paused() {
            let hook = self.request.after;
            let failure = hooks::after(hook, end, &self.session, &self.signals);
            self.problems.add(Area::Command, failure);
        }
    }

    /// Before COMMAND a unit that was paused here runs again; one that was found paused stays paused.
    fn refuse(&mut self, refusal: Refusal, was_paused: bool, is_prepared: bool) {
        self.problems.add(Area::Preflight, refusal.problems);
        if !was_paused {
            self.resume();
        }
        if is_prepared {
            self.after(Exit::Refused);
        }
    }
}

fn panicked() -> Problem {
    WindowCause::Panicked.error("netfix")
}
