//! Steps that failed, and their problems.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use crate::kernel::{Errno, Error};
use crate::model::problem::{ClaimHolder, RestoreCause};
use crate::model::{Address, IfName, LinkKind, Mac, NetState, Parent, Problem};
use crate::plan::{NetlinkStep, Plan, Step, snapshot_quality};
use crate::restore::apply::{functions, nic};

/// How long a device may refuse to go up while its driver resets it: ice does so for some time after it has made the device (`ice_open`).
pub(crate) const RESET_LIMIT: Duration = Duration::from_secs(10);

/// A step that failed.
#[derive(Debug)]
pub(crate) struct FailedStep {
    pub step: Step,
    pub error: Error,
    /// The number of virtual functions of the device that it takes up or creates a link on; `None`: no device.
    vfs: Option<u32>,
}

/// How many virtual functions a link has, if it is a device.
fn functions_of(name: &IfName, state: &NetState) -> Option<u32> {
    let device = state.link(name)?;
    let is_device = device.kind == LinkKind::Physical;
    is_device.then(|| device.sriov().map_or(0, |sriov| sriov.vfs))
}

/// Whether a device that is to go up may be in a reset.
fn may_reset(errno: Errno) -> bool {
    matches!(errno, Errno::EBUSY | Errno::EAGAIN | Errno::ENETDOWN)
}

/// Whether a step failed because a driver may reset its device.
pub(super) fn is_of_reset(step: &NetlinkStep, errno: Errno, state: &NetState) -> bool {
    let device = step.takes_up().and_then(|dev| functions_of(dev, state));
    device.is_some() && may_reset(errno)
}

/// Takes a device up once its driver has reset it, for as long as there is `patience`. The kernel reports no end of a reset.
pub(super) fn after_reset(
    mut errno: Errno,
    patience: &mut Duration,
    mut attempt: impl FnMut() -> Result<(), Errno>,
) -> Result<(), Errno> {
    const PAUSE: Duration = Duration::from_millis(100);
    while may_reset(errno) && !patience.is_zero() {
        thread::sleep(PAUSE);
        *patience = patience.saturating_sub(PAUSE);
        match attempt() {
            Ok(()) => return Ok(()),
            Err(other) => errno = other,
        }
    }
    Err(errno)
}

impl FailedStep {
    /// `state` has the device that it takes up, or the parent of the link that it creates.
    pub(crate) fn new(step: Step, error: Error, state: &NetState) -> Self {
        let dev = match &step {
            Step::AddLink(link) => match &link.parent {
                Some(Parent::Host(parent) | Parent::Own(parent)) => Some(parent),
                _ => None,
            },
            step => step.netlink().and_then(NetlinkStep::takes_up),
        };
        let vfs = dev.and_then(|dev| functions_of(dev, state));
        Self { step, error, vfs }
    }

    /// The link that could not be taken up.
    pub(crate) fn takes_up(&self) -> Option<&IfName> {
        self.step.netlink().and_then(NetlinkStep::takes_up)
    }

    /// The link that cannot go up because another one has its MAC; older kernels say `EBUSY`.
    pub(crate) fn contested_link(&self) -> Option<&IfName> {
        let is_taken = matches!(self.error.errno(), Some(Errno::EADDRINUSE | Errno::EBUSY));
        self.takes_up().filter(|_| is_taken && !self.is_of_reset())
    }

    /// Whether a device cannot go up because of a reset.
    pub(crate) fn is_of_reset(&self) -> bool {
        self.vfs.is_some() && self.takes_up().is_some() && self.error.errno().is_some_and(may_reset)
    }

    /// The parent that takes no macvlan or ipvlan: something receives its packets. Without a name and an index nothing else is busy.
    fn occupied_parent(&self) -> Option<&IfName> {
        let Step::AddLink(link) = &self.step else {
            return None;
        };
        let receives = link.kind.is_macvlan() || link.kind.is_ipvlan();
        let is_busy = receives && self.error.errno() == Some(Errno::EBUSY);
        match &link.parent {
            Some(Parent::Host(parent) | Parent::Own(parent)) if is_busy => Some(parent),
            _ => None,
        }
    }

    /// The group that it could not add, because the kernel keeps the membership of the former link.
    fn kept_group(&self) -> Option<&Address> {
        match self.step.netlink()? {
            NetlinkStep::AddAddress(address) if self.error.errno() == Some(Errno::EADDRINUSE) => {
                Some(address).filter(|one| one.is_joined_group())
            }
            _ => None,
        }
    }

    /// The failure as a problem; `owner` has the contested MAC.
    fn problem(&self, owner: Option<&(Mac, ClaimHolder)>) -> Problem {
        if let Some(address) = self.kept_group() {
            return snapshot_quality::membership(address);
        }
        let error = self.error.to_string();
        let errno = self.error.errno();
        if let Some(parent) = self.occupied_parent() {
            let (parent, vfs) = (parent.clone(), self.vfs.unwrap_or_default());
            let cause = RestoreCause::ParentOccupied { parent, vfs, error };
            return cause.error(&self.step);
        }
        let cause = match &self.step {
            _ if self.is_of_reset() => RestoreCause::DeviceResets {
                limit: RESET_LIMIT,
                error,
            },
            _ if self.contested_link().is_some() => RestoreCause::MacTaken {
                owner: owner.cloned(),
                error,
            },
            Step::AddLink(_) if errno == Some(Errno::ENODEV) => RestoreCause::ParentGone { error },
            Step::AddLink(_) if errno == Some(Errno::EEXIST) => RestoreCause::PlaceTaken { error },
            Step::Netlink(NetlinkStep::AddRoute { .. }) if errno == Some(Errno::EEXIST) => {
                RestoreCause::RoutePlaceTaken { error }
            }
            step if functions::is_about_one(step) => functions::cause(Some(error)),
            _ => RestoreCause::StepFailed { error },
        };
        match self.takes_up() {
            Some(dev) => cause.error(format!("link {dev}")),
            None => cause.error(&self.step),
        }
    }
}

/// The steps that are still missing, each with why it failed, after what no step could restore.
pub(crate) fn remaining(
    plan: &Plan,
    failures: &[FailedStep],
    owner: Option<&(Mac, ClaimHolder)>,
) -> Vec<Problem> {
    let mut problems = plan.problems.clone();
    let is_other = |step: &&Step| !matches!(step, Step::Nic(_));
    let later = plan.later.iter().filter(is_other);
    problems.extend(later.map(|step| RestoreCause::WaitsForCarrier.warning(step)));
    problems.extend(nic::remaining(plan, failures));
    let missing: HashSet<&Step> = plan.steps.iter().filter(is_other).collect();
    let failed = failures
        .iter()
        .filter(|failed| missing.contains(&failed.step) || failed.takes_up().is_some());
    let mut failed = failed.map(|failed| failed.problem(owner)).peekable();
    // A link that could not be created explains everything that is missing on it.
    let is_explained = failed.peek().is_some();
    problems.extend(failed.filter(|problem| !plan.problems.contains(problem)));
    if !is_explained {
        let steps = plan.steps.iter().filter(is_other);
        problems.extend(steps.map(|step| {
            let cause = if functions::is_about_one(step) {
                functions::cause(None)
            } else {
                RestoreCause::StepWithoutEffect
            };
            cause.error(step)
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Link;
    use crate::model::net::link::nic::{NicState, Sriov};
    use crate::model::net::link::{Macvlan, MacvlanMode};
    use crate::plan::Change;

    fn state(vfs: u32) -> NetState {
        let sriov = Some(Sriov {
            vfs,
            ..Sriov::default()
        });
        let nic = Some(Box::new(NicState {
            sriov,
            ..NicState::default()
        }));
        let device = Link {
            nic,
            ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
        };
        NetState {
            links: vec![device],
            ..NetState::default()
        }
    }

    fn told(step: Step, errno: Errno, vfs: u32) -> String {
        let failed = FailedStep::new(step, Error::Kernel(errno), &state(vfs));
        failed.problem(None).to_string()
    }

    #[test]
    fn a_device_that_is_reset_has_no_contested_mac_and_a_macvlan_has() {
        let up = |dev: &str| Step::set(&dev.parse().unwrap(), Change::Up);
        for errno in [Errno::EBUSY, Errno::EAGAIN, Errno::ENETDOWN] {
            let text = told(up("eth0"), errno, 0);
            assert!(
                text.starts_with("failed: link eth0: its driver refused for 10 s"),
                "{text}"
            );
        }
        let text = told(up("eth9"), Errno::EBUSY, 0);
        assert!(text.starts_with("mac-conflict: link eth9"), "{text}");
    }

    #[test]
    fn a_parent_that_takes_no_macvlan_is_no_taken_name() {
        let macvlan = || {
            let kind = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
            Step::add_link(Link {
                parent: Some(Parent::Host("eth0".parse().unwrap())),
                ..Link::plain("eth0".parse().unwrap(), kind)
            })
        };
        let text = told(macvlan(), Errno::EBUSY, 2);
        assert!(text.starts_with("link-conflict: "), "{text}");
        assert!(
            text.contains("echo 0 >/sys/class/net/eth0/device/sriov_numvfs"),
            "{text}"
        );
        let text = told(macvlan(), Errno::EBUSY, 0);
        assert!(text.contains("such as a bridge or a bond"), "{text}");
        let text = told(macvlan(), Errno::EEXIST, 2);
        assert!(text.contains("another link is in its place"), "{text}");
    }

    #[test]
    fn a_device_goes_up_once_its_driver_has_reset_it() {
        let mut answers = [Err(Errno::EAGAIN), Err(Errno::ENETDOWN), Ok(())].into_iter();
        let mut patience = RESET_LIMIT;
        let up = after_reset(Errno::EBUSY, &mut patience, || answers.next().unwrap());
        assert_eq!((up, answers.next()), (Ok(()), None));
        assert!(patience < RESET_LIMIT);
        // Another reason ends it, and so does the end of the patience, which is common to all devices.
        let mut patience = Duration::from_millis(200);
        let refused = after_reset(Errno::EBUSY, &mut patience, || Err(Errno::EADDRINUSE));
        assert_eq!(refused, Err(Errno::EADDRINUSE));
        let refused = after_reset(Errno::EBUSY, &mut patience, || Err(Errno::EBUSY));
        assert_eq!((refused, patience), (Err(Errno::EBUSY), Duration::ZERO));
        let never = after_reset(Errno::EBUSY, &mut patience, || unreachable!());
        assert_eq!(never, Err(Errno::EBUSY));
    }
}
