//! Host links of network managers: their owner goes first, and netfix creates only what does not come.
//!
//! A manager adopts or recreates a link that another program made: VLANs of `NetworkManager` lose their profile by that, and
//! with it the renewal of leases.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::journal;
use crate::kernel::Error;
use crate::managers::settings::Groups;
use crate::managers::{self, OwnerQuery, Owners};
use crate::matching::host_baseline::HostBaseline;
use crate::model::manager::Manager;
use crate::model::net::link::nic::NicGroup;
use crate::model::problem::RestoreCause;
use crate::model::{IfName, Link, Problem};
use crate::plan::{Change, NetlinkStep, Plan, Step};
use crate::progress::{Listener, Progress, Wait};
use crate::restore::host::scope::in_scope;
use crate::restore::host::wait_nic::{DevicesBelow, WaitLimit};
use crate::restore::permit::Permit;
use crate::situation::plan_of;
use crate::systemd::{self, Bus};

/// `NetworkManager` accepts the activation of a VLAN whose parent it is still taking over, and fails later: it is
/// requested again.
const AGAIN: Duration = Duration::from_secs(2);
/// How often systemd is queried again about a manager at work.
const PAUSE: Duration = Duration::from_millis(250);

/// The managers of the host's links during a restore, and what they left to netfix.
pub(in crate::restore) struct Managed<'a> {
    pub(super) limit: WaitLimit<'a>,
    permit: Permit<'a>,
    query: Option<OwnerQuery>,
    known: Option<Owners>,
    /// Until when they go first; it begins with the first wait for them.
    until: Option<Instant>,
    /// The owners of links, by their name on the host now.
    owners: BTreeMap<IfName, Manager>,
    /// The links whose profile `NetworkManager` was requested to activate, with its refusal.
    activated: BTreeMap<IfName, Option<String>>,
}

/// Waits until no manager is about to take a device down: what it does after a driver's second reset, it may do long after
/// that. Returns whether there was a reason to wait.
pub(in crate::restore) fn wait_until_idle(limit: Duration, interrupted: &dyn Fn() -> bool) -> bool {
    let is_busy = || {
        managers::units_of_devices()
            .filter(|_| systemd::configures_links())
            .and_then(|units| Some((Bus::connect().ok()?, units)))
            .is_some_and(|(bus, units)| bus.is_busy(units).unwrap_or(false))
    };
    let until = Instant::now() + limit;
    let mut has_waited = false;
    while Instant::now() < until && !interrupted() && is_busy() {
        has_waited = true;
        thread::sleep(PAUSE);
    }
    has_waited
}

/// The link that a step makes, or gives an address, a route or a master.
fn made_on(step: &Step) -> Option<&IfName> {
    match step {
        Step::AddLink(_)
        | Step::Netlink(
            NetlinkStep::AddAddress(_)
            | NetlinkStep::AddRoute { .. }
            | NetlinkStep::Rewrite(_)
            | NetlinkStep::SetLink {
                change: Change::Master(_),
                ..
            },
        ) => step.devs().first().copied(),
        _ => None,
    }
}

/// The device and group of a setting of a NIC.
fn set_on(step: &Step) -> Option<(&IfName, NicGroup)> {
    match step {
        Step::Nic(step) => Some((&step.dev, step.group)),
        _ => None,
    }
}

/// Whether managers are given time at all.
fn may_wait(limit: WaitLimit<'_>) -> bool {
    !limit.limits.manager_grace.is_zero() && managers::may_run() && systemd::configures_links()
}

/// The owners of the links under the pods, by their name on the host now: that is the one that managers have.
fn owners_of_links(
    known: &Owners,
    host: &Host,
    baseline: &HostBaseline,
) -> BTreeMap<IfName, Manager> {
    in_scope(host, baseline)
        .filter_map(|(name, name_now)| {
            let mut link = baseline.state.link(&name)?.clone();
            link.name = name_now;
            let owner = known.of(&link)?;
            Some((link.name, owner))
        })
        .collect()
}

/// Requests the activation of a link's profile; returns the refusal.
fn activate(_: Permit<'_>, owners: &Owners, name: &IfName) -> Option<String> {
    owners.activate(name).err()
}

impl<'a> Managed<'a> {
    pub(super) fn new(limit: WaitLimit<'a>, permit: Permit<'a>) -> Self {
        Self {
            limit,
            permit,
            query: None,
            known: None,
            until: None,
            owners: BTreeMap::new(),
            activated: BTreeMap::new(),
        }
    }

    /// Begins to query the managers, beside the wait for the NIC.
    pub(in crate::restore) fn query(&mut self) {
        let grace = self.limit.limits.manager_grace;
        self.query = may_wait(self.limit).then(|| managers::query(grace));
    }

    /// Waits until the owners have brought back what is missing, or have finished without. Returns whether it waited: then
    /// the host is to be observed and planned anew. Called before each round, because a manager that notices a loss of
    /// carrier late drops what was there at the last observation.
    pub(super) fn go_first(
        &mut self,
        plan: &Plan,
        host: &mut Host,
        baseline: &mut HostBaseline,
        progress: &mut dyn Listener,
    ) -> Result<bool, Error> {
        let is_of_owner = |step: &Step| made_on(step).is_some() || matches!(step, Step::Nic(_));
        if !plan.steps.iter().any(is_of_owner) {
            return Ok(false);
        }
        let Some(known) = self.known(host, baseline) else {
            return Ok(false);
        };
        let has_waited = self.wait_for(&known, plan, (host, baseline), progress);
        self.known = Some(known);
        has_waited
    }

    /// Waits until no owner `is_at_work` on a link. Nothing else waits for this.
    pub(super) fn wait_until_done(
        &mut self,
        host: &mut Host,
        baseline: &HostBaseline,
        progress: &mut dyn Listener,
        is_at_work: impl Fn(&Owners, Manager, &Link, &Host) -> bool,
    ) -> Result<(), Error> {
        let Some(known) = self.known(host, baseline) else {
            return Ok(());
        };
        let at_work = |owners: &BTreeMap<IfName, Manager>, host: &Host| {
            owners
                .iter()
                .filter(|(name, manager)| {
                    let link = host.state.link(name);
                    link.is_some_and(|link| is_at_work(&known, **manager, link, host))
                })
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let names = at_work(&self.owners, host);
        if !names.is_empty() {
            self.announce(names, progress);
            let until = Instant::now() + self.limit.limits.manager_grace;
            self.limit.wait_for_managers(until, || {
                host.refresh()?;
                Ok(at_work(&self.owners, host).is_empty())
            })?;
        }
        self.known = Some(known);
        Ok(())
    }

    /// The answer of the managers, with the owners of the links that are there now.
    fn known(&mut self, host: &Host, baseline: &HostBaseline) -> Option<Owners> {
        let known = self
            .known
            .take()
            .or_else(|| self.query.take().map(OwnerQuery::owners))?;
        self.owners = owners_of_links(&known, host, baseline);
        Some(known)
    }

    fn wait_for(
        &mut self,
        known: &Owners,
        plan: &Plan,
        at: (&mut Host, &mut HostBaseline),
        progress: &mut dyn Listener,
    ) -> Result<bool, Error> {
        let awaited = self.missing(known, plan, at.0);
        if awaited.is_empty() {
            return Ok(false);
        }
        if self.until.is_none() && self.limit.limits.awaits_carrier {
            self.wait_for_carrier(&awaited, (&mut *at.0, &*at.1), progress)?;
        }
        let now = Instant::now();
        let until = *self
            .until
            .get_or_insert(now + self.limit.limits.manager_grace);
        if now < until {
            // NetworkManager activates only automatic profiles.
            let manual = awaited
                .iter()
                .filter(|name| known.waits_for_a_person(name))
                .cloned()
                .collect();
            let both = (awaited, manual);
            if !self.wait(known, both, until, at, progress)? {
                self.until = Some(now);
            }
            return Ok(true);
        }
        let profiles = self.unmade_profiles(plan);
        if profiles.is_empty() {
            return Ok(false);
        }
        let both = (profiles.clone(), profiles);
        let until = now + self.limit.limits.manager_grace;
        self.wait(known, both, until, at, progress)?;
        Ok(true)
    }

    /// Waits for the carrier of the devices under these links: most owners begin when it comes.
    fn wait_for_carrier(
        &self,
        names: &BTreeSet<IfName>,
        (host, baseline): (&mut Host, &HostBaseline),
        progress: &mut dyn Listener,
    ) -> Result<(), Error> {
        let below = DevicesBelow::of(names, baseline);
        let is_owned = |name: &IfName| self.owners.contains_key(name);
        if below.are_silent(host, &is_owned) {
            let devices = below.devices.iter().cloned().collect();
            progress.notice(Progress::Waiting(
                Wait::Carrier,
                devices,
                self.limit.limits.wait,
            ));
            below.wait_for_carrier(host, &is_owned, self.limit)?;
        }
        Ok(())
    }

    /// The links of which something is missing that their owner may still bring.
    fn missing(&self, owners: &Owners, plan: &Plan, host: &Host) -> BTreeSet<IfName> {
        // The owner is queried once for each link.
        let set_by_profile =
            |step| set_on(step).filter(|(dev, group)| owners.settings_of(dev).contains(group));
        let steps = plan.steps.iter();
        let set = steps.clone().filter_map(set_by_profile).map(|(dev, _)| dev);
        let names: BTreeSet<&IfName> = steps.filter_map(made_on).chain(set).collect();
        names
            .into_iter()
            .filter(|name| {
                let now = host.state.link(name);
                self.owners.get(*name).is_some_and(|manager| {
                    now.is_none_or(|now| !owners.has_finished(*manager, name, now.index))
                })
            })
            .cloned()
            .collect()
    }

    /// Waits for the first links, and has the profiles of the second ones activated: as soon as `NetworkManager` knows the
    /// device under them. Returns whether nothing is awaited any more.
    fn wait(
        &mut self,
        owners: &Owners,
        (names, profiles): (BTreeSet<IfName>, BTreeSet<IfName>),
        until: Instant,
        (host, baseline): (&mut Host, &mut HostBaseline),
        progress: &mut dyn Listener,
    ) -> Result<bool, Error> {
        self.announce(names.into_iter().collect(), progress);
        let mut last = None;
        self.limit.wait_for_managers(until, || {
            host.refresh()?;
            let is_due = last.is_none_or(|last: Instant| last.elapsed() >= AGAIN);
            for name in profiles.iter().filter(|_| is_due) {
                if host.state.link(name).is_none() {
                    let refusal = activate(self.permit, owners, name);
                    self.activated.insert(name.clone(), refusal);
                    last = Some(Instant::now());
                }
            }
            baseline.learn(&host.state);
            let (plan, _) = plan_of(host, baseline);
            Ok(self.missing(owners, &plan, host).is_empty())
        })
    }

    fn announce(&self, names: Vec<IfName>, progress: &mut dyn Listener) {
        let grace = self.limit.limits.manager_grace;
        for name in &names {
            if let Some(manager) = self.owners.get(name) {
                journal::waits(name, *manager, grace);
            }
        }
        progress.notice(Progress::Waiting(Wait::Manager, names, grace));
    }

    /// The links that `NetworkManager` has a profile of, and did not make.
    fn unmade_profiles(&self, plan: &Plan) -> BTreeSet<IfName> {
        plan.steps
            .iter()
            .filter_map(|step| match step {
                Step::AddLink(link) => Some(&link.name),
                _ => None,
            })
            .filter(|name| {
                self.owners.get(*name) == Some(&Manager::NetworkManager)
                    && !self.activated.contains_key(*name)
            })
            .cloned()
            .collect()
    }

    /// What the profile of a device sets on it.
    pub(super) fn settings_of(&self, name: &IfName) -> Groups {
        let known = self.known.as_ref();
        known
            .map(|known| known.settings_of(name))
            .unwrap_or_default()
    }

    /// What netfix did in place of an owner.
    pub(in crate::restore) fn findings(&self, done: &[Step]) -> Vec<Problem> {
        let mut findings: Vec<_> = self
            .known
            .iter()
            .flat_map(|known| &known.unknown)
            .filter(|_| !done.is_empty())
            .map(|(manager, error)| {
                let object =
                    manager.map_or_else(|| "D-Bus".to_owned(), |manager| manager.to_string());
                let error = error.clone();
                RestoreCause::ManagerUnreachable { error }.warning(object)
            })
            .collect();
        let made: BTreeSet<&IfName> = done
            .iter()
            .filter(|step| matches!(step, Step::AddLink(_)))
            .filter_map(made_on)
            .collect();
        for step in done {
            let owner = made_on(step).and_then(|name| Some((name, *self.owners.get(name)?)));
            let Some((name, manager)) = owner else {
                continue;
            };
            findings.extend(match step {
                Step::AddLink(_) => Some(self.made(name, manager)),
                // What the link lost with it is no finding of its own.
                _ if made.contains(name) => None,
                _ => Some(RestoreCause::UnknownToManager { manager }.warning(step)),
            });
        }
        findings
    }

    fn made(&self, name: &IfName, manager: Manager) -> Problem {
        let limit = self.limit.limits.manager_grace;
        let cause = match manager {
            Manager::NetworkManager => RestoreCause::NotActivated {
                limit,
                error: self.activated.get(name).cloned().flatten(),
            },
            Manager::Networkd | Manager::Ifupdown => {
                RestoreCause::MadeForManager { manager, limit }
            }
        };
        cause.warning(name)
    }
}
