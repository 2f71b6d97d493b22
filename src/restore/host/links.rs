//! Restores the host's own links, in rounds.

mod ifindex;

use std::collections::{BTreeSet, HashSet};
use std::mem;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::journal;
use crate::kernel::Error;
use crate::managers::Owners;
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::{Cause, ConflictCause, PlanCause, RestoreCause};
use crate::model::window::{KernelCause, LostSetting};
use crate::model::{Address, IfName, Link, LinkKind, Problem};
use crate::plan::{AwaitedEvent, Change, HostLinks, NetlinkStep, Plan, Step};
use crate::progress::{Listener, Progress, Wait};
use crate::restore::apply::{self, FailedStep, remaining};
use crate::restore::between::Between;
use crate::restore::conflict::detection::unfinished;
use crate::restore::conflict::targets::ProbeTarget;
use crate::restore::facts::{DeviceFaults, RestoreState};
use crate::restore::host::managed::Managed;
use crate::restore::host::own_addresses::OwnAddresses;
use crate::restore::host::scope::{self, plan_without};
use crate::restore::host::setting_owners::{self, SettingOwners};
use crate::restore::host::wait_nic::{self, WaitLimit};
use crate::restore::permit::Permit;
use crate::situation::{not_selected, plan_of};

/// The host's stack has at most this many layers, each of which may need a round.
const HOST_ROUNDS: usize = 8;

/// The host's namespace during a restore.
pub(in crate::restore) struct HostJob<'a> {
    pub host: &'a mut Host,
    /// The links that it had under the pods.
    pub baseline: &'a mut HostBaseline,
    /// The managers of its links.
    pub managed: Managed<'a>,
    /// The programs that set something on its NICs.
    setting_owners: SettingOwners,
    pub limit: WaitLimit<'a>,
    pub permit: Permit<'a>,
    /// Its addresses, which are probed before they are added.
    pub own: OwnAddresses,
    /// Steps that were carried out.
    pub done: Vec<Step>,
    /// Steps that failed in the last round.
    failures: Vec<FailedStep>,
    /// What is still missing.
    last: Plan,
    /// Whether addresses were added since the last observation.
    is_unobserved: bool,
    /// Devices without carrier after the wait for it.
    silent: Vec<IfName>,
    /// The end of the one wait for carrier.
    awaited_carrier: Option<Instant>,
    /// Whether the one wait for virtual functions that others make is over.
    has_awaited_functions: bool,
    /// How long resets of devices may still take.
    patience: Duration,
    /// Namespaces through which devices went.
    between: Vec<Between>,
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
            setting_owners: SettingOwners::default(),
            limit,
            permit,
            own: OwnAddresses::new(limit.limits.conflict_probe),
            done: Vec::new(),
            failures: Vec::new(),
            last: Plan::default(),
            is_unobserved: false,
            silent: Vec::new(),
            awaited_carrier: None,
            has_awaited_functions: false,
            patience: apply::RESET_LIMIT,
            between: Vec::new(),
        }
    }

    /// What was done, and what is left.
    pub(in crate::restore) fn finish(self) -> HostDone {
        let mut problems = remaining(&self.last, &self.failures, None);
        problems.extend(self.own.conflicts());
        let is_complete = self.last.steps.is_empty() && !problems.iter().any(Problem::is_error);
        let state = RestoreState::of(!self.done.is_empty(), is_complete);
        ((self.done, state), problems)
    }

    /// What became of the settings of its NICs that were lost.
    pub(in crate::restore) fn settings(&self) -> Vec<LostSetting> {
        apply::outcomes(None, &self.done, Some(&self.last))
    }

    /// What netfix did in place of the owners of links and after those of settings, and what was not selected.
    pub(in crate::restore) fn findings(&self) -> Vec<Problem> {
        let mut findings = self.managed.findings(&self.done);
        let of_profile = |dev: &IfName| self.managed.settings_of(dev);
        findings.extend(setting_owners::findings(&self.done, self.host, of_profile));
        findings.extend(not_selected(self.host, self.baseline));
        findings
    }

    /// The addresses that it has received and that the kernel still probes.
    pub(in crate::restore) fn detecting(&self) -> Vec<Address> {
        let added = self.done.iter().flat_map(Step::added_addresses);
        let added: HashSet<_> = added.map(Address::key).collect();
        unfinished(&self.host.state, |one| added.contains(&one.key()))
    }

    /// Whether steps must wait for this, or the kernel brings what is missing.
    pub(in crate::restore) fn waits(&self, event: AwaitedEvent) -> bool {
        self.last.awaits(event, !self.done.is_empty())
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

    /// The devices that have no network.
    pub(in crate::restore) fn devices(&self) -> DeviceFaults {
        let cause = KernelCause::SafeMode;
        let cause = Cause::Plan(PlanCause::Crippled { cause });
        let is_crippled = |problem: &&Problem| *problem.cause == cause;
        let crippled = self.last.problems.iter().filter(is_crippled);
        DeviceFaults {
            missing: self.last.missing.clone(),
            silent: self.silent.clone(),
            crippled: crippled
                .filter_map(|one| one.object.link().cloned())
                .collect(),
        }
    }

    /// Waits for carrier, once in a restore; returns a problem for each device that has none.
    pub(in crate::restore) fn wait_for_carrier(
        &mut self,
        links: &HostLinks,
        progress: &mut dyn Listener,
    ) -> Result<Vec<Problem>, Error> {
        if self.awaited_carrier.is_some() {
            return Ok(Vec::new());
        }
        progress.notice(self.waiting(Wait::Carrier));
        let silent = wait_nic::for_carrier(self.host, self.baseline, links, self.limit);
        self.awaited_carrier = Some(Instant::now());
        self.silent = silent?;
        let limits = self.limit.limits;
        let was_requested = limits.awaits_carrier && !limits.wait.is_zero();
        let silent = self.silent.iter();
        let problems = silent.map(|name| RestoreCause::NoCarrier.error(name));
        Ok(if was_requested {
            problems.collect()
        } else {
            problems.map(Problem::demoted).collect()
        })
    }

    /// The end of the wait for carrier: now, if nothing has had to wait for it.
    pub(in crate::restore) fn awaited_carrier(&self) -> Instant {
        self.awaited_carrier.unwrap_or_else(Instant::now)
    }

    /// Plans and applies in rounds, from the host's state as it was read last: a layer's settings can only be compared when it
    /// exists. In each, what an owner of links still brings is left to it. Addresses are only added once they were probed.
    pub(in crate::restore) fn restore(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<HostLinks, Error> {
        self.last = Plan::default();
        let mut rounds = 0;
        loop {
            let (missing, mut links) = self.plan();
            if self.renumber(&missing, &[], progress)?.is_some() {
                continue;
            }
            let made = mem::take(&mut links.functions);
            if !made.is_empty() && !mem::replace(&mut self.has_awaited_functions, true) {
                wait_nic::for_functions(self.host, &made, self.limit)?;
                continue;
            }
            let plan = plan_without(self.host, self.baseline, &self.own);
            let is_over = plan.steps.is_empty() || plan.steps == self.last.steps;
            if is_over && !self.own.has_targets() || rounds == HOST_ROUNDS {
                links.confirm(&self.host.state);
                self.last = plan;
                return Ok(links);
            }
            let has_waited = self
                .managed
                .go_first(&missing, self.host, self.baseline, progress)?
                || self
                    .setting_owners
                    .go_first(&plan, self.host, self.baseline, self.limit)?;
            if !has_waited {
                if is_over {
                    links.confirm(&self.host.state);
                    self.last = plan;
                    return Ok(links);
                }
                self.apply(&plan.steps);
                if !made.is_empty() {
                    wait_nic::for_functions(self.host, &made, self.limit)?;
                }
                self.last = plan;
                rounds += 1;
            }
            self.host.refresh()?;
        }
    }

    /// All that is missing in the state that was read last, and the addresses among it that are to be probed.
    fn plan(&mut self) -> (Plan, HostLinks) {
        self.baseline.learn(&self.host.state);
        let (missing, links) = plan_of(self.host, self.baseline);
        let made = missing.steps.iter().filter_map(|step| match step {
            Step::AddLink(link) => Some(link.name.clone()),
            _ => None,
        });
        self.baseline.made.extend(made);
        let (recorded, now) = (&self.baseline.state, &self.host.state);
        self.own.find_targets(&missing, recorded, now, &links);
        (missing, links)
    }

    /// Adds the addresses that no other machine has, and what needs them, without another observation.
    pub(in crate::restore) fn add_probed(
        &mut self,
        conflicts: Vec<(ProbeTarget, ConflictCause)>,
        links: &HostLinks,
    ) {
        if !self.own.is_probing() {
            return;
        }
        self.own.end_probes(conflicts, &self.baseline.state, links);
        let plan = plan_without(self.host, self.baseline, &self.own);
        let known = &self.last.steps;
        let new = plan.steps.iter().filter(|step| !known.contains(step));
        let new: Vec<Step> = new.cloned().collect();
        self.last = plan;
        self.is_unobserved = true;
        self.apply(&new);
    }

    /// Adds what is left without a probe: there is no carrier, and no other machine can answer.
    pub(in crate::restore) fn add_unprobed(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        if self.own.has_targets() || mem::take(&mut self.is_unobserved) {
            self.own.give_up();
            self.host.refresh()?;
            self.restore(progress)?;
        }
        Ok(())
    }

    /// Waits until Open vSwitch has taken its ports back, in the time that owners of links have. Returns a note for each.
    pub(in crate::restore) fn wait_for_switches(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<Vec<Problem>, Error> {
        let mut ports = scope::not_taken_back(self.host, self.baseline);
        let grace = self.limit.limits.manager_grace;
        if ports.is_empty() || grace.is_zero() {
            return Ok(Vec::new());
        }
        progress.notice(Progress::Waiting(Wait::Manager, ports.clone(), grace));
        let (host, baseline) = (&mut *self.host, &*self.baseline);
        self.limit.wait_for_managers(Instant::now() + grace, || {
            host.refresh()?;
            Ok(scope::not_taken_back(host, baseline).is_empty())
        })?;
        let left = scope::not_taken_back(self.host, self.baseline);
        ports.retain(|port| !left.contains(port));
        let ports = ports.into_iter();
        Ok(ports
            .map(|port| RestoreCause::TakenBack.info(port))
            .collect())
    }

    /// Restores what was lost since: while pods wait for carrier, a network manager notices the loss and the return of it.
    pub(in crate::restore) fn restore_again(
        &mut self,
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        let is_at_work = |known: &Owners, manager, link: &Link, host: &Host| {
            // It may drop them at first.
            let has_addresses = host.state.addresses.iter().any(|one| one.dev == link.name);
            has_addresses && known.is_at_work(manager, &link.name, link.index)
        };
        self.managed
            .wait_until_done(self.host, self.baseline, progress, is_at_work)?;
        self.host.refresh()?;
        self.is_unobserved = false;
        self.plan();
        let plan = plan_without(self.host, self.baseline, &self.own);
        // What a driver refused before there was carrier it may accept now.
        let is_refused = |step: &Step| matches!(step, Step::Nic(_));
        if plan.steps == self.last.steps && !plan.steps.iter().any(is_refused) {
            self.last = plan;
        } else {
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
        let applied = apply::run(self.permit, socket, state, steps.to_vec(), self.patience);
        if applied.failures.iter().any(FailedStep::is_of_reset) {
            // Once: a device that is not ready by now stays so.
            self.patience = Duration::ZERO;
        }
        if self.permit.is_in_earnest() {
            journal::applied(None, &applied.done);
        }
        self.between.extend(applied.between);
        self.done.extend(applied.done);
        // What was refused before and is not tried now is still missing.
        self.failures
            .retain(|failed| failed.takes_up().is_none() && !steps.contains(&failed.step));
        self.failures.extend(applied.failures);
    }
}
