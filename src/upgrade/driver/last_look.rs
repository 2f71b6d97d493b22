//! The last observation of a window, once kubelet runs again.

use std::time::Duration;

use crate::model::problem::CommandCause;
use crate::model::window::PhaseName;
use crate::restore::settle::Settle;
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::Area;
use crate::upgrade::phases::restore::PodNetwork;
use crate::window::event::Event;
use crate::window::rebuild_check::query;

/// How long a runtime that stops with kubelet, as k3s's containerd does, may take to answer again.
const BACK_AGAIN: Duration = Duration::from_secs(90);

impl Driver<'_> {
    /// Watches until `--settle` is over, restores what is lost meanwhile, and observes everything a last time.
    pub(super) fn check_rebuilds(&mut self, network: &mut PodNetwork) {
        if self.ledger.session.window().is_paused() {
            return;
        }
        let settle = self.request.settle;
        self.ledger
            .session
            .begin(PhaseName::RebuildCheck, &Event::Watching { settle });
        self.watch(network);
        let (session, signals) = (&mut self.ledger.session, &self.ledger.signals);
        let (after, unreachable) = query::after(
            &session.window().pods,
            &self.request.runtimes,
            &network.baseline.runtimes,
            (BACK_AGAIN, &|| signals.interrupted()),
            &self.request.selection,
        );
        let rebuilt = session.note_rebuilds(&after, &network.baseline.stored);
        let pods = session.window().pods.iter();
        let same = pods.filter(|pod| pod.rebuilt == Some(false)).count();
        let pods = session.window().pods.len();
        session.log(&Event::RebuildChecked { same, pods });
        self.observe_again(network, Duration::ZERO);
        self.ledger
            .session
            .end(same == pods && !self.ledger.signals.interrupted());
        self.ledger.problems.add(Area::Rebuild, unreachable);
        self.ledger.problems.add(Area::Rebuild, rebuilt);
        self.ledger
            .acknowledge(CommandCause::InterruptedRebuildCheck);
    }

    /// Something may make the parents again after the restore: a network manager, or a driver that resets twice.
    fn watch(&mut self, network: &mut PodNetwork) {
        let mut time = Settle::begin(self.request.settle, self.request.manager_grace);
        while network.has_losses(&mut time, &self.ledger) {
            if self.observe_again(network, self.request.wait) {
                time.note_loss();
            }
        }
    }

    /// Restores what is lost, if anything is, and probes the gateways; returns whether something was.
    fn observe_again(&mut self, network: &mut PodNetwork, wait: Duration) -> bool {
        let again = network.restore_again(wait, self.request, &self.ledger, self.context);
        let lost_again = again.lost_again_after(&self.restored, false);
        let was_lost = lost_again.is_some();
        if let Some(problem) = lost_again {
            self.ledger.report(Area::Rebuild, problem);
        }
        self.take(again, network);
        self.probe(network);
        was_lost
    }

    /// Observes the pods at risk that are not selected, and records what they have.
    pub(super) fn observe_unselected(&mut self, network: &mut PodNetwork) {
        if let Err(refusal) = network.unselected.observe() {
            self.ledger.problems.add(Area::Rebuild, refusal.problems);
        }
        let session = &mut self.ledger.session;
        session.note_unselected(network.unselected.recorded());
        session.save_if_possible();
    }
}
