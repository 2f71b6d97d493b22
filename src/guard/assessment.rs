//! What follows from the fates of the pods and the turns of their losses.

use std::collections::BTreeSet;

use super::decide::{Choice, GuardDecision, LeftAlone, Tried, Wanted};
use super::judge::{Judge, PodFate};
use super::pace;
use super::sight::{PodSight, Sight};
use super::turns::Turns;
use crate::model::IfName;
use crate::model::window::GuardRecord;

/// The fates of the pods, and whose turn it is.
pub(super) struct Assessment<'a> {
    pub judge: &'a Judge<'a>,
    pub fates: &'a [(&'a PodSight, PodFate)],
    pub deleted: &'a BTreeSet<IfName>,
    pub turns: &'a Turns,
}

impl Assessment<'_> {
    pub(super) fn has(&self, wanted: PodFate) -> bool {
        self.fates.iter().any(|(_, fate)| *fate == wanted)
    }

    pub(super) fn decision(
        &self,
        record: &GuardRecord,
        sight: &Sight,
        choice: Choice,
        waits: bool,
    ) -> GuardDecision {
        let is_unfinished = sight.window.is_some();
        if self.turns.is_now() || is_unfinished {
            let wanted = self.wanted(waits, is_unfinished);
            if choice.reports_only {
                GuardDecision::WouldRestore(wanted)
            } else {
                GuardDecision::Restore(wanted)
            }
        } else if let Some((at, attempt)) = self.turns.later() {
            let after = at.saturating_sub(sight.now);
            GuardDecision::Later { at, after, attempt }
        } else if self.has(PodFate::Waiting) || self.judge.host_waits() {
            let missing = record.missing.clone();
            GuardDecision::WaitsFor { missing }
        } else if let Some((links, attempts)) = self.turns.given_up(record) {
            GuardDecision::GivenUp { links, attempts }
        } else if sight.is_unread || self.has(PodFate::Unknown) {
            // What is there now is not known to be right.
            GuardDecision::Unsure
        } else {
            self.at_rest(record, sight, choice)
        }
    }

    /// No pod is to be restored, and each was observed.
    fn at_rest(&self, record: &GuardRecord, sight: &Sight, choice: Choice) -> GuardDecision {
        let is_left = |fate: &PodFate| {
            matches!(
                fate,
                PodFate::Alone | PodFate::Incomplete | PodFate::Removed
            )
        };
        let alone = self.fates.iter().filter(|(_, fate)| is_left(fate));
        let alone = alone.map(|(pod, fate)| LeftAlone {
            pod: Some(pod.title.clone()),
            is_removed: *fate == PodFate::Removed,
            loss: pod.loss.clone(),
            tried: record.incomplete.get(&pod.id).map(|tried| Tried {
                why: tried.why.clone(),
                pause: pace::until_retry(&tried.pace, choice.pause),
            }),
        });
        let damaged = sight.damaged.iter().map(|title| LeftAlone {
            pod: Some(title.clone()),
            is_removed: false,
            loss: None,
            tried: None,
        });
        let host = sight.host.iter().map(|loss| LeftAlone {
            pod: None,
            is_removed: false,
            loss: Some(loss.clone()),
            tried: None,
        });
        let host = host.filter(|_| self.deleted.is_empty());
        let left: Vec<LeftAlone> = alone.chain(damaged).chain(host).collect();
        match &sight.no_match {
            Some(selectors) => GuardDecision::NoPod {
                selectors: selectors.clone(),
            },
            None if sight.snapshot.is_none() && sight.pods.is_empty() => GuardDecision::NoSnapshot,
            None if !left.is_empty() => GuardDecision::LeftAlone(left),
            None if !self.deleted.is_empty() => GuardDecision::LeftDeleted,
            None => GuardDecision::Well,
        }
    }

    fn wanted(&self, waits: bool, resumes: bool) -> Wanted {
        let (judge, turns) = (self.judge, self.turns);
        let names = judge.links.keys();
        let without = names.filter(|name| judge.is_on_deleted(name, self.deleted));
        let without: BTreeSet<IfName> = without.cloned().collect();
        let losses = turns.losses();
        // Where no link was lost, only pods are tried again.
        let only = (losses.is_empty() && !resumes).then(|| turns.pods_now());
        // A guard that is gone may have restored a part of a pod that lost nothing else.
        let stays = |pod: &PodSight, fate: &PodFate| match fate {
            _ if turns.is_of(pod) => !turns.pods_now().contains(&pod.id),
            PodFate::Well => !resumes,
            fate => matches!(fate, PodFate::Deleted | PodFate::Alone | PodFate::Removed),
        };
        let (untouched, kept): (Vec<_>, Vec<_>) =
            self.fates.iter().partition(|(pod, fate)| stays(pod, fate));
        let mut lost = judge.lost();
        lost.retain(|name| {
            only.is_none() && !without.contains(name) && !turns.is_later(&judge.losses_of(name))
        });
        let again = kept.iter().filter(|(_, fate)| *fate == PodFate::Incomplete);
        Wanted {
            lost,
            again: again.map(|(pod, _)| pod.title.clone()).collect(),
            losses,
            pods: only.map(|pods| pods.into_iter().cloned().collect()),
            untouched: untouched.iter().map(|(pod, _)| pod.id.clone()).collect(),
            without,
            attempt: turns.attempt(),
            waits,
            resumes,
        }
    }
}
