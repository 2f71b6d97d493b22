//! Carries out a plan: each step becomes its netlink requests, many in one send, or a write below `/proc/sys/net`, or ioctls.
//!
//! A step that fails does not stop those after it. Failures are returned, with the kernel's errno.

pub(super) mod detour;
mod failed;
mod functions;
mod nic;
mod take_back;

use std::collections::BTreeMap;
use std::time::Duration;

use super::between::{self, Between};
use super::request;
use crate::kernel::conf::{sysctl, sysfs};
use crate::kernel::link::multicast;
use crate::kernel::{Errno, Error, Request, Socket, link};
use crate::model::net::address::Maker;
use crate::model::{IfName, Link, NetState, Parent};
use crate::plan::{Change, NetlinkStep, NicStep, Step};
use crate::restore::apply::detour::is_taken;
use crate::restore::permit::Permit;
pub(crate) use failed::{FailedStep, RESET_LIMIT, remaining};
pub(crate) use nic::outcomes;
pub(crate) use take_back::take_back;

/// The steps that were carried out, and those that failed; each in their order.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub done: Vec<Step>,
    pub failures: Vec<FailedStep>,
    /// The namespace through which devices went, to be closed when all else is done.
    pub between: Option<Between>,
}

/// Carries out steps in the calling thread's namespace, through a socket opened in it, as far as the socket's time reaches.
/// Devices whose drivers reset them are awaited for `patience` together.
///
/// `state` is what the namespace held when the steps were planned.
pub(crate) fn run(
    permit: Permit<'_>,
    socket: &mut Socket,
    state: &NetState,
    steps: Vec<Step>,
    patience: Duration,
) -> Applied {
    let indexes = state
        .links
        .iter()
        .map(|link| (link.name.clone(), link.index))
        .collect();
    let mut runner = Runner {
        socket,
        state,
        indexes,
        settings: Vec::new(),
        pending: Vec::new(),
        requests: Vec::new(),
        applied: Applied::default(),
        is_in_earnest: permit.is_in_earnest(),
        patience,
    };
    for step in steps {
        runner.step(step);
        if runner.socket.is_late() {
            break;
        }
    }
    runner.flush();
    runner.applied
}

/// The result of a step with these requests.
///
/// What is to be deleted may be gone, and with an address the kernel deletes not always what the plan expects.
fn result_of(
    step: &NetlinkStep,
    results: impl Iterator<Item = Result<(), Errno>>,
) -> Result<(), Errno> {
    let expected: &[Errno] = match step {
        NetlinkStep::Rewrite(_) => &[
            Errno::EEXIST,
            Errno::ESRCH,
            Errno::EADDRNOTAVAIL,
            Errno::ENOENT,
        ],
        NetlinkStep::DeleteRoute(_) => &[Errno::ESRCH],
        NetlinkStep::AddGroup { .. } => &[Errno::EEXIST],
        // The kernel has added it meanwhile.
        NetlinkStep::AddAddress(address) if address.maker == Maker::Kernel => &[Errno::EEXIST],
        _ => &[],
    };
    let mut failed = results.filter_map(Result::err);
    failed
        .find(|errno| !expected.contains(errno))
        .map_or(Ok(()), Err)
}

/// So many requests are kept at most before they are sent.
const MANY: usize = 1024;

struct Runner<'a> {
    socket: &'a mut Socket,
    state: &'a NetState,
    indexes: BTreeMap<IfName, u32>,
    /// Settings of a NIC not sent yet, of one device and group.
    settings: Vec<NicStep>,
    /// Requests not sent yet.
    requests: Vec<Request>,
    /// Their steps, each with the number of its requests.
    pending: Vec<(NetlinkStep, usize)>,
    applied: Applied,
    is_in_earnest: bool,
    /// How long resets of devices may still take.
    patience: Duration,
}

impl Runner<'_> {
    /// Sends what waits before each step that is no message: a link must exist for those after it, and settings count only if
    /// they are set before the link goes up.
    fn step(&mut self, step: Step) {
        let failures = &self.applied.failures;
        if failures
            .iter()
            .any(|failed| functions::needs_functions(&step, &failed.step))
        {
            return;
        }
        match step {
            // These have no namespace.
            Step::Nic(_) | Step::Sriov(_) if !self.is_in_earnest => {}
            Step::Nic(step) => self.add_setting(step),
            Step::Netlink(step) => self.add_requests(step),
            other => {
                self.flush();
                let result = self.carry_out(&other);
                self.note(other, result);
            }
        }
    }

    /// A setting of a NIC is sent with those of its group before it.
    fn add_setting(&mut self, step: NicStep) {
        let last = self.settings.last();
        let goes_along = last.is_none_or(|last| last.goes_with(&step));
        if !goes_along || !self.requests.is_empty() {
            self.flush();
        }
        self.settings.push(step);
    }

    fn add_requests(&mut self, step: NetlinkStep) {
        if !self.settings.is_empty() {
            self.flush();
        }
        match self.requests(&step) {
            Ok(requests) => {
                self.learn_name(&step);
                self.pending.push((step, requests.len()));
                self.requests.extend(requests);
                if self.requests.len() >= MANY {
                    self.flush();
                }
            }
            Err(errno) => self.note(step, Err(errno)),
        }
    }

    /// A step that is no request which is sent with others.
    fn carry_out(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::AddLink(link) => self.add_link(link)?,
            Step::Sysctl {
                dev,
                folder,
                key,
                value,
                now: _,
            } => sysctl::write(*folder, dev, key, value)?,
            Step::Sysfs { dev, key, value } => sysfs::write(dev, key, value)?,
            Step::Sriov(change) => {
                let device = self.index(&change.dev);
                functions::write(self.socket, device, change)?;
            }
            Step::JoinGroups { dev, groups } => groups
                .iter()
                .try_for_each(|group| multicast::join(dev, *group))?,
            Step::Index { dev, index, now: _ } => {
                let indexes = (self.index(dev)?, *index);
                between::renumber(&mut self.applied.between, self.socket, indexes)?;
            }
            Step::Nic(_) | Step::Netlink(_) => {}
        }
        Ok(())
    }

    /// The steps after a renaming have the new name.
    fn learn_name(&mut self, step: &NetlinkStep) {
        if let NetlinkStep::SetLink { dev, change, .. } = step
            && let Change::Name(name) = change
            && let Ok(index) = self.index(dev)
        {
            self.indexes.insert(name.clone(), index);
        }
    }

    fn flush(&mut self) {
        let settings = std::mem::take(&mut self.settings);
        for (step, result) in nic::set(settings, self.state, nic::send) {
            self.note(step, result);
        }
        let steps = std::mem::take(&mut self.pending);
        let requests = std::mem::take(&mut self.requests);
        match self.socket.run(&requests) {
            Ok(results) => {
                let mut results = results.into_iter();
                for (step, count) in steps {
                    let result = result_of(&step, results.by_ref().take(count))
                        .or_else(|errno| self.around(&step, errno));
                    self.note(step, result);
                }
            }
            Err(error) => {
                for (step, _) in steps {
                    self.note(step, Err(error.clone()));
                }
            }
        }
    }

    /// Tries another way to carry out a step that the kernel refused with `errno`.
    fn around(&mut self, step: &NetlinkStep, errno: Errno) -> Result<(), Errno> {
        if failed::is_of_reset(step, errno, self.state) {
            let mut patience = self.patience;
            let result = failed::after_reset(errno, &mut patience, || self.again(step));
            self.patience = patience;
            return result;
        }
        let own = request::of(step, self.is_in_earnest, |name| self.index(name))?;
        let Some(detour) = self.detour(step, errno) else {
            return Err(errno);
        };
        let (before, count) = (detour.before(), own.len());
        let results = self.socket.run(&detour.around(own)).map_err(|_| errno)?;
        result_of(step, results.into_iter().skip(before).take(count))
    }

    /// Sends the requests of a step once more.
    fn again(&mut self, step: &NetlinkStep) -> Result<(), Errno> {
        if self.socket.is_late() {
            return Err(Errno::ETIMEDOUT);
        }
        let own = request::of(step, self.is_in_earnest, |name| self.index(name))?;
        let results = self.socket.run(&own);
        result_of(step, results.map_err(|_| Errno::EIO)?.into_iter())
    }

    fn detour(&self, step: &NetlinkStep, errno: Errno) -> Option<detour::Detour> {
        detour::of(step, errno, self.state, |name| self.index(name))
    }

    /// The requests of a step. Routes that it deletes and adds again are tried before: what the kernel would not accept again stays.
    fn requests(&mut self, step: &NetlinkStep) -> Result<Vec<Request>, Errno> {
        let own = request::of(step, self.is_in_earnest, |name| self.index(name))?;
        let trials = |runner: &Self| request::trials(step, |name| runner.index(name));
        if trials(self)?.is_empty() {
            return Ok(own);
        }
        self.flush();
        let Some(errno) = self.refusal(&trials(self)?) else {
            return Ok(own);
        };
        let detour = || self.detour(step, errno).ok_or(errno);
        let (first, second) = (detour()?, detour()?);
        let tried = first.around(trials(self)?);
        self.refusal(&tried)
            .map_or_else(|| Ok(second.around(own)), Err)
    }

    /// Why the kernel would not accept one of these routes, which are there.
    fn refusal(&mut self, trials: &[Request]) -> Option<Errno> {
        // Without an answer the requests themselves fail.
        let results = self.socket.run(trials).unwrap_or_default();
        let mut refused = results.into_iter().filter_map(Result::err);
        refused.find(|errno| *errno != Errno::EEXIST)
    }

    /// Creates a link on one of the same namespace, and learns its index.
    fn add_link(&mut self, link: &Link) -> Result<(), Error> {
        let parent = match &link.parent {
            Some(Parent::Own(name)) => Some(self.index(name)?),
            _ => None,
        };
        let wanted = Some(link.index).filter(|index| *index != 0);
        let place = |index| link::Placement {
            name: Some(&link.name),
            index,
            netns: None,
            parent,
        };
        let mut result = self.run_one(link::add(link, place(wanted))?);
        let errno = result.as_ref().err().and_then(Error::errno);
        if wanted.is_some() && errno.is_some_and(|errno| is_taken(errno, link, self.state)) {
            // The old index is taken; the link matters more than its number.
            result = self.run_one(link::add(link, place(None))?);
        }
        result?;
        let index = link::index_of(self.socket, &link.name)?;
        self.indexes.insert(link.name.clone(), index);
        Ok(())
    }

    fn index(&self, name: &IfName) -> Result<u32, Errno> {
        self.indexes.get(name).copied().ok_or(Errno::ENODEV)
    }

    fn run_one(&mut self, request: Request) -> Result<(), Error> {
        Ok(self.socket.run_one(request)??)
    }

    fn note(&mut self, step: impl Into<Step>, result: Result<(), impl Into<Error>>) {
        let step = step.into();
        match result.map_err(Into::into) {
            Ok(()) => self.applied.done.push(step),
            Err(error) => {
                let failed = FailedStep::new(step, error, self.state);
                self.applied.failures.push(failed);
            }
        }
    }
}
