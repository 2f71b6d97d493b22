//! The host beside its record.

use std::collections::BTreeSet;
use std::path::Path;

use crate::inventory::observe::Host;
use crate::managers::configured;
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::{Cause, MatchingCause, PlanCause, RestoreCause};
use crate::model::text::join;
use crate::model::{IfName, Loss, LossCause, NetState, Problem, Severity};
use crate::plan::{self, HostLinks, Plan, snapshot_quality};
use crate::records::survey::Surveyed;

/// What is missing on the host, and its links as a restore would leave them.
pub(crate) fn plan_of(host: &Host, baseline: &HostBaseline) -> (Plan, HostLinks) {
    let observed = baseline.observed(&host.state, None);
    let (mut plan, links) = plan::host(&baseline.state, observed, &baseline.scope());
    for problem in &mut plan.problems {
        note_config(Path::new("/"), problem);
    }
    (plan, links)
}

/// Another name of a device is an error where a configuration has the former one: new pods fail by it.
fn note_config(root: &Path, problem: &mut Problem) {
    if let Cause::Plan(PlanCause::DeviceRenamed { then, config, .. }) = &mut *problem.cause {
        *config = configured::by(root, then);
        if config.is_some() {
            problem.severity = Severity::Error;
        }
    }
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
    host_losses(surveyed).into_iter().next()
}

/// The same for people.
pub(crate) fn lost_of_host(surveyed: &Surveyed) -> Option<Loss> {
    let (link, what) = host_loss(surveyed)?;
    let link = link.to_string();
    Some(Loss { link, what })
}

/// The error that the host has lost something though it has all that is recorded: something that is not recorded refuses its packets.
pub(crate) fn refused_of_host(surveyed: &Surveyed) -> Option<Problem> {
    if surveyed.is_selection {
        return None;
    }
    let Loss { link, what } = lost_of_host(surveyed)?;
    let mut unasked = surveyed.host.state.clone();
    unasked.ways.clear();
    let is_whole = losses_in(surveyed, &unasked).is_empty();
    is_whole.then(|| RestoreCause::StillLost { what }.error(link))
}

/// All that the host has lost of what it had for all pods.
pub(crate) fn host_losses(surveyed: &Surveyed) -> Vec<(IfName, LossCause)> {
    losses_in(surveyed, &surveyed.host.state)
}

fn losses_in(surveyed: &Surveyed, now: &NetState) -> Vec<(IfName, LossCause)> {
    let Some(recorded) = surveyed.node_state.as_ref() else {
        return Vec::new();
    };
    let matched = surveyed.matched.iter();
    let under = matched
        .filter_map(|one| one.checkpoint.netfix.as_ref())
        .flat_map(|own| own.stack.iter().map(|link| &link.name));
    // A restore has taken the pods out.
    let under = under.chain(&surveyed.baseline.devices);
    let answers = recorded.answers.of_host();
    snapshot_quality::host_losses(&recorded.state, &answers, now, under.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_name_is_an_error_where_a_network_of_cni_has_the_former_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/cni/net.d");
        fs::create_dir_all(&folder).unwrap();
        let network = r#"{"name": "pods", "type": "macvlan", "master": "ens1f0"}"#;
        fs::write(folder.join("10-pods.conf"), network).unwrap();
        let told = |then: &str| {
            let (now, then) = ("ens1f0np0".parse().unwrap(), then.parse().unwrap());
            let cause = PlanCause::DeviceRenamed {
                now,
                then,
                config: None,
            };
            let mut problem = cause.warning("eth0");
            note_config(root.path(), &mut problem);
            (problem.severity, problem.message())
        };
        let (severity, message) = told("ens1f0");
        assert_eq!(severity, Severity::Error);
        let words =
            "recreated on it, but /etc/cni/net.d/10-pods.conf still names ens1f0, so new pods";
        assert!(message.contains(words), "{message}");
        let (severity, message) = told("ens1f1");
        assert_eq!(severity, Severity::Warning);
        assert!(!message.contains("still names"), "{message}");
    }
}
