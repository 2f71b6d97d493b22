//! Each directory of `testdata/snapshot` is a case: `case.json` with what runs and what is stored, and what a snapshot changes
//! in `changes.json`. `NETFIX_BLESS` writes the changes again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Why the case exists.
    why: String,
    observed: Observation,
    stored: Stored,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    checkpoints: BTreeMap<PodId, File>,
    node: Option<NodeState>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum File {
    Readable(Box<Checkpoint>),
    Corrupt(Problem),
}

impl Stored {
    fn archive(self) -> Archive {
        let checkpoints = self.checkpoints.into_iter().map(|(id, file)| {
            let checkpoint = match file {
                File::Readable(checkpoint) => Ok(*checkpoint),
                File::Corrupt(problem) => Err(problem),
            };
            (id, checkpoint)
        });
        Archive::new(checkpoints.collect(), self.node)
    }
}

/// A checkpoint without its details.
fn written(checkpoint: &Checkpoint) -> Value {
    let own = checkpoint.netfix.as_ref().unwrap();
    json!({
        "main": checkpoint.ifname,
        "schema": own.schema,
        "created": own.created,
        "over": own.stack.iter().map(|link| &link.name).collect::<Vec<_>>(),
        "links": own.state.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
        "addresses": own.state.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "routes": own.state.routes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// A problem without its sentence.
fn in_short(problem: &Problem) -> Value {
    let pod = problem.pod.as_ref();
    let pod = pod.map(|pod| format!("pod {pod}: ")).unwrap_or_default();
    let (severity, code) = (json!(problem.severity), json!(problem.code()));
    let word = |word: &Value| word.as_str().unwrap().to_owned();
    let object = &problem.object;
    format!("{} {}: {pod}{object}", word(&severity), word(&code)).into()
}

fn pod(decision: &PodDecision) -> Value {
    let (change, written) = match &decision.change {
        PodChange::Write(reason, checkpoint) => (json!(reason), Some(written(checkpoint))),
        PodChange::Unchanged => (json!("unchanged"), None),
        PodChange::Lost => (json!("lost"), None),
        PodChange::HalfLost => (json!("half-lost"), None),
        PodChange::Empty => (json!("empty"), None),
        PodChange::Unread => (json!("unread"), None),
    };
    let PodSummary {
        info,
        netns,
        created,
        interfaces,
    } = &decision.pod;
    json!({
        "pod": info.id,
        "change": change,
        "writes": written,
        "netns": netns,
        "created": created,
        "interfaces": interfaces.iter().map(|one| &one.name).collect::<Vec<_>>(),
    })
}

fn changes(case: Case) -> String {
    let Changes {
        at,
        pods,
        gone,
        host,
        problems,
        makes_generation,
        is_complete,
    } = decide(case.observed, &case.stored.archive());
    let gone = gone.into_iter().map(|(id, gone)| match gone {
        Gone::Pod => (id, json!("its pod is gone")),
        Gone::Renamed(to) => (id, json!({ "renamed-to": to })),
    });
    let host_problems = host.problems;
    let host = match host.change {
        HostChange::Record(node) => json!({
            "records": node.state.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
            "empty": node.empty.iter().map(|netns| netns.inode).collect::<Vec<_>>(),
            "seen": node.seen,
            "complete": node.complete,
        }),
        HostChange::Keep => json!("keep"),
    };
    let all = json!({
        "created": at.wall,
        "pods": pods.iter().map(pod).collect::<Vec<_>>(),
        "gone": gone.collect::<BTreeMap<_, _>>(),
        "host": host,
        "generation": makes_generation,
        "complete": is_complete,
        "problems": problems.iter().map(in_short).collect::<Vec<_>>(),
        "host_problems": host_problems.iter().map(in_short).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&all).unwrap() + "\n"
}

#[test]
fn every_case_in_testdata_has_its_changes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/snapshot");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let text = fs::read_to_string(folder.join("case.json")).unwrap();
        let case: Case =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let why = case.why.clone();
        assert!(!why.is_empty(), "{} has no reason", folder.display());
        let (found, path) = (changes(case), folder.join("changes.json"));
        if std::env::var_os("NETFIX_BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != found {
            wrong.push(format!("{} ({why}):\n{found}", folder.display()));
        }
        count += 1;
    }
    assert!(count >= 16, "{count} cases are few");
    assert!(wrong.is_empty(), "other changes:\n{}", wrong.join("\n"));
}
