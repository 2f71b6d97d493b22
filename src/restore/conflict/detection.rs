//! The end of the kernel's duplicate address detection (RFC 4862): only then it is known whether another machine has an address
//! that a restore has added.
//!
//! Nothing but the verdict waits for it.

use std::collections::HashMap;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Pod;
use crate::inventory::visit::visit;
use crate::kernel::{Error, Socket, state};
use crate::model::problem::RestoreCause;
use crate::model::{Address, Indexed, NetState, Problem};
use crate::plan::addresses::duplicate;
use crate::restore::facts::{RestoreState, Restored};

/// It begins up to a second after a link is up, and sends one probe that it gives a second.
const LIMIT: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(100);

/// The addresses that a restore has added, and that are not usable yet.
#[derive(Debug, Default)]
pub(crate) struct Detection {
    host: Vec<Address>,
    pods: Vec<Detecting>,
}

/// Those of one pod.
#[derive(Debug)]
pub(in crate::restore) struct Detecting {
    pub pod: Pod,
    pub addresses: Vec<Address>,
}

impl AsMut<Pod> for Detecting {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.pod
    }
}

/// The addresses of a state that are not usable yet, among those that a restore has added.
pub(in crate::restore) fn unfinished(
    state: &NetState,
    is_added: impl Fn(&Address) -> bool,
) -> Vec<Address> {
    let addresses = state.addresses.iter();
    addresses
        .filter(|one| one.is_in_detection() && !one.comes_by_itself() && is_added(one))
        .cloned()
        .collect()
}

impl Detection {
    pub(in crate::restore) fn new(host: Vec<Address>, pods: Vec<Detecting>) -> Self {
        Self { host, pods }
    }

    /// Adds those of an earlier restore.
    pub(in crate::restore) fn add(&mut self, earlier: Self) {
        self.host.extend(earlier.host);
        let Self { pods, .. } = self;
        let is_new = |one: &Detecting| pods.iter().all(|own| own.pod.info.id != one.pod.info.id);
        let (kept, _): (Vec<_>, Vec<_>) = earlier.pods.into_iter().partition(is_new);
        pods.extend(kept);
    }

    /// Waits for the end; returns what is not usable then.
    fn wait(mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let deadline = Instant::now() + LIMIT;
        loop {
            let is_over = Instant::now() >= deadline;
            self.observe(is_over, &mut problems);
            if is_over || self.host.is_empty() && self.pods.is_empty() {
                return problems;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Reads the addresses once, and keeps those that are still not usable.
    fn observe(&mut self, is_over: bool, problems: &mut Vec<Problem>) {
        if !self.host.is_empty() {
            let read = Socket::open_here().and_then(|mut socket| read(&mut socket));
            sort_out(&mut self.host, read, is_over, problems);
        }
        let read = visit(&mut self.pods, |one| read(one.pod.socket()?));
        for (one, read) in self.pods.iter_mut().zip(read) {
            let mut found = Vec::new();
            let read = read.and_then(|read| read);
            sort_out(&mut one.addresses, read, is_over, &mut found);
            let id = &one.pod.info.id;
            problems.extend(found.into_iter().map(|problem| problem.of(id)));
        }
        self.pods.retain(|one| !one.addresses.is_empty());
    }
}

fn read(socket: &mut Socket) -> Result<NetState, Error> {
    state::links_and_addresses(socket, None)
}

/// Keeps the addresses for which the detection is under way. A namespace that cannot be read any more has ended.
fn sort_out(
    addresses: &mut Vec<Address>,
    read: Result<NetState, Error>,
    is_over: bool,
    problems: &mut Vec<Problem>,
) {
    let Ok(state) = read else {
        return addresses.clear();
    };
    let state = Indexed::new(&state);
    let present = state.state.addresses.iter();
    let present: HashMap<_, _> = present.map(|now| (now.key(), now)).collect();
    addresses.retain(|address| {
        let object = format!("address {address}");
        let Some(now) = present.get(&address.key()).copied() else {
            // With `accept_dad` 2 the kernel turns IPv6 off.
            problems.push(RestoreCause::StepWithoutEffect.error(object));
            return false;
        };
        // Without carrier it does not begin, and that is reported for the link.
        let has_carrier = state.link(&now.dev).is_some_and(|link| link.flags.carrier);
        if now.has_failed_detection() {
            problems.push(duplicate(now, state.state));
        } else if now.is_in_detection() && has_carrier {
            if is_over {
                problems.push(RestoreCause::DetectionUnfinished { limit: LIMIT }.warning(now));
            }
            return true;
        }
        false
    });
}

impl Restored {
    /// Waits until it is known whether another machine has an address that was added, after the pods' outage. Returns what was found, after which its
    /// pod counts as not restored.
    pub(crate) fn end_detection(&mut self) -> Vec<Problem> {
        let found = mem::take(&mut self.detection).wait();
        for problem in found.iter().filter(|one| one.is_error()) {
            let mut pods = self.pods.iter_mut();
            let state = match &problem.pod {
                Some(id) => pods
                    .find(|one| one.pod.info.id == *id)
                    .map(|pod| &mut pod.state),
                None => self.host.as_mut().map(|(_, state)| state),
            };
            if let Some(state) = state.filter(|state| state.is_good()) {
                *state = RestoreState::Partial;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Code::{AddressConflict, Failed};
    use crate::model::net::address::{DADFAILED, Maker, NODAD, PERMANENT, TENTATIVE};

    fn address(text: &str, flags: u32) -> Address {
        Address {
            flags,
            ..Address::plain("eth0".parse().unwrap(), text.parse().unwrap(), 64)
        }
    }

    #[test]
    fn a_verdict_waits_only_for_what_was_added_and_is_still_probed() {
        let own = address("fd00::1", PERMANENT | TENTATIVE);
        let link_local = Address {
            maker: Maker::Kernel,
            ..address("fe80::1", PERMANENT | TENTATIVE)
        };
        let state = NetState {
            addresses: vec![
                own.clone(),
                link_local,
                address("10.0.0.1", PERMANENT),
                address("fd00::2", PERMANENT | NODAD),
                address("fd00::3", PERMANENT | TENTATIVE | DADFAILED),
            ],
            ..NetState::default()
        };
        assert_eq!(unfinished(&state, |_| true), [own]);
        assert!(unfinished(&state, |_| false).is_empty());
    }

    #[test]
    fn what_is_still_probed_at_the_end_is_unknown_and_what_is_gone_is_missing() {
        let state = |flags: &[u32]| {
            let link = crate::model::Link::plain(
                "eth0".parse().unwrap(),
                crate::model::LinkKind::Physical,
            );
            let mut state = NetState {
                links: vec![link],
                ..NetState::default()
            };
            state.links[0].flags.carrier = true;
            let flags = flags.iter();
            state.addresses = flags.map(|flags| address("fd00::1", *flags)).collect();
            state
        };
        let codes = |now: NetState, is_over| {
            let (mut left, mut problems) = (vec![address("fd00::1", 0)], Vec::new());
            sort_out(&mut left, Ok(now), is_over, &mut problems);
            let found = problems
                .iter()
                .map(|one: &Problem| (one.code(), one.is_error()));
            (found.collect::<Vec<_>>(), left.len())
        };
        assert_eq!(codes(state(&[PERMANENT]), false), (vec![], 0));
        assert_eq!(codes(state(&[TENTATIVE]), false), (vec![], 1));
        let unknown = (vec![(AddressConflict, false)], 1);
        assert_eq!(codes(state(&[TENTATIVE]), true), unknown);
        let failed = state(&[TENTATIVE | DADFAILED]);
        assert_eq!(codes(failed, false), (vec![(AddressConflict, true)], 0));
        assert_eq!(codes(state(&[]), false), (vec![(Failed, true)], 0));
    }
}
