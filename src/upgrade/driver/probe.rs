//! What a probe after a restore finds: gateways, targets, and the NICs of the host.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::inventory::{Inventory, nics};
use crate::kernel::events::LinkEvents;
use crate::model::net::nic;
use crate::model::problem::{Object, WindowCause};
use crate::model::window::PhaseName;
use crate::model::{IfName, Problem, Window};
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::{Area, WindowProblems};
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::phases::verify;
use crate::window::event::{Event, Reached};
use crate::window::facts::Silence;

impl Driver<'_> {
    /// Probes again before COMMAND if something was silent: what answers now must answer after COMMAND too.
    pub(super) fn probe_silent(&mut self, network: &mut PodNetwork) {
        let baseline = &mut network.baseline;
        if baseline.silent.is_empty() {
            return;
        }
        let (request, session) = (self.request, &mut self.ledger.session);
        let (pods, guard) = (&session.window().pods, session.guard.as_ref());
        let inventory = Inventory::open(&request.selection).ok();
        let probed = inventory.and_then(|inventory| {
            verify::before(inventory, pods, baseline, guard, request, self.context)
        });
        if let Some((still, unrecorded)) = probed {
            let is_still = |one: &Silence| still.iter().any(|other| one.is_same(other));
            baseline.silent.retain(is_still);
            session.note_silent(&baseline.silent);
            self.ledger.problems.add(Area::Preflight, unrecorded);
        }
    }

    /// Records what a probe finds; returns whether all is well.
    pub(super) fn probe(&mut self, network: &mut PodNetwork) -> bool {
        let is_selection = !self.request.selection.is_everything();
        let session = &mut self.ledger.session;
        let (pods, baseline) = (&session.window().pods, &network.baseline);
        // A guard restores anew what is lost while it waits for answers.
        let events = session
            .window()
            .is_unplanned()
            .then(LinkEvents::subscribe)
            .and_then(Result::ok);
        let loss = events.map(|events| AwaitedDevices::new(events, baseline.devices()));
        let is_lost = || loss.as_ref().is_some_and(AwaitedDevices::is_known);
        let is_lost: Option<&dyn Fn() -> bool> = loss.is_some().then_some(&is_lost);
        let (verified, mut problems) =
            verify::after(pods, baseline, self.request, is_lost, self.context);
        let known = nic::absent(session.window().nics.as_deref());
        session.note_nics_after(nics::read(&baseline.devices()).ok());
        let (taken, absent) = absent(session.window(), &known, &self.ledger.problems);
        session.note_nics_taken(&taken);
        if let Some(verified) = &verified {
            session.log(&Event::Verified(Reached {
                is_selection,
                ..Reached::of(verified)
            }));
            session.note_verified(verified);
            let found = verified.for_record(false);
            problems.extend(network.baseline.note_answers(found, session.guard.as_ref()));
        }
        let duplicates = self.restored.end_detection();
        if !duplicates.is_empty() {
            session.note_states(&self.restored.states());
        }
        problems.extend(duplicates);
        let absent = absent.iter().map(|name| WindowCause::NicAbsent.error(name));
        problems.extend(absent);
        let is_well = !problems.iter().any(Problem::is_error);
        self.ledger.problems.add(Area::Network, problems);
        network.after.unanswered = verified.map(|one| one.unanswered).unwrap_or_default();
        is_well
    }
}

/// Whether one of some devices was deleted.
struct AwaitedDevices {
    devices: BTreeSet<IfName>,
    events: RefCell<LinkEvents>,
    is_known: Cell<bool>,
}

impl AwaitedDevices {
    /// From now on.
    fn new(events: LinkEvents, devices: BTreeSet<IfName>) -> Self {
        Self {
            devices,
            events: RefCell::new(events),
            is_known: Cell::new(false),
        }
    }

    fn is_known(&self) -> bool {
        let deleted = self.events.borrow_mut().deleted().unwrap_or_default();
        let is_new = deleted.iter().any(|name| self.devices.contains(name));
        self.is_known.set(self.is_known.get() || is_new);
        self.is_known.get()
    }
}

/// The NICs of the host that a new pod may have, because they were there until kubelet ran again; and those that COMMAND took and
/// nothing brought back, but for those that a restore has named.
fn absent(
    window: &Window,
    known: &BTreeSet<IfName>,
    problems: &WindowProblems,
) -> (BTreeSet<IfName>, BTreeSet<IfName>) {
    let may_be_taken = window.phase() == Some(PhaseName::RebuildCheck);
    let is_named = |name: &IfName| {
        let mut found = problems.of(Area::Network);
        found.any(|problem| problem.is_error() && problem.object == Object::from(name))
    };
    let absent = nic::absent(window.nics.as_deref()).into_iter();
    absent
        .filter(|name| !is_named(name))
        .partition(|name| may_be_taken && !known.contains(name))
}

#[cfg(test)]
mod tests {
    use crate::model::problem::PlanCause;
    use crate::upgrade::driver::probe::*;

    /// A record of three NICs that are there no more; kubelet runs again.
    fn window() -> Window {
        let text = include_str!("../../../testdata/windows/well.json");
        let mut window: Window = serde_json::from_str(text).unwrap();
        window.phases.last_mut().unwrap().to = None;
        nic::update(window.nics.as_mut().unwrap(), Some(Vec::new()));
        window
    }

    fn names<const N: usize>(names: [&str; N]) -> BTreeSet<IfName> {
        names.map(|name| name.parse().unwrap()).into()
    }

    #[test]
    fn a_nic_that_goes_once_kubelet_runs_again_may_be_in_a_new_pod() {
        let (mut window, problems) = (window(), WindowProblems::default());
        let found = absent(&window, &names(["eth1"]), &problems);
        assert_eq!(found, (names(["eno1", "eth0"]), names(["eth1"])));
        window.phases.pop();
        window.phases.last_mut().unwrap().to = None;
        let found = absent(&window, &names([]), &problems);
        let all = names(["eno1", "eth0", "eth1"]);
        assert_eq!(found, (names([]), all), "before that");
    }

    #[test]
    fn a_nic_that_a_restore_has_named_is_missing_and_not_named_twice() {
        let (window, mut problems) = (window(), WindowProblems::default());
        let missing = PlanCause::DeviceMissing { hardware: None };
        let eth0: IfName = "eth0".parse().unwrap();
        problems.add(Area::Network, [missing.error(eth0)]);
        let found = absent(&window, &names([]), &problems);
        assert_eq!(found, (names(["eno1", "eth1"]), names([])));
    }
}
