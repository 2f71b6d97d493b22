//! Each directory of `testdata/rebuild` is a case: `case.json`, and the verdict in `verdict.txt`. `NETFIX_BLESS` writes
//! the verdicts again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::model::window::PodFingerprint;
use crate::model::{NetnsIdentity, PodInfo};
use crate::window::rebuild_check::{After, RebuildVerdict, check};

#[derive(Deserialize)]
struct RebuildCase {
    /// Why the case exists.
    why: String,
    pod: PodInfo,
    fingerprint: Option<PodFingerprint>,
    namespace: Option<NetnsIdentity>,
    after: After,
}

fn verdict(case: &RebuildCase) -> String {
    let (fingerprint, namespace) = (case.fingerprint.as_ref(), case.namespace.as_ref());
    let (verdict, now) = check(&case.pod, fingerprint, namespace, &case.after);
    let verdict = match verdict {
        RebuildVerdict::Same => "same".to_owned(),
        RebuildVerdict::Unknown => "unknown".to_owned(),
        RebuildVerdict::Rebuilt(by) => format!("rebuilt: {by}"),
    };
    let now = now.map(|now| now.fingerprint().sandbox);
    format!(
        "{verdict}\nsandbox now: {}\n",
        now.as_deref().unwrap_or("-")
    )
}

#[test]
fn every_case_has_its_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/rebuild");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let text = fs::read_to_string(folder.join("case.json")).unwrap();
        let case: RebuildCase =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        assert!(!case.why.is_empty(), "{} has no reason", folder.display());
        let (found, path) = (verdict(&case), folder.join("verdict.txt"));
        if std::env::var_os("NETFIX_BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != found {
            wrong.push(format!("{} ({}):\n{found}", folder.display(), case.why));
        }
        count += 1;
    }
    assert!(count >= 10, "{count} cases are few");
    assert!(wrong.is_empty(), "other verdicts:\n{}", wrong.join("\n"));
}
