//! The watch for further losses, and the last observation of a window, once kubelet runs again.

use std::time::Duration;

use crate::inventory::sockets::named;
use crate::model::Problem;
use crate::model::problem::{Cause, CommandCause, RestoreCause};
use crate::model::window::PhaseName;
use crate::restore::settle::{AGAIN, Settle};
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::Area;
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::phases::rollback;
use crate::window::event::{Event, RebuildCheck};
use crate::window::facts::excuse_older;
use crate::window::rebuild_check::query;

/// How long a runtime that stops with kubelet, as k3s's containerd does, may take to answer again.
const BACK_AGAIN: Duration = Duration::from_secs(90);

impl Driver<'_> {
    /// Watches until `--watch` is over, restores what is lost meanwhile, and observes everything a last time.
    pub(super) fn check_rebuilds(&mut self, network: &mut PodNetwork) {
        if self.ledger.session.window().is_paused() {
            // Only what is known without kubelet.
            if self.gone() > 0 {
                let found = self.judge(network, Duration::ZERO);
                self.ledger.problems.add(Area::Rebuild, found);
            }
            return;
        }
        let settle = self.settle;
        self.ledger
            .session
            .begin(PhaseName::RebuildCheck, &Event::Watching { settle });
        let times = self.watch(network, settle);
        let mut found = self.judge(network, BACK_AGAIN);
        let gone = self.gone();
        self.observe_again(network, Duration::ZERO);
        if self.gone() != gone {
            found = self.judge(network, BACK_AGAIN);
        }
        let session = &mut self.ledger.session;
        let is_well = RebuildCheck::of(&session.window().pods).is_well();
        session.end(is_well && !self.ledger.signals.interrupted());
        // It is there now, and nothing says that it stays.
        let unsettled = (times >= AGAIN).then(|| RestoreCause::Unsettled { times }.error("host"));
        found.extend(unsettled);
        self.ledger.problems.add(Area::Rebuild, found);
        self.ledger
            .acknowledge(CommandCause::InterruptedRebuildCheck);
    }

    /// Records what happened to each pod; returns the problems. A runtime that does not answer has this long to do so.
    fn judge(&mut self, network: &PodNetwork, limit: Duration) -> Vec<Problem> {
        let (session, signals) = (&mut self.ledger.session, &self.ledger.signals);
        let (after, unreachable) = query::after(
            &session.window().pods,
            &self.request.runtimes,
            &network.baseline.runtimes,
            (limit, &|| signals.interrupted()),
            &self.request.selection,
        );
        let fates = session.note_fates(after, &network.baseline.stored, &network.torn());
        session.log(&Event::RebuildChecked {
            check: RebuildCheck::of(&session.window().pods),
            is_selection: !self.request.selection.is_everything(),
        });
        unreachable.into_iter().chain(fates).collect()
    }

    /// How many pods are gone, as far as netfix has noticed.
    fn gone(&self) -> usize {
        let pods = self.ledger.session.window().pods.iter();
        pods.filter(|pod| pod.gone.is_some()).count()
    }

    /// Something may make the parents again after the restore: a network manager, or a driver that resets twice. Restores what is lost;
    /// returns how often that was more than single pods.
    pub(super) fn watch(&mut self, network: &mut PodNetwork, length: Duration) -> usize {
        let mut time = Settle::begin(length, self.request.manager_grace);
        let mut losses = 0;
        while network.has_losses(&mut time, &self.ledger) {
            let lost = self.observe_again(network, self.request.wait);
            if !lost.is_empty() {
                time.note_loss();
            }
            losses += usize::from(lost.iter().any(is_of_host));
        }
        losses
    }

    /// Whether what was restored stays for a moment: once kubelet runs again the rollback no longer helps against a driver that resets.
    pub(super) fn stays(&mut self, network: &mut PodNetwork) -> bool {
        /// The longest of that moment.
        const MOMENT: Duration = Duration::from_secs(5);
        let window = self.ledger.session.window();
        let is_decided = rollback::needed(self.request, window, &network.after).is_some();
        if self.request.rollback.is_none() || window.rollback.is_some() || is_decided {
            return true;
        }
        let losses = self.watch(network, self.settle.min(MOMENT));
        network.after.is_lost_again = losses >= AGAIN;
        losses == 0
    }

    /// Restores what is lost, if anything is, and probes the gateways; returns what was.
    fn observe_again(&mut self, network: &mut PodNetwork, wait: Duration) -> Vec<Problem> {
        let again = network.restore_again(wait, self.request, &self.ledger, self.context);
        let lost_again = again.lost_again_after(&self.restored, false);
        for problem in &lost_again {
            self.ledger.report(Area::Rebuild, problem.clone());
        }
        self.take(again, network);
        self.probe(network);
        lost_again
    }

    /// What follows from the work: whether the driver was reloaded by then, which COMMAND may have left to another process; the rules and
    /// sockets that name a former ifindex, and the problems of COMMAND and the rollback.
    pub(super) fn conclude(&mut self, network: &PodNetwork) {
        self.check_reload();
        let dead = excuse_older(named::dead(network.baseline.node.as_ref()));
        self.ledger.problems.add(Area::Network, dead);
        self.ledger
            .conclude(self.request, &network.baseline, &network.after);
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

/// Whether it is a loss of the host, or of pods at once: a tenant that deletes its own link is no reason for a rollback.
fn is_of_host(lost: &Problem) -> bool {
    matches!(&*lost.cause, Cause::Restore(RestoreCause::LostAgain { .. }))
}
