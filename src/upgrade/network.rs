//! The pods' network in a window: what it was, and how restores and probes left it.

use std::time::Duration;

use crate::context::Context;
use crate::restore::settle::{LossWatch, Settle};
use crate::restore::{Permit, Restored};
use crate::upgrade::baseline::Baseline;
use crate::upgrade::ledger::Ledger;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::phases::restore;
use crate::upgrade::phases::rollback::NetworkAfter;
use crate::upgrade::request::UpgradeRequest;
use crate::window::event::Event;

/// The pods' network in a window.
pub(crate) struct PodNetwork {
    pub baseline: Baseline,
    left_out: LeftOut,
    /// As far as a rollback depends on it.
    pub after: NetworkAfter,
    /// Since the last restore.
    losses: LossWatch,
}

impl PodNetwork {
    /// Nothing was restored yet.
    pub(crate) fn new(baseline: Baseline, left_out: LeftOut) -> Self {
        Self {
            baseline,
            left_out,
            after: NetworkAfter::default(),
            losses: LossWatch::start(&[]),
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
        let mut restored = self.restore_once(wait, request, ledger, context);
        if !restored.is_complete() && !ledger.signals.interrupted() {
            ledger.session.log(&Event::RestoringAgain);
            let again = self.restore_once(Duration::ZERO, request, ledger, context);
            restored = restored.then(again);
        }
        self.losses = LossWatch::start(&restored.pods);
        restored
    }

    /// Restores what is lost again in the pods of the window: kubelet may just be creating others.
    pub(crate) fn restore_again(
        &mut self,
        wait: Duration,
        request: &UpgradeRequest<'_>,
        ledger: &Ledger,
        context: &mut Context,
    ) -> Restored {
        ledger.session.log(&Event::LookingAgain);
        let mut restored = self.restore_once(wait, request, ledger, context);
        let pods = &ledger.session.window().pods;
        restore::retain(&mut restored, pods, &self.left_out);
        restored
    }

    fn restore_once(
        &mut self,
        wait: Duration,
        request: &UpgradeRequest<'_>,
        ledger: &Ledger,
        context: &mut Context,
    ) -> Restored {
        let (permit, signals) = (Permit::of_window(ledger.session.guard()), &ledger.signals);
        let mut restored = restore::run(&self.baseline, request, wait, permit, signals, context);
        self.left_out.leave(&mut restored);
        restored
    }

    /// Whether something may have been lost since the last restore, or is before the time is over.
    pub(crate) fn has_losses(&mut self, time: &mut Settle, ledger: &Ledger) -> bool {
        self.losses
            .has_losses(time, &|| ledger.signals.interrupted())
    }
}
