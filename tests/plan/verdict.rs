//! Whether a pod is in sync, drifted or lost, by the cases in `testdata/verdict`: one directory for each case, with the state
//! before, the present state, and the verdict.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.

use std::collections::BTreeSet;

use netfix::model::{IfName, Loss, NetState};
use netfix::plan::{self, DaemonState, HostLinks, NicRules, Observed, PodVerdict};
use serde::Deserialize;

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    before: NetState,
    now: NetState,
    /// The host's links that are there.
    present: BTreeSet<IfName>,
}

fn verdict(case: &Case) -> String {
    let observed = Observed {
        state: &case.now,
        new_link: None,
        age: 0,
        daemons: DaemonState::Leave,
        nic: NicRules::default(),
        made: &[],
    };
    let links = HostLinks {
        present: case.present.clone(),
        ..HostLinks::default()
    };
    let plan = plan::pod(&case.before, &BTreeSet::new(), observed, &links);
    match PodVerdict::new(plan::snapshot_quality::loss(&case.before, &case.now), &plan) {
        PodVerdict::InSync => "in sync\n".to_owned(),
        PodVerdict::Drifted => "drifted\n".to_owned(),
        PodVerdict::Lost(Loss { link, what }) => format!("lost: {link} {what}\n"),
        PodVerdict::Unknown(problem) => format!("unknown: {problem}\n"),
    }
}

#[test]
fn every_case_in_testdata_has_its_verdict() {
    let cases = cases::read::<Case>("verdict");
    assert!(cases.len() >= 8, "only {} cases", cases.len());
    cases::compare(&cases, "verdict.txt", |case| &case.why, verdict);
}
