//! Whether a pod without a good record reaches nothing, by the cases in `testdata/cut-off`: one directory for each case, with the
//! present state of the pod and of the host, and the verdict.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.

use netfix::model::{CutOff, HostSide, NetState};
use netfix::plan::cut_off;
use serde::Deserialize;

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    pod: NetState,
    host: NetState,
}

fn verdict(case: &Case) -> String {
    match cut_off(&case.pod, &HostSide::new(&case.host)) {
        Some(CutOff { link, why }) => format!("cut off: {link} {why}\n"),
        None => "not cut off\n".to_owned(),
    }
}

#[test]
fn a_pod_is_cut_off_where_none_of_its_links_on_the_host_carries_a_packet_out() {
    let cases = cases::read::<Case>("cut-off");
    let (off, on): (Vec<_>, Vec<_>) = cases
        .iter()
        .map(|(_, case)| verdict(case))
        .partition(|verdict| verdict.starts_with("cut off"));
    assert!(off.len() >= 15 && on.len() >= 15, "{off:?}, {on:?}");
    cases::compare(&cases, "verdict.txt", |case| &case.why, verdict);
}
