//! Each directory of `testdata/rebuild` is a case: `case.json`, and the verdict in `verdict.txt`. `NETFIX_BLESS` writes
//! the verdicts again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::model::fate::PodFingerprint;
use crate::model::problem::RebuildCause;
use crate::model::{NetnsIdentity, PodInfo};
use crate::runtime::Sandbox;
use crate::window::rebuild_check::{After, RebuildVerdict, check};

#[derive(Deserialize)]
struct RebuildCase {
    /// Why the case exists.
    why: String,
    pod: PodInfo,
    fingerprint: Option<PodFingerprint>,
    /// In place of the fingerprint: the sandbox as its runtime reports it after a loss, and when that was, in milliseconds since 1970.
    lost: Option<(Sandbox, i64)>,
    namespace: Option<NetnsIdentity>,
    after: After,
}

fn found(one: &RebuildCase) -> String {
    let lost = one.lost.as_ref();
    let of_loss = lost.map(|(sandbox, moment)| sandbox.fingerprint_of(*moment));
    let fingerprint = of_loss.as_ref().or(one.fingerprint.as_ref());
    let (verdict, now) = check(&one.pod, fingerprint, one.namespace.as_ref(), &one.after);
    let word = match verdict.fate() {
        Some(fate) => serde_json::to_string(&fate).unwrap(),
        None => "unknown".to_owned(),
    };
    let words = match verdict {
        RebuildVerdict::Same | RebuildVerdict::Unknown | RebuildVerdict::Gone => String::new(),
        RebuildVerdict::NamespaceGone => format!(": {}", RebuildCause::NamespaceGone),
        RebuildVerdict::Rebuilt(cause) => format!(": {cause}"),
        RebuildVerdict::Changed(containers) => {
            let is_excused = containers.iter().all(|one| one.excuse.is_some());
            let severity = if is_excused { "warning" } else { "error" };
            let cause = RebuildCause::ContainersChanged { containers };
            format!(", {severity}: {cause}")
        }
    };
    let now = now.map(|now| now.fingerprint().sandbox);
    format!(
        "{}{words}\nsandbox now: {}\n",
        word.trim_matches('"'),
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
        let (found, path) = (found(&case), folder.join("verdict.txt"));
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
