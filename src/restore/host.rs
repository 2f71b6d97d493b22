//! Restores the host's own links, in rounds.

use std::collections::BTreeSet;

use super::RestoreState;
use super::apply::{self, FailedStep, remaining};
use super::managed::Managed;
use crate::inventory::observe::Host;
use crate::journal;
use crate::kernel::Error;
use crate::matching::host_baseline::HostBaseline;
use crate::model::{IfName, LinkKind, Problem};
use crate::plan::link_diff::closure;
use crate::plan::{self, Change, HostLinks, NetlinkStep, Plan, Step};
use crate::progress::Listener;

/// The host's stack has at most this many layers, each of which may need a round.
const HOST_ROUNDS: usize = 8;

/// What is missing on the host, and its links as a restore would leave them.
pub(super) fn plan_of(host: &Host, baseline: &HostBaseline) -> (Plan, HostLinks) {
    let observed = baseline.observed(&host.state, None);
    plan::host(&baseline.state, observed, &baseline.devices)
}

/// The devices under the pods and the links above them: each by its name in the record, and now.
pub(super) fn in_scope(
    host: &Host,
    baseline: &HostBaseline,
) -> impl Iterator<Item = (IfName, IfName)> {
    let (_, links) = plan_of(host, baseline);
    let names = closure(baseline.devices.clone(), &baseline.state.links);
    names.into_iter().map(move |name| {
        let now = links.name_now(&name);
        (name, now)
    })
}

/// The ifindexes of those that exist.
pub(super) fn parents(host: &Host, baseline: &HostBaseline) -> BTreeSet<u32> {
    let index = |(_, now)| Some(host.state.link(&now)?.index);
    in_scope(host, baseline).filter_map(index).collect()
}

/// The host's namespace during a restore.
#[derive(Debug, Default)]
pub(super) struct HostJob {
    /// Steps that were carried out.
    pub done: Vec<Step>,
    /// Steps that failed in the last round.
    failures: Vec<FailedStep>,
    /// What is still missing.
    last: Plan,
}

impl HostJob {
    pub(super) fn state(&self) -> RestoreState {
        let is_broken =
            !self.last.steps.is_empty() || self.problems().iter().any(Problem::is_error);
        RestoreState::of(!self.done.is_empty(), !is_broken)
    }

    pub(super) fn problems(&self) -> Vec<Problem> {
        remaining(&self.last, &self.failures, None)
    }

    /// Whether steps must wait for carrier.
    pub(super) fn waits(&self) -> bool {
        !self.last.later.is_empty()
    }

    /// Plans and applies in rounds, from the host's state as it was read last: a layer's settings can only be compared when it
    /// exists. In each, what an owner of links still brings is left to it.
    pub(super) fn restore(
        &mut self,
        host: &mut Host,
        baseline: &mut HostBaseline,
        managed: &mut Managed<'_>,
        progress: &mut dyn Listener,
    ) -> Result<HostLinks, Error> {
        self.last = Plan::default();
        let mut rounds = 0;
        loop {
            baseline.learn(&host.state);
            let (plan, mut links) = plan_of(host, baseline);
            if plan.steps.is_empty() || plan.steps == self.last.steps || rounds == HOST_ROUNDS {
                links.confirm(&host.state);
                self.last = plan;
                return Ok(links);
            }
            if !managed.go_first(&plan, host, baseline, progress)? {
                self.apply(host, &plan.steps);
                self.last = plan;
                rounds += 1;
            }
            host.refresh()?;
        }
    }

    /// Restores what was lost since: while pods wait for carrier, a network manager notices the loss and the return of it.
    pub(super) fn restore_again(
        &mut self,
        host: &mut Host,
        baseline: &mut HostBaseline,
        managed: &mut Managed<'_>,
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        managed.wait_until_done(host, baseline, progress)?;
        host.refresh()?;
        baseline.learn(&host.state);
        let (plan, _) = plan_of(host, baseline);
        if plan.steps != self.last.steps {
            self.restore(host, baseline, managed, progress)?;
        }
        Ok(())
    }

    /// A bond that has lost its last port has a random MAC, and takes over that of the next port, which a network manager may
    /// give it at once; DHCP and the pods need the former one. A bond whose MAC was set keeps it (`bond_release` and
    /// `bond_enslave` in `drivers/net/bonding/bond_main.c`).
    pub(super) fn keep_bond_macs(
        &mut self,
        host: &mut Host,
        baseline: &HostBaseline,
    ) -> Result<(), Error> {
        let (mut plan, _) = plan_of(host, baseline);
        let is_bond = |dev: &IfName| {
            let link = host.state.link(dev);
            link.is_some_and(|link| matches!(link.kind, LinkKind::Bond(_)))
        };
        plan.steps.retain(|step| {
            matches!(step, Step::Netlink(NetlinkStep::SetLink { dev, change: Change::Mac(_), .. }) if is_bond(dev))
        });
        if !plan.steps.is_empty() {
            self.apply(host, &plan.steps);
            host.refresh()?;
        }
        Ok(())
    }

    fn apply(&mut self, host: &mut Host, steps: &[Step]) {
        let applied = apply::run(&mut host.socket, &host.state, steps.to_vec());
        journal::applied(None, &applied.done);
        self.done.extend(applied.done);
        self.failures = applied.failures;
    }
}
