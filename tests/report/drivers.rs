//! The drivers of the NICs in the report, after a rollback and of an old record.

use netfix::model::Window;
use serde_json::Value;

use crate::machine::{Machine, fixture};

#[test]
fn a_record_of_schema_1_has_unknown_nics_and_no_rollback() {
    let record = fixture("schema-1");
    assert_eq!(record.schema, 1);
    let machine = Machine::with(&[record]);
    let report = &machine.json(&["report"])["report"];
    assert_eq!(
        (&report["nics"], &report["rollback"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(report["computed"]["verdict"], "well");
    let text = machine.text();
    let line = text.lines().find(|line| line.starts_with("NICs"));
    assert!(line.is_some_and(|line| line.ends_with(" -")), "{text}");
    assert!(!machine.page().contains("id=\"nics\""));
}

#[test]
fn after_a_rollback_the_verdict_names_the_drivers_that_run() {
    let sentence = |window: Window| {
        let computed = Machine::with(&[window]).json(&["report"])["report"]["computed"].clone();
        let texts = ["verdict", "sentence"].map(|key| computed[key].as_str().unwrap().to_owned());
        texts.join(": ")
    };
    let window = fixture("rolled-back");
    let rolled_back = sentence(window.clone());
    assert!(
        rolled_back.starts_with("rolled-back: ")
            && rolled_back.contains("eth0 and eth1: i40e 2.8.20-k, as before"),
        "{rolled_back}"
    );
    let mut other = window.clone();
    let nics = other.nics.as_mut().unwrap();
    nics[1].after.as_mut().unwrap().version = Some("2.28.7".to_owned());
    (nics[2].present, nics[2].after) = (Some(false), None);
    let text = sentence(other);
    for expected in [
        "eth0: i40e 2.28.7, not i40e 2.8.20-k as before",
        "eth1: absent",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let mut broken = window.clone();
    broken.pods[0].state = Some(netfix::model::State::Failed);
    let text = sentence(broken);
    assert!(
        text.starts_with("pods-affected: ") && text.contains("the rollback succeeded"),
        "{text}"
    );
    // `netfix resume` closed it: nothing shows that the pods came back.
    let mut resumed = window.clone();
    resumed.closed_by = Some("resume".to_owned());
    resumed.phases[6].to = None;
    assert!(sentence(resumed).starts_with("interrupted: "));
    let mut taken_over = window;
    taken_over.phases[6].to = None;
    assert!(sentence(taken_over).starts_with("rolled-back: "));
}
