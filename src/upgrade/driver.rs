//! The driver of a window: runs the phases in their order, logs and records what came of each, and decides what follows from it.

mod last_look;
mod probe;
mod reload;
pub(crate) mod unplanned;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::context::Context;
use crate::inventory::drivers;
use crate::kubelet::resume::resume;
use crate::model::Exit;
use crate::model::problem::{CommandCause, KubeletCause};
use crate::model::window::PhaseName;
use crate::plan::drivers::modules::Modules;
use crate::refusal::Refusal;
use crate::restore::{Restored, answering};
use crate::upgrade::baseline;
use crate::upgrade::ledger::{Area, Ledger, Upgraded};
use crate::upgrade::phases::check::Preflight;
use crate::upgrade::phases::late::{Late, Named};
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::phases::rollback::NetworkAfter;
use crate::upgrade::phases::{check, command, late, pause, rollback, snapshot};
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::unselected::Unselected;
use crate::window::background::Background;
use crate::window::event::{Event, PodCount};

/// The window of `netfix upgrade`.
pub(crate) fn drive(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Upgraded, Refusal> {
    let ledger = Ledger::open(context, request.echo, request.log_limit)?;
    Ok(Driver::new(request, context, ledger).run())
}

/// The driver of one window.
struct Driver<'a> {
    request: &'a UpgradeRequest<'a>,
    context: &'a mut Context,
    ledger: Ledger,
    /// What all restores together did.
    restored: Restored,
    /// The pods at the snapshot.
    named: Named,
    /// Warns while kubelet is paused for too long.
    budget: Option<Background>,
    /// How long to watch at the end.
    settle: Duration,
    /// The modules that were loaded before COMMAND.
    modules: Option<Modules>,
}

impl<'a> Driver<'a> {
    fn new(request: &'a UpgradeRequest<'a>, context: &'a mut Context, ledger: Ledger) -> Self {
        Self {
            settle: request.settle,
            request,
            context,
            ledger,
            restored: Restored::default(),
            named: Named::default(),
            budget: None,
            modules: None,
        }
    }
}

impl Driver<'_> {
    /// The phases, in their order. From the pause on, every path leads through the resume.
    fn run(mut self) -> Upgraded {
        let was_paused = self.ledger.session.window().is_paused();
        let mut is_prepared = false;
        let prepared = catch_unwind(AssertUnwindSafe(|| self.prepare(&mut is_prepared)));
        let prepared = prepared.unwrap_or_else(|_| Err(Ledger::panicked().into()));
        let Ok(mut network) = prepared.map_err(|refusal| {
            // Start kubelet again, and run --after where --before may have run.
            self.refuse(refusal, was_paused, is_prepared);
        }) else {
            return self.ledger.refused(self.restored);
        };
        let worked = catch_unwind(AssertUnwindSafe(|| {
            // Run COMMAND, which reloads the driver.
            self.command(&mut network);
            // Wait for the NIC, restore the pods and probe the gateways.
            let is_interrupted = self.bring_back(&mut network);
            // Bring the former driver back, if the NIC or too many pods are lost; then restore and probe again.
            if self.roll_back(&mut network, is_interrupted) {
                self.bring_back(&mut network);
            }
            // Check that the driver runs in the wanted version, and that its modules are there.
            self.check_drivers();
            // Keep kubelet paused for a repair (--keep-paused), if pods are not restored.
            self.repair(&mut network);
        }));
        let panic = worked.err().map(|_| Ledger::panicked());
        self.ledger.problems.add(Area::Rebuild, panic);
        // Start kubelet.
        self.resume();
        // Watch for losses and rebuilt pods, and observe everything a last time.
        self.check_rebuilds(&mut network);
        // Observe the pods at risk that are not selected.
        self.observe_unselected(&mut network);
        let lost = network.unselected.lost();
        self.ledger.problems.add(Area::Rebuild, lost);
        // Run --after, and close the window.
        self.conclude(&network);
        let end = self.ledger.problems.end();
        self.after(end, Some(&network.baseline));
        self.ledger.closed(end, self.restored)
    }

    /// Everything before COMMAND; notes when only `--before` and the pause are left.
    fn prepare(&mut self, is_prepared: &mut bool) -> Result<PodNetwork, Refusal> {
        let has_begun = self.ledger.session.window().has_begun();
        let mut network = if has_begun {
            // Read the snapshot of an interrupted window: COMMAND has begun, and the network may not be what it was.
            self.recover()?
        } else {
            // Check that every pod could be restored, and save everything that a restore needs.
            let found = self.check()?;
            self.snapshot(found)?
        };
        let signals = &self.ledger.signals;
        signals.stop_if_interrupted(CommandCause::InterruptedUnchanged)?;
        *is_prepared = true;
        if !has_begun {
            // Run --before, which may drain a load balancer.
            self.before()?;
            // Probe once more what did not answer: it may have been silent for a moment only.
            self.probe_silent(&mut network);
        }
        // Pause kubelet: with kubelet at work COMMAND would cost pods.
        self.pause()?;
        if !has_begun {
            // Save the pods that got their network since the snapshot.
            self.save_late(&mut network)?;
        }
        let signals = &self.ledger.signals;
        signals.stop_if_interrupted(CommandCause::InterruptedBefore)?;
        Ok(network)
    }

    fn recover(&mut self) -> Result<PodNetwork, Refusal> {
        let session = &mut self.ledger.session;
        session.begin(PhaseName::Check, &Event::ResumingWindow);
        let (window, store) = (session.window(), &self.context.store);
        let recovered = baseline::recover(window, &self.request.selection, store);
        session.end(recovered.is_ok());
        let (baseline, left_out) = recovered?;
        let unselected = Unselected::of_window(session.window(), &baseline.stored);
        Ok(PodNetwork::new(baseline, left_out, unselected))
    }

    fn check(&mut self) -> Result<Preflight, Refusal> {
        let session = &mut self.ledger.session;
        session.begin(PhaseName::Check, &Event::Checking);
        let found = check::run(self.request, self.context)?;
        if let Some(figures) = found.rehearsal {
            session.note_rehearsal(figures);
        }
        session.end(found.blockers.may_pass(self.request));
        session.note_unselected(found.unselected.recorded());
        Ok(found)
    }

    fn snapshot(&mut self, mut found: Preflight) -> Result<PodNetwork, Refusal> {
        let (request, session) = (self.request, &mut self.ledger.session);
        session.begin(PhaseName::Snapshot, &Event::TakingSnapshot);
        if session.guard.is_none() {
            return Err(Ledger::panicked().into());
        }
        let proxies = snapshot::find_proxies(&found.captured, &found.inventory.host, request);
        let answering = answering::reported(proxies.as_deref().unwrap_or_default());
        self.ledger.problems.add(Area::Preflight, answering);
        found.captured.proxies = proxies;
        let (guard, progress) = (session.guard.as_ref(), self.context.progress.as_mut());
        let written = snapshot::write(found.captured, guard, request, &found.left_out, progress);
        self.restored = written.restored;
        session.note_pods(written.pods);
        found.blockers.add_of_snapshot(written.problems);
        let pods = found.inventory.pods.iter();
        let named = pods
            .map(|pod| (pod.identity.clone(), pod.info.clone()))
            .collect();
        let pods = &session.window().pods;
        let guard = session.guard.as_ref();
        let before = snapshot::observe(found.inventory, pods, guard, request, self.context)?;
        self.ledger.problems.add(Area::Preflight, before.problems);
        let silent = &before.baseline.silent;
        let is_selection = !request.selection.is_everything();
        session.note_before(&before.sandboxes, before.nics, silent, is_selection);
        let lost = found.blockers.lost().filter(|_| request.restores_lost());
        let accepted = found.blockers.gate(request);
        if let (Some(lost), Ok(_)) = (lost, &accepted) {
            session.log(&Event::RestoresLost(lost));
        }
        session.end(accepted.is_ok());
        self.ledger.problems.add(Area::Preflight, accepted?);
        self.named = named;
        Ok(PodNetwork::new(
            before.baseline,
            found.left_out,
            found.unselected,
        ))
    }

    fn before(&mut self) -> Result<(), Refusal> {
        let Ledger {
            session, signals, ..
        } = &self.ledger;
        command::before(self.request.before, session, signals)?;
        Ok(signals.stop_if_interrupted(CommandCause::InterruptedUnchanged)?)
    }

    fn pause(&mut self) -> Result<(), Refusal> {
        pause::run(&mut self.ledger, self.request)?;
        self.budget = pause::watch(&self.ledger.session);
        let cause = KubeletCause::StartedBeforeCommand;
        Ok(pause::verify(&self.ledger, cause)?)
    }

    fn save_late(&mut self, network: &mut PodNetwork) -> Result<(), Refusal> {
        let (request, session) = (self.request, &mut self.ledger.session);
        let guard = session.guard.as_ref();
        let Late {
            pods: late,
            gone,
            problems,
        } = late::save(network, &self.named, guard, request, self.context)?;
        self.ledger.problems.add(Area::Preflight, problems);
        session.note_gone_early(&gone);
        if !late.is_empty() {
            let pods = PodCount {
                pods: late.len(),
                is_selection: !request.selection.is_everything(),
            };
            session.log(&Event::LateSnapshot { pods });
            let mut pods = session.window().pods.clone();
            pods.retain(|pod| late.iter().all(|late| late.info.id != pod.info.id));
            pods.extend(late);
            pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
            session.note_pods(pods);
            session.save_if_possible();
        }
        Ok(())
    }

    fn command(&mut self, network: &mut PodNetwork) {
        if self.ledger.session.window().rollback.is_some() {
            // The former driver is back, or a person has to bring it back: COMMAND would take it away again.
            let problem = rollback::already_rolled_back();
            self.ledger.problems.add(Area::Command, [problem]);
            return;
        }
        self.modules = drivers::modules();
        let argv = self.request.command;
        let limit = self.ledger.time_limit(self.request, PhaseName::Command);
        let event = Event::Running {
            argv: argv.to_vec(),
            limit: limit.limit,
        };
        // The kernel deletes the masqueraded ones with their link.
        let unread = match command::translated(self.request, &network.baseline) {
            Ok(translated) => network.translated.insert(translated).unread().collect(),
            Err(refusal) => refusal.demoted(),
        };
        self.ledger.problems.add(Area::Command, unread);
        let baseline = &network.baseline;
        self.ledger
            .carry_out(PhaseName::Command, &event, argv, limit, baseline);
    }

    /// The pods' network after COMMAND or the rollback; returns whether a signal ended the wait for the NIC.
    fn bring_back(&mut self, network: &mut PodNetwork) -> bool {
        let is_interrupted = self.restore(network, self.request.wait);
        self.check_pause();
        self.observe_unselected(network);
        self.verify(network);
        is_interrupted
    }

    /// Restores the pods; returns whether a signal ended the wait for the NIC.
    fn restore(&mut self, network: &mut PodNetwork, wait: Duration) -> bool {
        self.ledger
            .session
            .begin(PhaseName::Restore, &Event::Restoring);
        let restored = network.restore(wait, self.request, &self.ledger, self.context);
        self.ledger.session.end(restored.is_complete());
        self.take(restored, network);
        self.ledger.acknowledge(CommandCause::InterruptedRestore)
    }

    fn take(&mut self, mut restored: Restored, network: &mut PodNetwork) {
        network.after = NetworkAfter::of(&mut restored);
        self.ledger.take_restore(&mut restored);
        self.restored = mem::take(&mut self.restored).then(restored);
    }

    /// The pods' network comes first, then what has started kubelet in the meantime. After a rollback it is checked again.
    fn check_pause(&mut self) {
        if self.ledger.problems.of(Area::Kubelet).next().is_none() {
            let cause = KubeletCause::StartedBeforeRestore;
            let verified = pause::verify(&self.ledger, cause);
            self.ledger.problems.add(Area::Kubelet, verified.err());
        }
    }

    fn verify(&mut self, network: &mut PodNetwork) {
        self.ledger
            .session
            .begin(PhaseName::Verify, &Event::Verifying);
        let is_well = self.probe(network);
        let stays = self.stays(network);
        self.ledger.session.end(is_well && stays);
    }

    /// Runs the rollback where it is needed, at most once in a window; returns whether it ran. A wait that a signal ended
    /// does not show that the NIC stays away.
    fn roll_back(&mut self, network: &mut PodNetwork, is_interrupted: bool) -> bool {
        let window = self.ledger.session.window();
        let Some((rollback, problem)) = rollback::needed(self.request, window, &network.after)
        else {
            return false;
        };
        let argv = rollback.run.argv.clone();
        if is_interrupted || self.ledger.signals.interrupted() {
            let not_run = rollback::not_run(self.request);
            self.ledger.report(Area::Command, not_run);
            return false;
        }
        // On disk before it starts: another process must not run it again.
        self.ledger.session.note_rollback(rollback.clone());
        let limit = self.ledger.time_limit(self.request, PhaseName::Rollback);
        let event = Event::RollingBack {
            rollback,
            limit: limit.limit,
        };
        self.ledger.problems.add(Area::Rollback, [problem]);
        let baseline = &network.baseline;
        self.ledger
            .carry_out(PhaseName::Rollback, &event, &argv, limit, baseline);
        true
    }

    /// Logs the pods that are not restored, and keeps kubelet paused for a repair where that is wanted.
    fn repair(&mut self, network: &mut PodNetwork) {
        let is_held = self.request.keep_paused && self.ledger.session.window().is_paused();
        if !self.ledger.log_broken(&self.restored, is_held) || !is_held {
            return;
        }
        self.ledger
            .session
            .begin(PhaseName::Repair, &Event::HeldForRepair);
        let waited = pause::hold(&mut self.ledger, &self.context.store);
        self.ledger.session.end(waited.is_ok());
        match waited {
            Ok(Some(resumed)) => self.ledger.session.take_resume_of(resumed),
            Ok(None) => {}
            Err(problem) => self.ledger.problems.add(Area::Kubelet, [problem]),
        }
        self.ledger.acknowledge(CommandCause::InterruptedRepair);
        self.restore(network, Duration::ZERO);
        self.verify(network);
    }

    fn resume(&mut self) {
        if let (Some(bus), true) = (&self.ledger.bus, self.ledger.session.window().is_paused()) {
            let left = resume(&mut self.ledger.session, bus).unwrap_or_else(Some);
            self.ledger.problems.add(Area::Kubelet, left);
        }
        self.budget = None;
    }

    /// Runs `--after`, unless kubelet is still paused.
    fn after(&mut self, end: Exit, baseline: Option<&baseline::Baseline>) {
        let (session, signals) = (&self.ledger.session, &self.ledger.signals);
        let hook = self.request.after;
        let hook = hook.filter(|_| !session.window().is_paused());
        if let Some(problem) = command::after(hook, end, baseline, (session, signals)) {
            self.ledger.report(Area::Command, problem);
        }
    }

    /// Before COMMAND a unit that was paused here runs again; one that was found paused stays paused.
    fn refuse(&mut self, refusal: Refusal, was_paused: bool, is_prepared: bool) {
        self.ledger.problems.add(Area::Preflight, refusal.problems);
        if !was_paused {
            self.resume();
        }
        if is_prepared {
            self.after(Exit::Refused, None);
        }
    }
}
