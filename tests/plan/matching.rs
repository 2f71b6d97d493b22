//! Which stored record is used for which pod, by the cases in `testdata/matching`: one directory for each case, with
//! the machine, the stored records, and the result for each record.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use netfix::cni;
use netfix::matching::{
    Machine, Matching, Rejection, Selection, StoredRecord, Verdict, match_records,
};
use netfix::model::{Bytes, Checkpoint, PodId};
use serde::Deserialize;
use serde_json::Value;

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    machine: Machine,
    /// netfix's own checkpoints.
    #[serde(default)]
    records: Vec<StoredRecord>,
    /// Files in the format of `i40e_net_fix`, by name: in the state directory, or imported.
    #[serde(default)]
    files: BTreeMap<PodId, Checkpoint>,
    /// Files of libcni's cache, but with their configuration in plain text.
    #[serde(default)]
    cache: Vec<Value>,
    /// Values of `--netns`, each with the inode of its namespace.
    #[serde(default)]
    netns: Vec<(Bytes, Option<u64>)>,
    /// Values of `--pod`.
    #[serde(default)]
    pods: Vec<Bytes>,
}

impl Case {
    fn records(&self) -> Vec<StoredRecord> {
        let files = self
            .files
            .iter()
            .map(|(id, file)| StoredRecord::of_checkpoint(&file.pod(id), file));
        let cache = self.cache.iter().map(|file| {
            let mut file = file.clone();
            file["config"] = BASE64_STANDARD.encode(file["config"].to_string()).into();
            let entry = cni::parse(&file.to_string())
                .unwrap_or_else(|why| panic!("{}: {why}", self.why))
                .expect("no loopback device");
            StoredRecord {
                info: entry.info,
                paths: entry.paths.into_iter().map(Into::into).collect(),
                proof: None,
            }
        });
        self.records
            .iter()
            .cloned()
            .chain(files)
            .chain(cache)
            .collect()
    }
}

fn matched(case: &Case) -> String {
    let records = case.records();
    let selection = Selection::new(&case.netns, &case.pods).expect("a selection");
    let Matching {
        verdicts,
        unmatched,
        unselected: _,
    } = match_records(&records, &case.machine, &selection);
    assert_eq!(verdicts.len(), records.len(), "{}", case.why);
    let pod = |at: &usize| case.machine.pods[*at].info.title();
    let of_record = |(record, verdict): (&StoredRecord, &Verdict)| {
        let fate = match verdict {
            Verdict::Matched(at) => format!("used for {}", pod(at)),
            Verdict::NotSelected => "not selected".to_owned(),
            Verdict::Rejected(rejection) => match rejection {
                Rejection::OtherMachine => "rejected: other machine".to_owned(),
                Rejection::OtherBoot => "rejected: other boot".to_owned(),
                Rejection::NetnsGone => "rejected: namespace gone".to_owned(),
                Rejection::NetnsClosed => "rejected: namespace closed".to_owned(),
                Rejection::NetnsReplaced => "rejected: namespace replaced".to_owned(),
                Rejection::PodReplaced { pod: at } => {
                    format!("rejected: {} has the namespace now", pod(at))
                }
                Rejection::Unproven { pod: at } => {
                    format!("rejected: not proven to be {}", pod(at))
                }
                Rejection::Ambiguous { pod: at, records } => {
                    format!("rejected: one of {} records for {}", records.len(), pod(at))
                }
                Rejection::Superseded { by } => format!("rejected: superseded by record {by}"),
            },
        };
        format!("{}: {fate}\n", record.info.id)
    };
    let of_records = records.iter().zip(&verdicts).map(of_record);
    let without = unmatched
        .iter()
        .map(|at| format!("without record: {}\n", pod(at)));
    of_records.chain(without).collect()
}

#[test]
fn every_case_in_testdata_has_its_matching() {
    let cases = cases::read::<Case>("matching");
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    cases::compare(&cases, "matching.txt", |case| &case.why, matched);
}

#[test]
fn the_matching_does_not_depend_on_the_order_of_pods() {
    for (folder, mut case) in cases::read::<Case>("matching") {
        let mut before: Vec<String> = matched(&case).lines().map(str::to_owned).collect();
        case.machine.pods.reverse();
        let mut after: Vec<String> = matched(&case).lines().map(str::to_owned).collect();
        before.sort();
        after.sort();
        assert_eq!(before, after, "{}", folder.display());
    }
}
