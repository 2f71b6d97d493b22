//! The use of libcni's cache, by the cases in `testdata/cni-cache`: one directory for each case, with the pod's
//! entries, its state, and the plan. An entry is the file that libcni writes, but with its configuration in plain text.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use netfix::cni;
use netfix::model::net::link::sysctl::Sysctls;
use netfix::model::{IfName, Link, NetState, Partial};
use netfix::plan::{self, DaemonState, HostLinks, NicRules, Observed};
use serde::Deserialize;
use serde_json::Value;

use super::{cases, in_short};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    entries: Vec<Value>,
    /// The pod's links, in the order of their indexes.
    #[serde(default)]
    links: Vec<Link>,
    #[serde(default)]
    new_link: Option<Sysctls>,
    /// Links that this run has created.
    #[serde(default)]
    made: Vec<IfName>,
    /// The host's links with their MTU.
    host: BTreeMap<IfName, u32>,
}

fn planned(case: &Case) -> String {
    let attachments = case.entries.iter().filter_map(|entry| {
        let mut entry = entry.clone();
        entry["config"] = BASE64_STANDARD.encode(entry["config"].to_string()).into();
        Some(
            cni::parse(&entry.to_string())
                .unwrap_or_else(|why| panic!("{}: {why}", case.why))?
                .attachment,
        )
    });
    let partial = Partial {
        attachments: attachments.collect(),
    };
    let host = HostLinks {
        present: case.host.keys().cloned().collect(),
        mtus: case.host.clone(),
        ..HostLinks::default()
    };
    let now = NetState {
        links: case.links.clone(),
        ..NetState::default()
    };
    let (wanted, found) = plan::complete(&partial, &now, &case.made, &host);
    let observed = Observed {
        state: &now,
        new_link: case.new_link.as_ref(),
        age: 0,
        daemons: DaemonState::Leave,
        nic: NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    let plan = plan::pod(&wanted, &BTreeSet::new(), observed, &host);
    let steps = plan.steps.iter().map(|step| format!("{step}\n"));
    let problems = plan.problems.iter().chain(&found);
    steps.chain(problems.map(in_short)).collect()
}

#[test]
fn every_case_in_testdata_has_its_plan() {
    let cases = cases::read::<Case>("cni-cache");
    assert!(cases.len() >= 10, "only {} cases", cases.len());
    cases::compare(&cases, "plan.txt", |case| &case.why, planned);
}
