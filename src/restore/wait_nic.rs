//! Waits for the NIC: for its return, and for carrier. Link events end the wait.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::Error;
use crate::kernel::events::{self, LINKWATCH};
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::RestoreCause;
use crate::model::{IfName, Problem};
use crate::plan::{self, HostLinks};

/// What limits the wait for the NIC.
#[derive(Clone, Copy)]
pub(crate) struct WaitLimit<'a> {
    until: Instant,
    /// The whole time that the user allowed.
    pub limit: Duration,
    /// Whether a signal asks netfix to stop waiting, where signals may.
    interrupted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> WaitLimit<'a> {
    pub(crate) fn new(limit: Duration, interrupted: Option<&'a dyn Fn() -> bool>) -> Self {
        Self {
            until: Instant::now() + limit,
            limit,
            interrupted,
        }
    }

    /// The same for carrier, which no device that is up can have at once.
    pub(super) fn for_carrier(self) -> Self {
        Self {
            until: self.until.max(Instant::now() + LINKWATCH),
            limit: self.limit.max(LINKWATCH),
            ..self
        }
    }

    /// Waits until `ready` or the limit; returns whether it is ready. Without a limit `ready` is asked once.
    fn wait(self, mut ready: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        if self.limit.is_zero() {
            return ready();
        }
        events::wait_for_link(self.until, self.interrupted, ready)
    }
}

/// Waits until every device under the pods exists, under any name. The plan of the host names the missing ones.
pub(super) fn for_devices(
    host: &mut Host,
    baseline: &mut HostBaseline,
    limit: WaitLimit<'_>,
) -> Result<(), Error> {
    let all_there = || {
        host.refresh()?;
        baseline.learn(&host.state);
        let observed = baseline.observed(&host.state, None);
        let (_, links) = plan::host(&baseline.state, observed, &baseline.devices);
        let mut devices = baseline.devices.iter();
        Ok(devices.all(|device| links.present.contains(device)))
    };
    limit.wait(all_there).map(drop)
}

/// Waits until every device that was up, and is up, has carrier; returns a problem for each that has none. A device that
/// could not be taken up is a failed step instead.
pub(super) fn for_carrier(
    host: &mut Host,
    baseline: &HostBaseline,
    links: &HostLinks,
    limit: WaitLimit<'_>,
) -> Result<Vec<Problem>, Error> {
    let was_up = |name: &&IfName| {
        let then = baseline.state.link(name);
        then.is_some_and(|link| link.flags.up)
    };
    let names: BTreeSet<IfName> = baseline
        .devices
        .iter()
        .filter(was_up)
        .filter(|name| links.present.contains(*name))
        .map(|name| links.name_now(name))
        .collect();
    let has_carrier = |host: &Host, name: &IfName| {
        let now = host.state.link(name);
        now.is_some_and(|link| link.flags.carrier || !link.flags.up)
    };
    limit.for_carrier().wait(|| {
        host.refresh()?;
        Ok(names.iter().all(|name| has_carrier(host, name)))
    })?;
    let silent = names.iter().filter(|name| !has_carrier(host, name));
    let problem = |name| {
        // Without --wait the user did not ask for carrier.
        if limit.limit.is_zero() {
            RestoreCause::NoCarrier.warning(name)
        } else {
            RestoreCause::NoCarrier.error(name)
        }
    };
    Ok(silent.map(problem).collect())
}
