//! The host beside its record.

use std::collections::BTreeSet;

use crate::inventory::observe::Host;
use crate::matching::host_baseline::HostBaseline;
use crate::model::Problem;
use crate::model::problem::MatchingCause;
use crate::model::text::join;
use crate::plan::{self, HostLinks, Plan};

/// What is missing on the host, and its links as a restore would leave them.
pub(crate) fn plan_of(host: &Host, baseline: &HostBaseline) -> (Plan, HostLinks) {
    let observed = baseline.observed(&host.state, None);
    plan::host(&baseline.state, observed, &baseline.devices)
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
