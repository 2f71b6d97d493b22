//! The planner against the cases in `testdata/plan`: one folder a case, each with what was, what is, and the plan.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the plans anew, to be read before they are committed.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use netfix::model::sysctl::Sysctls;
use netfix::model::{IfName, NetState};
use netfix::plan::{self, HostLinks, Observed, Plan};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Why the case exists.
    why: String,
    wanted: NetState,
    observed: NetState,
    #[serde(default)]
    new_link: Option<Sysctls>,
    #[serde(default)]
    age: u32,
    about: About,
}

/// Whose namespace the case is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum About {
    Host { devices: BTreeSet<IfName> },
    Pod { present: BTreeSet<IfName>, renamed: BTreeMap<IfName, IfName> },
}

fn planned(case: &Case) -> String {
    let observed = Observed { state: &case.observed, new_link: case.new_link.as_ref(), age: case.age };
    let (Plan { steps, later, problems }, links) = match &case.about {
        About::Host { devices } => plan::host(&case.wanted, observed, devices),
        About::Pod { present, renamed } => {
            let links =
                HostLinks { present: present.clone(), renamed: renamed.clone(), ..HostLinks::default() };
            (plan::pod(&case.wanted, observed, &links), HostLinks::default())
        }
    };
    let steps = steps.iter().map(|step| format!("{step}\n"));
    let later = later.iter().map(|step| format!("later {step}\n"));
    let problems = problems.iter().map(|problem| format!("! {:?} {problem}\n", problem.severity));
    let renamed = links.renamed.iter().map(|(then, now)| format!("= {then} is {now}\n"));
    steps.chain(later).chain(problems).chain(renamed).collect()
}

#[test]
fn every_case_in_testdata_gives_its_plan() {
    let cases = cases::read::<Case>("plan");
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    cases::compare(&cases, |case| &case.why, planned);
}

#[test]
fn a_plan_carried_out_leaves_nothing_to_plan() {
    // The same state wanted and observed: whatever the case is about, there is nothing to do.
    for (_, case) in cases::read::<Case>("plan") {
        let same = Case { observed: case.wanted.clone(), ..case };
        let plan = planned(&same);
        let steps: Vec<&str> = plan.lines().filter(|line| line.starts_with(['+', '~'])).collect();
        assert!(steps.is_empty(), "{}: {steps:?}", same.why);
    }
}
