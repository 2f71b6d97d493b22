//! What follows from a look: pure. The cases are in `testdata/guard`.
//!
//! A link that is gone or has another ifindex than when all was well was lost with what is below it, and pods on it are restored
//! once that is back. A link that is gone while everything below it stayed was deleted by somebody.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::assessment::Assessment;
use super::judge::{Judge, PodFate};
use super::sight::{InsideSight, Sight, WindowSight};
use super::turns::Turns;
use crate::model::window::{GUARD_SCHEMA, GuardRecord};
use crate::model::{IfName, Loss, PodId, is_false};

/// What the user wants.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    /// Whether links are restored that somebody deleted.
    pub also_deleted: bool,
    /// Whether what would be restored is only reported.
    pub reports_only: bool,
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
    /// A person keeps the guard still, while so many pods are lost.
    Held { until: String, lost: usize },
    /// These are not back.
    WaitsFor { missing: Vec<IfName> },
    /// A pod could not be observed, or its record not be read: nothing says that it has its network.
    Unsure,
    /// No selected pod runs.
    NoPod { selectors: String },
    /// Only links are missing that somebody deleted.
    LeftDeleted,
    /// Something is lost, and not with a link of the host under pods, or could not be restored.
    LeftAlone(Vec<LeftAlone>),
    /// Restore.
    Restore(Wanted),
    /// `--report-only`: this would be restored.
    WouldRestore(Wanted),
    /// The loss repeats: not before this moment.
    Later {
        at: u64,
        /// In so many milliseconds.
        after: u64,
        attempt: u32,
    },
    /// The loss has repeated too often.
    GivenUp { links: Vec<IfName>, attempts: u32 },
}

/// What the guard leaves to a runtime, a person or `netfix restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftAlone {
    /// The name of the pod; `None`: the host.
    pub pod: Option<String>,
    /// Whether its runtime has it no more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_removed: bool,
    /// What it lost; `None`: its record cannot be read.
    pub loss: Option<Loss>,
    /// The restore that could not complete it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

/// A restore that could not complete a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    /// What was in the way.
    pub why: String,
    /// The next attempt follows so many milliseconds after it.
    pub pause: u64,
}

/// The restore that is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// The links that were lost, for people.
    pub lost: Vec<IfName>,
    /// Those of them whose loss it is.
    pub losses: BTreeSet<IfName>,
    /// The names of the pods that an earlier restore could not complete.
    pub again: Vec<String>,
    /// The pods that are tried again, where nothing else was lost.
    pub pods: Option<Vec<PodId>>,
    /// The pods that stay as they are: they lost nothing, or not with what was lost, or it is not their turn.
    #[serde(default)]
    pub untouched: BTreeSet<PodId>,
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
    /// The links whose loss is given up from now on, each with the restores in a row before that.
    pub given_up: BTreeMap<IfName, u32>,
    /// The deleted links that were not reported yet, each with the links below it.
    pub deleted: BTreeMap<IfName, Vec<IfName>>,
    pub record: GuardRecord,
}

impl Decided {
    /// Nothing is done until an event, or this moment.
    fn still(decision: GuardDecision, mut record: GuardRecord, until: u64) -> Self {
        record.is_waiting = true;
        record.again_at = Some(until);
        Self {
            decision,
            given_up: BTreeMap::new(),
            deleted: BTreeMap::new(),
            record,
        }
    }
}

impl GuardDecision {
    /// Whether it is to do something, or to leave what is lost: a person asks about that later.
    pub(crate) fn is_deed(&self) -> bool {
        matches!(
            self,
            Self::Restore(_)
                | Self::WouldRestore(_)
                | Self::LeftAlone(_)
                | Self::LeftDeleted
                | Self::GivenUp { .. }
        )
    }
}

impl Wanted {
    /// Whether it is about pods alone that an earlier restore could not complete.
    pub(crate) fn is_retry(&self) -> bool {
        self.lost.is_empty() && !self.again.is_empty() && !self.resumes
    }

    /// Whether it is about a pod.
    pub(crate) fn has(&self, pod: &PodId) -> bool {
        let is_tried = self.pods.as_ref().is_none_or(|pods| pods.contains(pod));
        is_tried && !self.untouched.contains(pod)
    }
}

/// The end of a window is an event, the death of its netfix is not: after so many milliseconds the guard looks.
const WINDOW: u64 = 60_000;

/// Whether a window or a person keeps the guard still, for so many milliseconds at most.
fn kept_still(sight: &Sight) -> Option<(GuardDecision, u64)> {
    if let Some(WindowSight::Of(command)) = &sight.window {
        let command = command.clone();
        return Some((GuardDecision::LeftToWindow { command }, WINDOW));
    }
    let hold = sight.hold.as_ref()?;
    let until = hold.until.clone();
    let lost = sight.pods.iter().filter(|pod| pod.is_lost).count();
    Some((GuardDecision::Held { until, lost }, hold.left))
}

/// Decides.
pub(crate) fn decide(record: &GuardRecord, sight: &Sight, choice: Choice) -> Decided {
    let mut next = remembered(record, sight);
    let judge = Judge {
        links: &sight.links,
        settled: next.settled.clone(),
        incomplete: next.incomplete.keys().cloned().collect(),
        also_deleted: choice.also_deleted,
        host_on: &sight.host_on,
    };
    let deleted = judge.deleted();
    let fates = judge.fates(&sight.pods, &deleted);
    let is_unsure = sight.is_unread || fates.iter().any(|(_, fate)| *fate == PodFate::Unknown);
    if let Some((decision, left)) = kept_still(sight) {
        // What a window or a person has restored meanwhile is settled.
        if !is_unsure {
            judge.settle(&mut next, &fates);
        }
        return Decided::still(decision, next, sight.now + left);
    }
    let fresh = judge.not_told(&deleted, &mut next.told);
    let missing = judge.missing();
    // Pods wait for no device that only the host has something on.
    let waits = missing
        .iter()
        .any(|name| !next.missing.contains(name) && !judge.is_host_only(name));
    next.missing.clone_from(&missing);
    next.incomplete.retain(|id, _| {
        let fate = fates.iter().find(|(pod, _)| pod.id == *id);
        // A new loss is another matter.
        !fate.is_none_or(|(_, fate)| matches!(fate, PodFate::Well | PodFate::Ready))
    });
    let turns = Turns::of(&judge, &fates, &mut next, sight.now, choice.pause);
    let found = Assessment {
        judge: &judge,
        fates: &fates,
        deleted: &deleted,
        turns: &turns,
    };
    next.reports_only = choice.reports_only;
    let decision = found.decision(&next, sight, choice, waits);
    if !is_unsure {
        judge.settle(&mut next, &fates);
    }
    let is_idle = match decision {
        // A new snapshot is an event.
        GuardDecision::Well | GuardDecision::NoSnapshot => true,
        GuardDecision::LeftAlone(_) | GuardDecision::NoPod { .. } => deleted.is_empty(),
        _ => false,
    };
    next.is_waiting = !is_idle || !next.missing.is_empty();
    next.is_unsure = is_unsure;
    next.again_at = turns.again_at();
    Decided {
        decision,
        given_up: turns.new_given_up,
        deleted: fresh,
        record: next,
    }
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
            reported: next.reported,
            last: next.last,
            deeds: next.deeds,
            watcher: next.watcher,
            boot: sight.boot.clone(),
            ..GuardRecord::default()
        };
    }
    if next.snapshot != sight.snapshot {
        next.snapshot.clone_from(&sight.snapshot);
        next.losses.clear();
        next.incomplete.clear();
        next.told.clear();
    }
    next
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::guard::accounts::{begins, ends};

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
        /// The links that are given up.
        #[serde(default)]
        given_up: Vec<IfName>,
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
            // A restore that ended before this look.
            let mut ended: Option<(Wanted, Sight)> = None;
            for (number, look) in case.looks.iter().enumerate() {
                let place = format!("{}, look {number}: {}", path.display(), case.about);
                if let Some((wanted, before)) = ended.take() {
                    let sights = [&before, &look.sight];
                    ends(&mut record, &wanted, (before.now, sights), |id| {
                        format!("{id} is odd")
                    });
                }
                let decided = decide(&record, &look.sight, case.choice);
                let decision = serde_json::to_value(&decided.decision).unwrap();
                assert!(has(&decision, &look.decision), "{place}: {decision}");
                let deleted: Vec<_> = decided.deleted.into_keys().collect();
                assert_eq!(deleted, look.deleted, "{place}");
                let given_up: Vec<_> = decided.given_up.into_keys().collect();
                assert_eq!(given_up, look.given_up, "{place}");
                record = decided.record;
                // A record is read from disk by the next look.
                let text = serde_json::to_string(&record).unwrap();
                record = serde_json::from_str(&text).unwrap();
                if let GuardDecision::Restore(wanted) = decided.decision {
                    begins(&mut record, &wanted, look.sight.now);
                    ended = Some((wanted, look.sight.clone()));
                }
            }
            count += 1;
        }
        assert!(count >= 20, "only {count} cases");
    }
}
