//! What is said of what names links of the host by their ifindex, by the cases in `testdata/indexes`: one directory for each case, with the
//! recorded links, the present ones and what names them, and what is said.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.

use std::collections::{BTreeMap, BTreeSet};

use netfix::model::net::link::index::IndexUses;
use netfix::model::problem::KeptIndex;
use netfix::model::{IfName, Link, NetState, NodeState, Problem};
use netfix::plan::indexes;
use serde::Deserialize;
use serde_json::json;

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    /// Whether the kernel gives a device a chosen ifindex.
    kernel_can: bool,
    /// Whether a person wants that netfix leaves it (`--nic-index keep`).
    #[serde(default)]
    is_kept: bool,
    /// The links that a reload can take.
    at_risk: BTreeSet<IfName>,
    recorded: Option<Vec<Link>>,
    #[serde(default)]
    former_indexes: BTreeMap<u32, IfName>,
    now: Vec<Link>,
    uses: IndexUses,
}

fn state(links: &[Link]) -> NetState {
    NetState {
        links: links.to_vec(),
        ..NetState::default()
    }
}

fn told(case: &Case) -> String {
    let node = |links: &Vec<Link>| -> NodeState {
        let node = json!({
            "schema": 1,
            "created": "2026-11-28T00:00:00Z",
            "node": {"machine_id": "", "boot_id": "", "hostname": ""},
            "state": state(links),
            "former_indexes": case.former_indexes,
        });
        serde_json::from_value(node).expect("a record of the host")
    };
    let (now, recorded) = (state(&case.now), case.recorded.as_ref().map(node));
    let line = |when: &str, problem: &Problem| {
        let json = serde_json::to_value(problem).expect("a problem");
        let word = |key: &str| json[key].as_str().unwrap_or("-").to_owned();
        let (severity, object, message) = (word("severity"), word("object"), word("message"));
        format!("{when}: {severity}: {object}: {message}\n")
    };
    let why = match (case.kernel_can, case.is_kept) {
        (_, true) => Some(KeptIndex::Requested),
        (false, false) => Some(KeptIndex::OldKernel),
        (true, false) => None,
    };
    let indexes = now.links.iter().map(|link| link.index);
    let kept = indexes.filter_map(|index| Some((index, why.clone()?)));
    let kept = kept.collect();
    let before = indexes::named(&case.uses, &now, &case.at_risk, &kept);
    let after = indexes::dead(&case.uses, &now, recorded.as_ref());
    let kept = indexes::former(&case.uses, &now, recorded.as_ref());
    let before = before.iter().map(|one| line("before a loss", one));
    let after = after.iter().map(|one| line("after it", one));
    let kept = kept
        .iter()
        .map(|(index, name)| format!("recorded: {index} was {name}\n"));
    before.chain(after).chain(kept).collect()
}

#[test]
fn what_names_an_ifindex_is_told_before_a_loss_and_after_it() {
    let cases = cases::read::<Case>("indexes");
    assert!(cases.len() >= 14, "only {} cases", cases.len());
    cases::compare(&cases, "told.txt", |case| &case.why, told);
}
