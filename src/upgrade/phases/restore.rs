//! The pods' network in a window: what it was, and how restores and probes left it.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use crate::context::Context;
use crate::inventory::sockets::connections::Translated;
use crate::model::problem::{Cause, MatchingCause};
use crate::model::{PodId, Severity};
use crate::progress::{Listener, Progress};
use crate::records::prepare::{RecordSource, SurveyRequest};
use crate::restore::course::Course;
use crate::restore::settle::{LossWatch, Settle};
use crate::restore::{Limits, Permit, Restored, WaitLimit, session};
use crate::upgrade::baseline::{Baseline, LeftOut};
use crate::upgrade::ledger::Ledger;
use crate::upgrade::phases::rollback::NetworkAfter;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::unselected::Unselected;
use crate::window::event::Event;
use crate::window::window_log::WindowLog;

/// The pods' network in a window.
pub(crate) struct PodNetwork {
    pub baseline: Baseline,
    pub left_out: LeftOut,
    pub unselected: Unselected,
    /// As far as a rollback depends on it.
    pub after: NetworkAfter,
    /// Since the last restore.
    losses: LossWatch,
    /// What the restores know of each other.
    pub course: Course,
    /// The connections before COMMAND that it may end.
    pub translated: Option<Translated>,
}

impl PodNetwork {
    /// Nothing was restored yet.
    pub(crate) fn new(baseline: Baseline, left_out: LeftOut, unselected: Unselected) -> Self {
        Self {
            baseline,
            left_out,
            unselected,
            after: NetworkAfter::default(),
            losses: LossWatch::start(&[]),
            course: Course::default(),
            translated: None,
        }
    }

    /// Restores what is missing, and once more where that is incomplete: the failure may pass, and after a window that ends
    /// like this the next snapshot has the loss.
    pub(crate) fn restore(
        &mut self,
        wait: Duration,
        request: &UpgradeRequest<'_>,
        ledger: &Ledger,
        context: &mut Context,
    ) -> Restored {
        self.course.is_watch = false;
        self.course.leaves_young = true;
        // Before a packet can be sent, which would make a new connection with another port.
        if let Some(translated) = self.translated.take() {
            let (restored, left) = translated.make_again();
            if restored + left > 0 {
                let event = Event::ConnectionsRestored { restored, left };
                ledger.session.log(&event);
            }
        }
        let mut restored = self.restore_once(wait, request, ledger, context);
        if !restored.is_complete() && !ledger.signals.interrupted() {
            ledger.session.log(&Event::RestoringAgain);
            let again = self.restore_once(Duration::ZERO, request, ledger, context);
            restored = restored.then(again);
        }
        self.losses = LossWatch::start(&restored.pods);
        restored
    }

    /// Restores what is lost again in the pods of the window: kubelet may just be creating others. Of these it names those that stay cut
    /// off.
    pub(crate) fn restore_again(
        &mut self,
        wait: Duration,
        request: &UpgradeRequest<'_>,
        ledger: &Ledger,
        context: &mut Context,
    ) -> Restored {
        ledger.session.log(&Event::LookingAgain);
        self.course.is_watch = true;
        self.course.leaves_young = false;
        let mut restored = self.restore_once(wait, request, ledger, context);
        let pods = &ledger.session.window().pods;
        blame_for_cut_off(&mut restored, ledger);
        let cut_off = restored.young_cut_off();
        let is_known = |id: &PodId| {
            cut_off.contains(id)
                || pods.iter().any(|pod| pod.info.id == *id)
                || self.left_out.had(id)
        };
        restored.pods.retain(|pod| is_known(&pod.pod.info.id));
        restored
            .problems
            .retain(|problem| problem.pod.as_ref().is_none_or(is_known));
        restored
    }

    /// Restores from memory: the disk is not needed.
    fn restore_once(
        &mut self,
        wait: Duration,
        request: &UpgradeRequest<'_>,
        ledger: &Ledger,
        context: &mut Context,
    ) -> Restored {
        let in_memory = (self.baseline.stored.clone(), self.baseline.node.clone());
        let wanted = SurveyRequest {
            source: RecordSource::Memory {
                contents: Box::new(in_memory),
                // What a daemon has withdrawn since an older snapshot stays away.
                is_of_window: !ledger.session.window().is_unplanned(),
            },
            nic: request.nic,
            index: request.index,
            ..SurveyRequest::new(request.selection.clone(), request.runtimes.clone())
        };
        let interrupted = || ledger.signals.interrupted();
        let limits = Limits {
            wait,
            awaits_carrier: true,
            manager_grace: request.manager_grace,
            settle: Duration::ZERO,
            reads_long: false,
            pod_budget: request.pod_budget,
            conflict_probe: request.conflict_probe,
            probe_rate: request.probe_rate,
        };
        let limit = WaitLimit::new(limits, Some(&interrupted));
        let permit = Permit::of_window(ledger.session.guard.as_ref());
        let log = &ledger.session.log_file;
        let progress = context.progress.as_mut();
        let restored = session::carry_out(
            &wanted,
            limit,
            permit,
            &context.store,
            &mut self.course,
            &mut NotedWaits { progress, log },
        );
        let mut restored = restored.unwrap_or_else(|refusal| Restored {
            problems: refusal.problems,
            ..Restored::default()
        });
        context.pending.add(mem::take(&mut restored.pending));
        // The window reports these by itself.
        let gone = &restored.gone;
        let is_gone = |id: &PodId| gone.iter().any(|info| info.id == *id);
        restored.problems.retain(|problem| {
            let is_note = problem.severity == Severity::Info;
            !is_note || !problem.pod.as_ref().is_some_and(is_gone)
        });
        self.left_out.leave(&mut restored);
        restored
    }

    /// The pods that their runtime was tearing down.
    pub(crate) fn torn(&self) -> BTreeSet<PodId> {
        self.course.torn()
    }

    /// Whether something may have been lost since the last restore, or is before the time is over.
    pub(crate) fn has_losses(&mut self, time: &mut Settle, ledger: &Ledger) -> bool {
        self.losses
            .has_losses(time, &|| ledger.signals.interrupted())
    }
}

/// A pod without a record is younger than the snapshot of the window, which is to blame where it is cut off. A guard takes no snapshot.
fn blame_for_cut_off(restored: &mut Restored, ledger: &Ledger) {
    let young = restored.young_cut_off();
    if ledger.session.window().is_unplanned() {
        restored
            .pods
            .retain(|one| !young.contains(&one.pod.info.id));
        return;
    }
    for problem in &mut restored.problems {
        let is_of_young = problem.pod.as_ref().is_some_and(|id| young.contains(id));
        let is_it = matches!(
            &*problem.cause,
            Cause::Matching(MatchingCause::CutOff { .. })
        );
        if is_of_young && is_it {
            problem.severity = Severity::Error;
        }
    }
}

/// Notes what a restore waits for: a signal ends that wait, and nothing else of it.
struct NotedWaits<'a> {
    progress: &'a mut dyn Listener,
    log: &'a WindowLog,
}

impl Listener for NotedWaits<'_> {
    fn notice(&mut self, event: Progress) {
        match &event {
            Progress::Waiting(wait, ..) => self.log.waits_for(Some(*wait)),
            Progress::Phase(..) | Progress::Done => self.log.waits_for(None),
            Progress::Advance(_) => {}
        }
        self.progress.notice(event);
    }
}
