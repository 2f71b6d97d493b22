//! The window of a loss that no COMMAND caused. `netfix guard` has found that its pods can be restored; from the restore on it is like
//! any other.

use std::collections::BTreeSet;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::context::Context;
use crate::kernel::kmsg::KernelLogReader;
use crate::kubelet::unit::UnitToPause;
use crate::model::window::{PhaseName, WindowPod};
use crate::model::{IfName, LinkGraph, NetState, PodId, Problem};
use crate::refusal::Refusal;
use crate::restore::course::Course;
use crate::store::Guard;
use crate::upgrade::baseline::{LeftOut, read_back};
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::{Area, Ledger, Upgraded};
use crate::upgrade::phases::pause;
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::unselected::Unselected;
use crate::window::event::Event;
use crate::window::facts::Silence;
use crate::window::rebuild_check::query::RuntimeQuery;

/// A loss that no COMMAND caused.
pub(crate) struct UnplannedLoss {
    /// When it began (`CLOCK_BOOTTIME`, milliseconds).
    pub since: u64,
    /// The links that were lost.
    pub links: Vec<IfName>,
    /// The links of the host that stay deleted.
    pub without: BTreeSet<IfName>,
    /// The pods that stay as they are: they lost nothing.
    pub untouched: BTreeSet<PodId>,
    /// The pods, those that lost their network with the moment as part of the window that begins at `since`.
    pub pods: Vec<WindowPod>,
    /// The ifindexes of the host's links under pods that were not lost.
    pub stayed: BTreeSet<u32>,
    /// The links and addresses of the host as the guard saw them.
    pub host: NetState,
    /// The kernel's last record before the loss, where the guard saw it.
    pub logged: Option<u64>,
    /// What the runtimes answer while the pods are restored.
    pub asked: RuntimeQuery,
}

/// A runtime that has not answered within this time after the restore has given up.
const ANSWER: Duration = Duration::from_secs(10);

/// The window of a loss, under the lock that the guard has.
pub(crate) fn drive_unplanned(
    loss: UnplannedLoss,
    request: &UpgradeRequest<'_>,
    guard: Guard,
    context: &mut Context,
) -> Result<Upgraded, Refusal> {
    let mut baseline = read_back(&request.selection, &context.store)?;
    if let Some(node) = &mut baseline.node {
        // Changes that people made on other links stay.
        let changed = LinkGraph::new(&node.state.links).changed_with(&loss.links);
        node.state = node.state.limited(&(&changed - &loss.without), &loss.host);
    }
    for (info, checkpoint) in &mut baseline.stored.checkpoints {
        let own = checkpoint.netfix.as_mut();
        if let Some(own) = own.filter(|_| loss.untouched.contains(&info.id)) {
            own.chain.clear();
        }
    }
    let ledger = Ledger::unplanned(guard, context, request.log_limit)?;
    baseline.silent = Silence::all_recorded(ledger.session.window());
    let mut network = PodNetwork::new(baseline, LeftOut::default(), Unselected::default());
    network.course = Course::after_loss(loss.stayed.clone(), loss.untouched.clone());
    Ok(Driver::new(request, context, ledger).run_unplanned(network, loss))
}

impl Driver<'_> {
    /// The phases after a loss, in their order.
    fn run_unplanned(mut self, mut network: PodNetwork, mut loss: UnplannedLoss) -> Upgraded {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            // Write down what is about to be done: another guard completes it, should this one be killed.
            let (names, logged) = (network.baseline.kernel_names(), loss.logged);
            self.record_loss(&mut loss);
            let reader = || logged.map_or_else(KernelLogReader::at_end, KernelLogReader::behind);
            self.ledger.session.watch_kernel(names, reader);
            // Pause kubelet where it would rebuild the pods.
            self.pause_for_loss();
            // Restore the pods and probe the gateways.
            self.bring_back(&mut network);
            self.note_answer(&mut loss.asked, &network);
        }));
        let panic = worked.err().map(|_| Ledger::panicked());
        self.ledger.problems.add(Area::Rebuild, panic);
        self.ledger.log_broken(&self.restored, false);
        // Start kubelet. What is lost from here on is another loss, and what happens to the pods is found at the end of the watch.
        self.resume();
        self.conclude(&network);
        let end = self.ledger.problems.end();
        self.ledger.closed(end, self.restored)
    }

    fn record_loss(&mut self, loss: &mut UnplannedLoss) {
        let session = &mut self.ledger.session;
        if session.is_saved() {
            // Of a guard that is gone.
            session.begin(PhaseName::Check, &Event::ResumingWindow);
            session.end(true);
            return;
        }
        let links = mem::take(&mut loss.links);
        session.note_loss(loss.since, &Event::Lost { links });
        session.note_pods(mem::take(&mut loss.pods));
        // A full disk must not stop the restore.
        let saved = session.save().err();
        let problem = saved.map(|error| error.problem().demoted());
        self.ledger.problems.add(Area::Preflight, problem);
    }

    /// Notes the sandboxes before the restore, and the pods that their runtime was tearing down.
    fn note_answer(&mut self, asked: &mut RuntimeQuery, network: &PodNetwork) {
        let session = &mut self.ledger.session;
        if let Some(answer) = asked.within(ANSWER) {
            session.note_fingerprints(&answer.sandboxes);
        }
        session.note_torn(&network.torn());
        session.save_if_possible();
    }

    /// The pods come first: a kubelet that cannot be paused is a warning.
    fn pause_for_loss(&mut self) {
        let is_paused = self.ledger.session.window().is_paused();
        if self.request.pause == UnitToPause::Nothing && !is_paused {
            return;
        }
        let failed = pause::run(&mut self.ledger, self.request).err();
        let problems = failed.into_iter().flat_map(|refusal| refusal.problems);
        let problems = problems.map(Problem::demoted);
        self.ledger.problems.add(Area::Preflight, problems);
        self.budget = pause::watch(&self.ledger.session);
    }
}
