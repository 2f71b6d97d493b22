//! Each directory of `testdata/snapshot` is a case: `case.json` with what runs and what is stored, and what a snapshot changes
//! in `changes.json`. `NETFIX_BLESS` writes the changes again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::model::pod::past::PastFiles;
use crate::model::problem::Cause;
use crate::model::{IfName, NodeState, Problem};
use crate::plan::cut_off;
use crate::snapshot::changes::HostChange;

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
    /// The generations, newest first.
    #[serde(default)]
    past: Vec<Generation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Generation {
    number: u64,
    #[serde(default)]
    checkpoints: BTreeMap<PodId, Checkpoint>,
    #[serde(default)]
    node: Option<String>,
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
        let mut archive = Archive::new(checkpoints.collect(), self.node);
        let past = self.past.into_iter().map(|one| PastFiles {
            number: one.number,
            checkpoints: one.checkpoints,
            node: one.node,
        });
        archive.past = past.collect();
        archive
    }
}

/// A checkpoint without its details.
fn written(checkpoint: &Checkpoint) -> Value {
    let own = checkpoint.netfix.as_ref().unwrap();
    let mut written = json!({
        "main": checkpoint.ifname,
        "schema": own.schema,
        "created": own.created,
        "over": own.stack.iter().map(|link| &link.name).collect::<Vec<_>>(),
        "links": own.state.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
        "addresses": own.state.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "routes": own.state.routes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    if own.cut_off {
        written["cut_off"] = json!(true);
    }
    written
}

/// A problem without its sentence.
fn in_short(problem: &Problem) -> Value {
    let what = match &*problem.cause {
        Cause::Snapshot(
            cause @ (SnapshotCause::Lost { .. }
            | SnapshotCause::HostLost { .. }
            | SnapshotCause::GivenUp { .. }
            | SnapshotCause::NoRecord { .. }),
        ) => format!(" {}", cause_in_short(cause)),
        _ => String::new(),
    };
    let pod = problem.pod.as_ref();
    let pod = pod.map(|pod| format!("pod {pod}: ")).unwrap_or_default();
    let (severity, code) = (json!(problem.severity), json!(problem.code()));
    let word = |word: &Value| word.as_str().unwrap().to_owned();
    let object = &problem.object;
    format!("{} {}: {pod}{object}{what}", word(&severity), word(&code)).into()
}

/// What went, and the generation that has it.
fn cause_in_short(cause: &SnapshotCause) -> String {
    match cause {
        SnapshotCause::Lost { what, generation }
        | SnapshotCause::HostLost { what, generation }
        | SnapshotCause::GivenUp { what, generation } => {
            let held = generation.map(|number| format!(", in generation {number}"));
            what.to_string() + &held.unwrap_or_default()
        }
        SnapshotCause::NoRecord { evidence } => format!("({evidence})"),
        _ => String::new(),
    }
}

fn pod(decision: &PodDecision) -> Value {
    let (change, written) = match &decision.change {
        PodChange::Write(reason, checkpoint) => (json!(reason), Some(written(checkpoint))),
        PodChange::Unchanged => (json!("unchanged"), None),
        PodChange::Lost => (json!("lost"), None),
        PodChange::NoRecord => (json!("no-record"), None),
        PodChange::Incomplete => (json!("incomplete"), None),
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
        answers: _,
        given_up: _,
        silent,
        problems,
        makes_generation,
        is_complete,
        refused,
    } = decide(case.observed, &case.stored.archive());
    let gone = gone.into_iter().map(|(id, gone)| match gone {
        Gone::Pod => (id, json!("its pod is gone")),
        Gone::GivenUp => (id, json!("given up")),
        Gone::Renamed(to) => (id, json!({ "renamed-to": to })),
    });
    let host_problems = host.problems;
    let host = match host.change {
        HostChange::Record(node) => json!({
            "records": node.state.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
            "empty": node.empty.iter().map(in_words).collect::<Vec<_>>(),
            "seen": node.seen,
            "complete": node.complete,
        }),
        HostChange::Keep(accepted) if accepted.is_empty() => json!("keep"),
        HostChange::Keep(accepted) => json!({
            "keep with": accepted.iter().map(in_words).collect::<Vec<_>>(),
        }),
    };
    let mut all = json!({
        "created": at.wall,
        "pods": pods.iter().map(pod).collect::<Vec<_>>(),
        "gone": gone.collect::<BTreeMap<_, _>>(),
        "host": host,
        "generation": makes_generation,
        "complete": is_complete,
        "problems": problems.iter().map(in_short).collect::<Vec<_>>(),
        "host_problems": host_problems.iter().map(in_short).collect::<Vec<_>>(),
    });
    if !silent.is_empty() {
        all["answers given up"] = json!(silent);
    }
    if !refused.is_empty() {
        all["refused"] = refused.iter().map(in_short).collect();
    }
    serde_json::to_string_pretty(&all).unwrap() + "\n"
}

/// A namespace without an interface: its inode, and whether that is accepted.
fn in_words(netns: &EmptyNetns) -> String {
    let inode = netns.identity.inode;
    let accepted = if netns.accepted { ", accepted" } else { "" };
    format!("{inode}{accepted}")
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

/// What is lost, by name: of each pod that could be read, and of the host.
fn lost(now: &Observation, stored: &Archive) -> BTreeSet<String> {
    let node = &now.moment.node;
    let mut lost = BTreeSet::new();
    for pod in &now.pods {
        let Reading::Whole(state) = &pod.reading else {
            continue;
        };
        let good = stored.good(node, &pod.identity, &pod.info);
        let is_accepted = stored.empty(&pod.identity).is_some_and(|one| one.accepted);
        let host = HostSide::new(&now.moment.host);
        let is_cut_off = cut_off(state, &host).is_some() || pod.lacks.is_some();
        let is_lost = match good {
            Some(good) if good.own.cut_off && is_cut_off => true,
            Some(good) => {
                let beside = good.own.beside(stored.answers_of(&pod.info.id));
                snapshot_quality::pod_loss(&good.own.state, beside, state, &host).is_some()
            }
            None if is_cut_off => true,
            None => pod.is_bare() && pod.evidence.is_some() && !is_accepted,
        };
        if is_lost {
            lost.insert(pod.info.id.to_string());
        }
    }
    let under: BTreeSet<&IfName> = stored.stacks(node).map(|(_, link)| &link.name).collect();
    let is_host_lost = stored.node.as_ref().is_some_and(|recorded| {
        let (then, now) = (&recorded.state, &now.moment.host);
        let answers = recorded.answers.of_host();
        !snapshot_quality::unsupported_and_lost(then, now, &under).is_empty()
            || snapshot_quality::host_loss(then, &answers, now, under).is_some()
            || snapshot_quality::silent_below_host(then, &answers, now).is_some()
    });
    if is_host_lost {
        lost.insert("host".to_owned());
    }
    lost
}

/// What is stored when the changes are made, with the generations of before.
fn applied(changes: Changes, mut stored: Stored) -> Archive {
    for PodDecision { pod, change } in changes.pods {
        if let PodChange::Write(_, checkpoint) = change {
            stored
                .checkpoints
                .insert(pod.info.id, File::Readable(checkpoint));
        }
    }
    for id in changes.gone.keys() {
        stored.checkpoints.remove(id);
    }
    match changes.host.change {
        HostChange::Record(node) => stored.node = Some(*node),
        HostChange::Keep(accepted) => {
            if let Some(node) = &mut stored.node {
                node.empty.extend(accepted);
            }
        }
    }
    stored.archive()
}

#[test]
fn what_is_lost_before_a_snapshot_is_lost_after_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/snapshot");
    let mut losses = 0;
    for entry in fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let text = fs::read_to_string(folder.join("case.json")).unwrap();
        let read = || serde_json::from_str::<Case>(&text).unwrap();
        let (case, same) = (read(), read());
        let before = case.stored.archive();
        let lost_before = lost(&case.observed, &before);
        let has_accepted = !case.observed.accept.is_empty();
        let after = applied(decide(case.observed, &before), same.stored);
        let lost_after = lost(&same.observed, &after);
        if has_accepted {
            assert!(
                lost_after.is_empty(),
                "{}: {lost_after:?}",
                folder.display()
            );
        } else {
            assert_eq!(lost_before, lost_after, "{}", folder.display());
            losses += lost_before.len();
        }
    }
    assert!(losses >= 15, "{losses} losses are few");
}
