//! What a probe after a restore finds: gateways, targets, and the NICs of the host.

use std::collections::BTreeSet;

use crate::inventory::nics;
use crate::model::net::nic;
use crate::model::problem::{Object, WindowCause};
use crate::model::window::PhaseName;
use crate::model::{IfName, Problem, Window};
use crate::upgrade::driver::Driver;
use crate::upgrade::ledger::{Area, WindowProblems};
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::phases::verify;
use crate::window::event::{Event, Reached};

impl Driver<'_> {
    /// Records what a probe finds; returns whether all is well.
    pub(super) fn probe(&mut self, network: &mut PodNetwork) -> bool {
        let is_selection = !self.request.selection.is_everything();
        let session = &mut self.ledger.session;
        let (pods, baseline) = (&session.window().pods, &network.baseline);
        let (verified, mut problems) = verify::after(pods, baseline, self.request, self.context);
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
