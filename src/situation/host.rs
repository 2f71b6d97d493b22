//! The host beside its record.

use std::collections::BTreeSet;

use crate::inventory::observe::Host;
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::MatchingCause;
use crate::model::text::join;
use crate::model::{IfName, LossCause, Problem};
use crate::plan::{self, HostLinks, Plan, snapshot_quality};
use crate::records::survey::Surveyed;

/// What is missing on the host, and its links as a restore would leave them.
pub(crate) fn plan_of(host: &Host, baseline: &HostBaseline) -> (Plan, HostLinks) {
    let observed = baseline.observed(&host.state, None);
    plan::host(&baseline.state, observed, &baseline.scope())
}

/// The devices that were made anew, lack something and are left out, because no selected pod needs them.
pub(crate) fn not_selected(host: &Host, baseline: &HostBaseline) -> Option<Problem> {
    let observed = baseline.observed(&host.state, None);
    let mut names = baseline.left_out(&host.state);
    names.retain(|name| {
        let (plan, _) = plan::host(&baseline.state, observed, &BTreeSet::from([name.clone()]));
        !plan.steps.is_empty() || plan.findings().next().is_some()
    });
    let cause = MatchingCause::HostNotSelected;
    (!names.is_empty()).then(|| cause.warning(join(names, ", ")))
}

/// What the host has lost since its state was recorded.
pub(crate) fn host_loss(surveyed: &Surveyed) -> Option<(IfName, LossCause)> {
    let recorded = surveyed.node_state.as_ref()?;
    let matched = surveyed.matched.iter();
    let under = matched
        .filter_map(|one| one.checkpoint.netfix.as_ref())
        .flat_map(|own| own.stack.iter().map(|link| &link.name));
    let answers = recorded.answers.of_host();
    let (then, now) = (&recorded.state, &surveyed.host.state);
    snapshot_quality::host_loss(then, &answers, now, under.collect())
}
