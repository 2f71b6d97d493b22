//! The planner, by the cases in `testdata/plan`: one directory for each case, with the state before, the present state,
//! the plan, and how its result differs from the state before; and libcni's cache, by those in `testdata/cni-cache`.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.
#![allow(clippy::expect_used, reason = "a test that cannot continue stops")]

mod carried_out;
mod cases;
mod cni_cache;
mod cut_off;
mod functions;
mod indexes;
mod kernel;
mod large;
mod losses;
mod matching;
#[path = "../common/numbers.rs"]
mod numbers;
mod ports;
mod refuser;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use netfix::model::net::link::sysctl::Sysctls;
use netfix::model::{IfName, NetState, Problem};
use netfix::plan::{self, DaemonState, HostLinks, NicMode, NicRules, Observed, Plan};
use serde::Deserialize;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    wanted: NetState,
    observed: NetState,
    #[serde(default)]
    new_link: Option<Sysctls>,
    #[serde(default)]
    age: u32,
    /// Whether what daemons own is restored too.
    #[serde(default)]
    with_daemons: bool,
    /// `--nic-settings`.
    #[serde(default)]
    nic_settings: Option<String>,
    /// Whether irqbalance runs.
    #[serde(default)]
    irqs_are_balanced: bool,
    /// Whether lldpad runs.
    #[serde(default)]
    dcb_is_managed: bool,
    /// Links that this run made.
    #[serde(default)]
    made: Vec<IfName>,
    about: About,
}

/// The namespace of the case.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum About {
    Host {
        devices: BTreeSet<IfName>,
    },
    Pod {
        present: BTreeSet<IfName>,
        renamed: BTreeMap<IfName, IfName>,
    },
}

impl Case {
    /// The plan for the observed state, and the host's links that the pods will find.
    fn plan(&self, state: &NetState, new_link: Option<&Sysctls>) -> (Plan, HostLinks) {
        let observed = Observed {
            state,
            new_link,
            age: self.age,
            daemons: if self.with_daemons {
                DaemonState::Restore
            } else {
                DaemonState::Leave
            },
            nic: NicRules {
                mode: self
                    .nic_settings
                    .as_deref()
                    .map_or(NicMode::default(), |word| {
                        NicMode::from_str(word, false).expect("a word of --nic-settings")
                    }),
                irqs_are_balanced: self.irqs_are_balanced,
                dcb_is_managed: self.dcb_is_managed,
            },
            made: &self.made,
            kept_indexes: None,
        };
        match &self.about {
            About::Host { devices } => plan::host(&self.wanted, observed, devices),
            About::Pod { present, renamed } => {
                let links = HostLinks {
                    present: present.clone(),
                    renamed: renamed.clone(),
                    ..HostLinks::default()
                };
                (
                    plan::pod(&self.wanted, &BTreeSet::new(), observed, &links),
                    links,
                )
            }
        }
    }
}

/// A problem without its sentence, which does not belong to the planner.
fn in_short(problem: &Problem) -> String {
    let json = serde_json::to_value(problem).expect("a problem");
    let word = |key: &str| json[key].as_str().unwrap_or("-").to_owned();
    format!(
        "! {} {}: {}\n",
        word("severity"),
        word("code"),
        word("object")
    )
}

fn planned(case: &Case) -> String {
    let (plan, links) = case.plan(&case.observed, case.new_link.as_ref());
    let steps = plan.steps.iter().map(|step| format!("{step}\n"));
    let later = plan.later.iter().map(|step| format!("later {step}\n"));
    let problems = plan.problems.iter().map(in_short);
    let renamed = links
        .renamed
        .iter()
        .filter(|_| matches!(case.about, About::Host { .. }));
    let renamed = renamed.map(|(then, now)| format!("= {then} is {now}\n"));
    steps.chain(later).chain(problems).chain(renamed).collect()
}

#[test]
fn every_case_in_testdata_has_its_plan() {
    let cases = cases::read::<Case>("plan");
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    cases::compare(&cases, "plan.txt", |case| &case.why, planned);
}
