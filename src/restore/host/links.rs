//! Restores the host's own links, in rounds.

use std::collections::BTreeSet;
use std::mem;

use crate::inventory::observe::Host;
use crate::journal;
use crate::kernel::Error;
use crate::matching::host_baseline::HostBaseline;
use crate::model::{IfName, LinkKind, Problem};
use crate::plan::{Change, HostLinks, NetlinkStep, Plan, Step};
use crate::progress::{Listener, Progress, Wait};
use crate::restore::apply::{self, FailedStep, remaining};
use crate::restore::facts::RestoreState;
use crate::restore::host::managed::Managed;
use crate::restore::host::scope::{self, plan_of};
use crate::restore::host::wait_nic::{self, WaitLimit};
use crate::restore::permit::Permit;

/// The host's stack has at most this many layers, each of which may need a round.
const HOST_ROUNDS: usize = 8;

/// The host's namespace during a restore.
pub(in crate::restore) struct HostJob<'a> {
    pub host: &'a mut Host,
    /// The links that it had under the pods.
    pub baseline: &'a mut HostBaseline,
    /// The managers of its links.
    pub managed: Managed<'a>,
    pub limit: WaitLimit<'a>,
    pub permit: Permit<'a>,
    /// Steps that were carried out.
    pub done: Vec<Step>,
    /// Steps that failed in the last round.
    failures: Vec<FailedStep>,
    /// What is still missing.
    last: Plan,
    /// Whether the one wait for carrier is over.
    has_awaited_carrier: bool,
}

/// The host's steps, its state after them, and its problems.
pub(in crate::restore) type HostDone = ((Vec<Step>, RestoreState), Vec<Problem>);

impl<'a> HostJob<'a> {
    pub(in crate::restore) fn new(
        host: &'a mut Host,
        baseline: &'a mut HostBaseline,
        limit: WaitLimit<'a>,
        permit: Permit<'a>,
    ) -> Self {
        Self {
            host,
            baseline,
            managed: Managed::new(limit, permit),
            limit,
            permit,
            done: Vec::new(),
            failures: Vec::new(),
            last: Plan::default(),
            has_awaited_carrier: false,
        }
    }

    /// What was done, and what is left.
    pub(in crate::restore) fn finish(self) -> HostDone {
        let problems = remaining(&self.last, &self.failures, None);
        let is_complete = self.last.steps.is_empty() && !problems.iter().any(Problem::is_error);
        let state = RestoreState::of(!self.done.is_empty(), is_complete);
        ((self.done, state), problems)
    }

    /// Whether steps must wait for carrier.
    pub(in crate::restore) fn waits(&self) -> bool {
        !self.last.later.is_empty()
    }

    /// The ifindexes of the devices under the pods and of the links above them.
    pub(in crate::restore) fn parents(&self) -> BTreeSet<u32> {
        scope::parents(self.host, self.baseline)
    }

    /// The event that a wait for the devices under the pods begins.
    pub(in crate::restore) fn waiting(&self, wait: Wait) -> Progress {
        let limit = match wait {
            Wait::Carrier => self.limit.for_carrier(),
            Wait::Device | Wait::Manager | Wait::Loss => self.limit,
        };
        let devices = self.baseline.devices.iter().cloned().collect();
        Progress::Waiting(wait, devices, limit.limits.wait)
    }

    /// Waits for carrier, once in a restore.
    pub(in crate::restore) fn wait_for_carrier(
        &mut self,
        links: &HostLinks,
        progress: &mut dyn Listener,
    ) -> Result<Vec<Problem>, Error> {
        if mem::replace(&mut self.has_awaited_carrier, true) {
            return Ok(Vec::new());
        }
        progress.notice(self.waiting(Wait::Carrier));
        wait_nic::for_carrier(self.host, self.baseline, links, self.limit)
    }

    /// Plans and applies in rounds, from the host's state as it was read last: a layer's settings can only be compared when it
    /// exists. In each, what an owner of links still brings is left to it.
    pub(in crate::restore) fn restore(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<HostLinks, Error> {
        self.last = Plan::default();
        let mut rounds = 0;
        loop {
            self.baseline.learn(&self.host.state);
            let (plan, mut links) = plan_of(self.host, self.baseline);
            if plan.steps.is_empty() || plan.steps == self.last.steps || rounds == HOST_ROUNDS {
                links.confirm(&self.host.state);
                self.last = plan;
                return Ok(links);
            }
            let has_waited = self
                .managed
                .go_first(&plan, self.host, self.baseline, progress)?;
            if !has_waited {
                self.apply(&plan.steps);
                self.last = plan;
                rounds += 1;
            }
            self.host.refresh()?;
        }
    }

    /// Restores what was lost since: while pods wait for carrier, a network manager notices the loss and the return of it.
    pub(in crate::restore) fn restore_again(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        self.managed
            .wait_until_done(self.host, self.baseline, progress)?;
        self.host.refresh()?;
        self.baseline.learn(&self.host.state);
        let (plan, _) = plan_of(self.host, self.baseline);
        if plan.steps != self.last.steps {
            self.restore(progress)?;
        }
        Ok(())
    }

    /// A bond that has lost its last port has a random MAC, and takes over that of the next port, which a network manager may
    /// give it at once; DHCP and the pods need the former one. A bond whose MAC was set keeps it (`bond_release` and
    /// `bond_enslave` in `drivers/net/bonding/bond_main.c`).
    pub(in crate::restore) fn keep_bond_macs(&mut self) -> Result<(), Error> {
        let (mut plan, _) = plan_of(self.host, self.baseline);
        let is_bond = |dev: &IfName| {
            let link = self.host.state.link(dev);
            link.is_some_and(|link| matches!(link.kind, LinkKind::Bond(_)))
        };
        plan.steps.retain(|step| {
            matches!(step, Step::Netlink(NetlinkStep::SetLink { dev, change: Change::Mac(_), .. }) if is_bond(dev))
        });
        if !plan.steps.is_empty() {
            self.apply(&plan.steps);
            self.host.refresh()?;
        }
        Ok(())
    }

    fn apply(&mut self, steps: &[Step]) {
        let Host { socket, state, .. } = &mut *self.host;
        let applied = apply::run(self.permit, socket, state, steps.to_vec());
        journal::applied(None, &applied.done);
        self.done.extend(applied.done);
        self.failures = applied.failures;
    }
}
