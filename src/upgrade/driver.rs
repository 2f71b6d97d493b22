//! The driver of a window: runs a phase, writes its facts into the record, and logs what came of it.

use std::time::{Duration, Instant};

use crate::context::Context;
use crate::inventory::Inventory;
use crate::model::problem::{Cause, CommandCause, WindowCause};
use crate::model::window::{PhaseName, Run, command_line};
use crate::model::{Problem, Severity, Window};
use crate::refusal::Refusal;
use crate::restore::settle::{LossWatch, Settle};
use crate::restore::{Permit, RestoreState, Restored};
use crate::systemd::Bus;
use crate::upgrade::Request;
use crate::upgrade::command;
use crate::upgrade::command::Started;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::network;
use crate::upgrade::preflight;
use crate::upgrade::preflight::{Baseline, Seen};
use crate::upgrade::{rebuild_watch, record};
use crate::window::event::Event;
use crate::window::findings::{Area, Findings};
use crate::window::session::WindowSession;
use crate::window::signals::Signals;
use crate::window::watch;
use crate::window::watch::{Losses, Watch};

/// The driver: the window's record, and what the phases have found.
pub(crate) struct Driver<'a> {
    pub request: &'a Request<'a>,
    pub context: &'a mut Context,
    pub bus: Option<Bus>,
    pub signals: Signals,
    pub session: WindowSession,
    pub findings: Findings,
    pub restored: Restored,
    pub losses: LossWatch,
    pub left_out: LeftOut,
    pub budget: Option<Watch>,
    /// Whether the check and the snapshot have passed.
    pub is_prepared: bool,
}

/// The phases, in their order.
impl Driver<'_> {
    pub(crate) fn recover(&mut self) -> Result<Baseline, Refusal> {
        self.session.begin(PhaseName::Check, &Event::ResumingWindow);
        let baseline = preflight::recover(&self.session.window, self.request, self.context);
        self.session.end(baseline.is_ok());
        let baseline = baseline?;
        self.left_out = LeftOut::of_window(&self.session.window.pods, &baseline.stored);
        Ok(baseline)
    }

    pub(crate) fn check_and_snapshot(&mut self) -> Result<Baseline, Refusal> {
        let Self {
            request,
            context,
            session,
            ..
        } = self;
        session.begin(PhaseName::Check, &Event::Checking);
        let Seen {
            mut blockers,
            left_out,
            captured,
            inventory,
        } = preflight::look(request, context)?;
        session.end(preflight::gate(blockers.clone(), request.force).is_ok());

        session.begin(PhaseName::Snapshot, &Event::TakingSnapshot);
        let Some(guard) = &session.guard else {
            return Err(panicked().into());
        };
        let progress = context.progress.as_mut();
        let (restored, pods, problems) =
            preflight::write_snapshot(captured, Some(guard), request, &left_out, progress);
        self.restored = restored;
        blockers.extend(preflight::others_than(&blockers, problems));
        session.window.pods = pods;
        self.left_out = left_out;
        let mut baseline = preflight::read_back(request, context)?;
        let pods = &mut session.window.pods;
        baseline.runtimes = preflight::note_fingerprints(pods, request)?;
        session.window.nics = record::nics_before(&baseline);
        // Without an answer every silent gateway counts against the window.
        if let Ok(mut verified) = network::verify(inventory, &baseline, request, context) {
            verified.retain(&session.window.pods);
            baseline.silent = verified.silent();
            session.window.problems.extend_from_slice(&baseline.silent);
        }
        let pods = session.window.pods.len();
        session.log(&Event::SnapshotTaken { pods });
        let count = baseline.silent.len();
        if count > 0 {
            session.log(&Event::SilentGateways { count });
        }
        let accepted = preflight::gate(blockers, request.force);
        session.end(accepted.is_ok());
        self.findings.add(Area::Preflight, accepted?);
        Ok(baseline)
    }

    pub(crate) fn command(&mut self, baseline: &Baseline) {
        let argv = self.request.command;
        let begin = Instant::now();
        let event = Event::Running {
            argv: argv.to_vec(),
        };
        self.session.begin(PhaseName::Command, &event);
        let failure = self.carry_out(argv, baseline, |window, run| window.run = Some(run));
        let failure = failure.map(|cause| cause.error(command_line(argv)));
        let elapsed = begin.elapsed();
        self.note_end(failure, Event::CommandSucceeded { elapsed });
        self.acknowledge(CommandCause::Interrupted);
    }

    /// Logs how a command of the user ended.
    pub(crate) fn note_end(&mut self, failure: Option<Problem>, success: Event) {
        let failed = failure.clone().map(Event::CommandFailed);
        self.session.log(&failed.unwrap_or(success));
        self.findings.add(Area::Command, failure);
    }

    /// Runs a command of the user in the present phase, and ends that; `note` keeps the command in the record. Returns why
    /// it failed.
    pub(crate) fn carry_out(
        &mut self,
        argv: &[String],
        baseline: &Baseline,
        note: impl Fn(&mut Window, Run),
    ) -> Option<CommandCause> {
        let losses = watch::losses();
        let mut seen = 0;
        let started = Started::start(
            argv,
            &[("NETFIX_WINDOW", &self.session.window.id)],
            &self.session.log_file,
        );
        // The next process must not run it beside this one.
        note(&mut self.session.window, started.run.clone());
        self.session.save_if_possible();
        // The next process must know a loss that this one saw before it was killed.
        let run = started.wait(&self.signals, &mut || {
            self.session.log_file.trim();
            let lost = losses.as_ref().map(Losses::seen).unwrap_or_default();
            if lost.len() > std::mem::replace(&mut seen, lost.len()) {
                record::losses(&mut self.session.window, &lost, baseline);
                self.session.save_if_possible();
            }
            true
        });
        let lost = losses.map(Losses::end).unwrap_or_default();
        let failure = command::failure(&run);
        note(&mut self.session.window, run);
        self.session.end(failure.is_none());
        record::losses(&mut self.session.window, &lost, baseline);
        failure
    }

    /// Restores the pods; returns whether a signal ended the wait for the NIC.
    pub(crate) fn restore(&mut self, baseline: &Baseline, wait: Duration) -> bool {
        self.session.begin(PhaseName::Restore, &Event::Restoring);
        let mut restored = self.restored_once(baseline, wait);
        if !restored.is_complete() && !self.signals.interrupted() {
            // The failure may pass, and after a window that ends like this the next snapshot has the loss.
            self.session.log(&Event::RestoringAgain);
            let again = self.restored_once(baseline, Duration::ZERO);
            restored = restored.then(again);
        }
        self.losses = LossWatch::start(&restored.pods);
        self.session.end(restored.is_complete());
        self.take(restored);
        self.acknowledge(CommandCause::InterruptedRestore)
    }

    fn restored_once(&mut self, baseline: &Baseline, wait: Duration) -> Restored {
        let permit = Permit::of_window(self.session.guard.as_ref());
        let (signals, context) = (&self.signals, &mut *self.context);
        let mut restored = network::restore(baseline, self.request, wait, permit, signals, context);
        self.left_out.leave(&mut restored);
        restored
    }

    /// Takes down what a restore did and how it left everything.
    fn take(&mut self, mut restored: Restored) {
        record::restored(&mut self.session.window, &restored);
        if restored.is_unknown() {
            for problem in &restored.problems {
                self.session.log(&Event::Failed(problem.clone()));
            }
        } else {
            self.session.log(&Event::Restored {
                restored: restored.count(RestoreState::Restored),
                correct: restored.count(RestoreState::InSync),
                failed: restored.broken().count(),
            });
        }
        self.findings.forget_network();
        let problems = std::mem::take(&mut restored.problems);
        self.findings.add(Area::Network, problems);
        self.restored = std::mem::take(&mut self.restored).then(restored);
    }

    pub(crate) fn verify(&mut self, baseline: &Baseline) {
        self.session.begin(PhaseName::Verify, &Event::Verifying);
        let is_well = self.probe(baseline);
        self.session.end(is_well);
    }

    fn probe(&mut self, baseline: &Baseline) -> bool {
        let verified = Inventory::open(&self.request.selection)
            .and_then(|inventory| network::verify(inventory, baseline, self.request, self.context));
        let problems = match verified {
            Ok(mut verified) => {
                verified.retain(&self.session.window.pods);
                verified.excuse(&baseline.silent);
                let problems = std::mem::take(&mut verified.problems);
                self.session.log(&Event::Verified(verified.reached()));
                record::verified(&mut self.session.window, &verified);
                problems
            }
            Err(refusal) => refusal.problems,
        };
        let is_well = !problems.iter().any(Problem::is_error);
        self.findings.add(Area::Network, problems);
        record::nics_after(&mut self.session.window, baseline);
        is_well
    }

    /// The start of kubelet rebuilds a pod without an address: logs such pods before that; returns whether there are any.
    pub(crate) fn report_broken(&self) -> bool {
        let pods = self.restored.broken().count();
        if pods > 0 {
            self.session.log(&Event::Unrestored { pods });
        }
        for pod in self.restored.broken() {
            self.session.log(&Event::UnrestoredPod {
                title: pod.pod.info.title(),
                state: pod.state.into(),
                is_bare: pod.after.as_ref().is_none_or(Vec::is_empty),
            });
        }
        pods > 0
    }

    /// Watches until `--settle` is over, restores what is lost meanwhile, and observes everything a last time.
    pub(crate) fn check_rebuilds(&mut self, baseline: &Baseline) {
        if self.session.window.is_paused() {
            return;
        }
        let settle = self.request.settle;
        self.session
            .begin(PhaseName::RebuildCheck, &Event::Watching { settle });
        self.watch(baseline);
        let (after, unreachable) = rebuild_watch::after(
            &self.session.window.pods,
            &preflight::with_containers(&self.request.runtimes),
            &baseline.runtimes,
            (rebuild_watch::BACK_AGAIN, &|| self.signals.interrupted()),
            &self.request.selection,
        );
        let rebuilt = record::rebuilt(&mut self.session.window, &after, baseline);
        let all = &self.session.window.pods;
        let (pods, same) = (
            all.len(),
            all.iter().filter(|pod| pod.rebuilt == Some(false)),
        );
        let same = same.count();
        self.session.log(&Event::RebuildChecked { same, pods });
        self.look_again(baseline, Duration::ZERO);
        self.session
            .end(same == pods && !self.signals.interrupted());
        self.findings.add(Area::Rebuild, unreachable);
        self.findings.add(Area::Rebuild, rebuilt);
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
            if self.look_again(baseline, self.request.wait) {
                time.note_loss();
            }
        }
    }

    /// Restores what is lost, if anything is, and probes the gateways; returns whether something was.
    fn look_again(&mut self, baseline: &Baseline, wait: Duration) -> bool {
        self.session.log(&Event::LookingAgain);
        let mut again = self.restored_once(baseline, wait);
        again.retain(&self.session.window.pods, &self.left_out);
        let lost_again = again.lost_again_after(&self.restored, false);
        if let Some(problem) = &lost_again {
            self.session.log(&Event::Failed(problem.clone()));
        }
        let was_lost = lost_again.is_some();
        self.findings.add(Area::Rebuild, lost_again);
        self.take(again);
        self.probe(baseline);
        was_lost
    }

    pub(crate) fn stop_if_interrupted(&self, cause: CommandCause) -> Result<(), Refusal> {
        if self.signals.interrupted() {
            return Err(cause.error("signal").into());
        }
        Ok(())
    }

    /// An interruption ends one phase; the next ones run. Returns whether there was one.
    pub(crate) fn acknowledge(&mut self, cause: impl Into<Cause>) -> bool {
        let is_interrupted = self.signals.interrupted();
        if is_interrupted {
            self.signals.acknowledge();
            let problem = Problem::new(Severity::Error, "signal", cause);
            self.findings.add(Area::Command, [problem]);
        }
        is_interrupted
    }
}

pub(crate) fn panicked() -> Problem {
    WindowCause::Panicked.error("netfix")
}
