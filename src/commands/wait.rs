//! Waiting for the NIC: to be there, and to have carrier. By link events, not by looking again and again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::kernel::{Error, events};
use crate::model::{Code, IfName, Problem};
use crate::observe::Host;
use crate::plan::{self, HostLinks};

use super::check_in::Ground;
use super::window::Signals;

/// How long is left of `--wait`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience<'a> {
    until: Instant,
    /// What the user allowed in all.
    pub limit: Duration,
    /// What ends it early.
    signals: Option<&'a Signals>,
}

/// How long an end may take that somebody wants.
const SLICE: Duration = Duration::from_millis(250);

impl<'a> Patience<'a> {
    pub(super) fn new(limit: Duration) -> Self {
        Self { until: Instant::now() + limit, limit, signals: None }
    }

    /// The same, which ends when somebody wants an end.
    pub(super) fn until_interrupted(limit: Duration, signals: &'a Signals) -> Self {
        Self { signals: Some(signals), ..Self::new(limit) }
    }

    fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Waits by link events until `ready` says yes, as long as this lasts.
    fn wait(self, mut ready: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        let Some(signals) = self.signals else { return events::wait_for_link(self.left(), ready) };
        loop {
            let left = self.left();
            if events::wait_for_link(left.min(SLICE), &mut ready)? {
                return Ok(true);
            }
            if left <= SLICE || signals.interrupted() {
                return Ok(false);
            }
        }
    }
}

/// Waits until every device that the pods stand on is there, whatever its name; says whether they are.
pub(super) fn for_devices(
    host: &mut Host,
    ground: &mut Ground,
    patience: Patience<'_>,
) -> Result<bool, Error> {
    let mut all_there = |host: &mut Host| {
        host.refresh()?;
        ground.learn(&host.state);
        let observed = ground.observed(host, None);
        let (_, links) = plan::host(&ground.state, observed, &ground.devices);
        Ok(ground.devices.iter().all(|device| links.present.contains(device)))
    };
    if patience.limit.is_zero() { all_there(host) } else { patience.wait(|| all_there(host)) }
}

/// Waits until every device that was up, and is up, has carrier; returns those that still have none. One that could not be
/// taken up is told of as that.
pub(super) fn for_carrier(
    host: &mut Host,
    ground: &Ground,
    links: &HostLinks,
    patience: Patience<'_>,
) -> Result<Vec<Problem>, Error> {
    let was_up = |name: &&IfName| ground.state.link(name).is_some_and(|link| link.flags.up);
    let names: BTreeSet<IfName> = ground
        .devices
        .iter()
        .filter(was_up)
        .filter(|n| links.present.contains(*n))
        .map(|n| links.name_now(n))
        .collect();
    let has_carrier = |host: &Host, name: &IfName| {
        host.state.link(name).is_some_and(|link| link.flags.carrier || !link.flags.up)
    };
    let all = |host: &mut Host| {
        host.refresh()?;
        Ok::<_, Error>(names.iter().all(|name| has_carrier(host, name)))
    };
    let arrived = if patience.limit.is_zero() { all(host)? } else { patience.wait(|| all(host))? };
    if arrived {
        return Ok(Vec::new());
    }
    let problem = |name: &IfName| {
        let asked = !patience.limit.is_zero();
        let message = "is up but has no carrier: the pods are restored, but nothing reaches them";
        let make = if asked { Problem::error } else { Problem::warning };
        make(Code::NoCarrier, name.to_string(), message)
    };
    Ok(names.iter().filter(|name| !has_carrier(host, name)).map(problem).collect())
}
