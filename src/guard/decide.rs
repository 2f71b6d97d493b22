//! What follows from a look: pure. The cases are in `testdata/guard`.
//!
//! A link that is gone or has another ifindex than when all was well was lost with what is below it, and pods on it are restored
//! once that is back. A link that is gone while everything below it stayed was deleted by somebody.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::judge::{Judge, PodFate};
use super::pace::{self, GuardTurn};
use super::sight::{InsideSight, PodSight, Sight, WindowSight};
use crate::model::window::{GUARD_SCHEMA, GuardPace, GuardRecord};
use crate::model::{IfName, Loss, PodId};

/// What the user wants.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    /// Whether links are restored that somebody deleted.
    pub also_deleted: bool,
    /// Between the first restore and the second, in milliseconds.
    pub pause: u64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardDecision {
    /// Nothing is lost.
    Well,
    /// There is no snapshot of this boot.
    NoSnapshot,
    /// A window is open.
    LeftToWindow { command: String },
    /// These are not back.
    WaitsFor { missing: Vec<IfName> },
    /// A pod could not be observed, or its record not be read: nothing says that it has its network.
    Unsure,
    /// No selected pod runs.
    NoPod { selectors: String },
    /// Only links are missing that somebody deleted.
    LeftDeleted,
    /// Something is lost, and not with a link of the host under pods.
    LeftAlone(Vec<LeftAlone>),
    /// Restore.
    Restore(Wanted),
    /// The loss repeats: not before this moment.
    Later {
        at: u64,
        /// In so many milliseconds.
        after: u64,
        attempt: u32,
    },
    /// The loss has repeated too often.
    GivesUp { attempts: u32 },
    /// It was given up before.
    GivenUp { attempts: u32 },
}

/// What the guard leaves to a runtime, a person or `netfix restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftAlone {
    /// The name of the pod; `None`: the host.
    pub pod: Option<String>,
    /// What it lost; `None`: its record cannot be read.
    pub loss: Option<Loss>,
}

/// The restore that is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// The links that were lost, for people.
    pub lost: Vec<IfName>,
    /// The pods; `None`: all.
    pub pods: Option<Vec<PodId>>,
    /// The links of the host that stay deleted, with those on them.
    pub without: BTreeSet<IfName>,
    /// How often in a row, from 1 on.
    pub attempt: u32,
    /// Whether to wait for devices that have just been lost too.
    pub waits: bool,
    /// Whether it completes the window of a guard that is gone.
    pub resumes: bool,
}

/// A decision, and what is known from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decided {
    pub decision: GuardDecision,
    /// The links that are lost.
    pub lost: Vec<IfName>,
    /// The deleted links that were not reported yet, each with the links below it.
    pub deleted: BTreeMap<IfName, Vec<IfName>>,
    pub record: GuardRecord,
}

impl Decided {
    /// A window is open: its end is an event.
    fn left_to(command: String, mut record: GuardRecord) -> Self {
        record.is_waiting = true;
        Self {
            decision: GuardDecision::LeftToWindow { command },
            lost: Vec::new(),
            deleted: BTreeMap::new(),
            record,
        }
    }
}

impl Wanted {
    /// Whether a pod is one of those.
    pub(crate) fn has(&self, pod: &PodSight) -> bool {
        self.pods.as_ref().is_none_or(|pods| pods.contains(&pod.id))
    }
}

/// Decides.
pub(crate) fn decide(record: &GuardRecord, sight: &Sight, choice: Choice) -> Decided {
    let mut next = remembered(record, sight);
    if let Some(WindowSight::Of(command)) = &sight.window {
        return Decided::left_to(command.clone(), next);
    }
    let judge = Judge {
        links: &sight.links,
        settled: next.settled.clone(),
        also_deleted: choice.also_deleted,
    };
    let deleted = judge.deleted();
    let fates: Vec<(&PodSight, PodFate)> = sight
        .pods
        .iter()
        .map(|pod| (pod, judge.fate(pod, &deleted)))
        .collect();
    let fresh = judge.not_told(&deleted, &mut next.told);
    let missing = judge.missing();
    let waits = missing.iter().any(|name| !next.missing.contains(name));
    next.missing.clone_from(&missing);
    let has = |wanted: PodFate| fates.iter().any(|(_, fate)| *fate == wanted);
    let is_unfinished = sight.window.is_some();
    let is_unsure = sight.is_unread || has(PodFate::Unknown);
    let decision = if has(PodFate::Ready) || judge.has_loose_port() || is_unfinished {
        let wanted = wanted(&judge, &fates, &deleted, waits, is_unfinished);
        next_turn(&mut next.pace, wanted, sight.now, choice)
    } else if has(PodFate::Waiting) {
        GuardDecision::WaitsFor { missing }
    } else if is_unsure {
        // What is there now is not known to be right.
        GuardDecision::Unsure
    } else {
        at_rest(&fates, sight, &deleted)
    };
    let is_settled = match decision {
        GuardDecision::Well => true,
        GuardDecision::LeftAlone(_) | GuardDecision::NoPod { .. } => deleted.is_empty(),
        _ => false,
    };
    if is_settled {
        judge.settle(&mut next);
    }
    // A new snapshot is an event.
    let is_idle = is_settled || decision == GuardDecision::NoSnapshot;
    next.is_waiting = !is_idle || !next.missing.is_empty();
    next.is_unsure = is_unsure;
    next.again_at = match decision {
        GuardDecision::Later { at, .. } => Some(at),
        _ => None,
    };
    Decided {
        decision,
        lost: judge.lost(),
        deleted: fresh,
        record: next,
    }
}

/// No pod is to be restored, and each was observed.
fn at_rest(
    fates: &[(&PodSight, PodFate)],
    sight: &Sight,
    deleted: &BTreeSet<IfName>,
) -> GuardDecision {
    let alone = fates.iter().filter(|(_, fate)| *fate == PodFate::Alone);
    let alone = alone.map(|(pod, _)| LeftAlone {
        pod: Some(pod.title.clone()),
        loss: pod.loss.clone(),
    });
    let damaged = sight.damaged.iter().map(|title| LeftAlone {
        pod: Some(title.clone()),
        loss: None,
    });
    let host = sight.host.iter().map(|loss| LeftAlone {
        pod: None,
        loss: Some(loss.clone()),
    });
    let host = host.filter(|_| deleted.is_empty());
    let left: Vec<LeftAlone> = alone.chain(damaged).chain(host).collect();
    match &sight.no_match {
        Some(selectors) => GuardDecision::NoPod {
            selectors: selectors.clone(),
        },
        None if sight.snapshot.is_none() && sight.pods.is_empty() => GuardDecision::NoSnapshot,
        None if !left.is_empty() => GuardDecision::LeftAlone(left),
        None if !deleted.is_empty() => GuardDecision::LeftDeleted,
        None => GuardDecision::Well,
    }
}

/// A restore begins: another guard must know it, should this one be killed in it.
pub(crate) fn begins(record: &mut GuardRecord, now: u64) {
    pace::begin(&mut record.pace, now);
}

/// What of the record holds now. A new snapshot is a new beginning, and ifindexes are of one boot.
fn remembered(record: &GuardRecord, sight: &Sight) -> GuardRecord {
    let mut next = GuardRecord {
        schema: GUARD_SCHEMA,
        has_devices_inside: sight.pods.iter().any(|pod| pod.inside != InsideSight::None),
        ..record.clone()
    };
    if next.boot != sight.boot {
        next = GuardRecord {
            schema: GUARD_SCHEMA,
            restores: next.restores,
            last: next.last,
            boot: sight.boot.clone(),
            ..GuardRecord::default()
        };
    }
    if next.snapshot != sight.snapshot {
        next.snapshot.clone_from(&sight.snapshot);
        next.pace = GuardPace::default();
        next.told.clear();
    }
    next
}

fn next_turn(pace: &mut GuardPace, wanted: Wanted, now: u64, choice: Choice) -> GuardDecision {
    // The pods may be half restored, and kubelet paused.
    if wanted.resumes {
        let attempt = pace.attempts.max(1);
        return GuardDecision::Restore(Wanted { attempt, ..wanted });
    }
    let turn = pace::turn(pace, now, choice.pause);
    let attempts = pace.attempts;
    match turn {
        GuardTurn::Now(attempt) => GuardDecision::Restore(Wanted { attempt, ..wanted }),
        GuardTurn::At(at) => GuardDecision::Later {
            at,
            after: at.saturating_sub(now),
            attempt: attempts + 1,
        },
        GuardTurn::GiveUp => GuardDecision::GivesUp { attempts },
        GuardTurn::GivenUp => GuardDecision::GivenUp { attempts },
    }
}

fn wanted(
    judge: &Judge<'_>,
    fates: &[(&PodSight, PodFate)],
    deleted: &BTreeSet<IfName>,
    waits: bool,
    resumes: bool,
) -> Wanted {
    let names = judge.links.keys();
    let without = names.filter(|name| judge.is_on_deleted(name, deleted));
    let without: BTreeSet<IfName> = without.cloned().collect();
    let is_left = |fate: &PodFate| matches!(fate, PodFate::Deleted | PodFate::Alone);
    let has_left = fates.iter().any(|(_, fate)| is_left(fate));
    let kept = fates.iter().filter(|(_, fate)| !is_left(fate));
    let kept = kept.map(|(pod, _)| pod.id.clone()).collect();
    let mut lost = judge.lost();
    lost.retain(|name| !without.contains(name));
    Wanted {
        lost,
        pods: has_left.then_some(kept),
        without,
        attempt: 1,
        waits,
        resumes,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    /// What it is about, and the looks, each with the record that the one before left.
    #[derive(Deserialize)]
    struct Case {
        about: String,
        #[serde(default)]
        record: GuardRecord,
        #[serde(default)]
        choice: Choice,
        looks: Vec<CaseLook>,
    }

    #[derive(Deserialize)]
    struct CaseLook {
        sight: Sight,
        /// The decision, or a part of it.
        decision: Value,
        /// The deleted links that are told.
        #[serde(default)]
        deleted: Vec<IfName>,
    }

    /// Whether a value has everything of another one.
    fn has(value: &Value, part: &Value) -> bool {
        match (value, part) {
            (Value::Object(value), Value::Object(part)) => part
                .iter()
                .all(|(key, part)| value.get(key).is_some_and(|value| has(value, part))),
            _ => value == part,
        }
    }

    #[test]
    fn the_decisions_are_those_of_the_cases() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/guard");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let case: Case = serde_json::from_str(&text).expect(&text);
            let mut record = case.record;
            for (number, look) in case.looks.iter().enumerate() {
                let place = format!("{}, look {number}: {}", path.display(), case.about);
                let decided = decide(&record, &look.sight, case.choice);
                let decision = serde_json::to_value(&decided.decision).unwrap();
                assert!(has(&decision, &look.decision), "{place}: {decision}");
                let deleted: Vec<_> = decided.deleted.into_keys().collect();
                assert_eq!(deleted, look.deleted, "{place}");
                record = decided.record;
                // A record is read from disk by the next look.
                let text = serde_json::to_string(&record).unwrap();
                record = serde_json::from_str(&text).unwrap();
                if decision.get("restore").is_some() {
                    begins(&mut record, look.sight.now);
                }
            }
            count += 1;
        }
        assert!(count >= 20, "only {count} cases");
    }
}
