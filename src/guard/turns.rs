//! Whose turn it is: the losses of links and the pods that a restore could not complete, each with its own account.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::{Judge, PodFate};
use super::pace::{self, GuardTurn};
use super::sight::PodSight;
use crate::model::window::GuardRecord;
use crate::model::{IfName, PodId};

/// The turns of what is lost.
#[derive(Default)]
pub(super) struct Turns {
    links: BTreeMap<IfName, GuardTurn>,
    pods: BTreeMap<PodId, GuardTurn>,
    /// The links that are given up from now on, each with the restores in a row before that.
    pub new_given_up: BTreeMap<IfName, u32>,
}

impl Turns {
    pub(super) fn of(
        judge: &Judge<'_>,
        fates: &[(&PodSight, PodFate)],
        record: &mut GuardRecord,
        now: u64,
        pause: u64,
    ) -> Self {
        let mut turns = Self::default();
        let of_host = judge.losses_of_host();
        for name in judge.loose_ports().into_iter().chain(of_host.clone()) {
            turns.of_link(name, record, now, pause);
        }
        for (pod, fate) in fates {
            let turn = match (fate, record.incomplete.get(&pod.id)) {
                (PodFate::Ready, _) => {
                    let mut links = judge.losses_under(pod);
                    if links.is_empty() {
                        links.clone_from(&of_host);
                    }
                    let each = links
                        .into_iter()
                        .map(|name| turns.of_link(name, record, now, pause));
                    // A device inside a pod is no link of the host.
                    each.min().unwrap_or(GuardTurn::Now(1))
                }
                (PodFate::Incomplete, Some(tried)) => pace::of_pod(&tried.pace, now, pause),
                _ => continue,
            };
            turns.pods.insert(pod.id.clone(), turn);
        }
        turns
    }

    fn of_link(
        &mut self,
        name: IfName,
        record: &mut GuardRecord,
        now: u64,
        pause: u64,
    ) -> GuardTurn {
        if let Some(turn) = self.links.get(&name) {
            return *turn;
        }
        let pace = record.losses.entry(name.clone()).or_default();
        let was_given_up = pace.given_up;
        let turn = pace::of_loss(pace, now, pause);
        if pace.given_up && !was_given_up {
            self.new_given_up.insert(name.clone(), pace.attempts);
        }
        self.links.insert(name, turn);
        turn
    }

    fn all(&self) -> impl Iterator<Item = GuardTurn> {
        self.links.values().chain(self.pods.values()).copied()
    }

    /// Whether something is restored now.
    pub(super) fn is_now(&self) -> bool {
        self.all().any(GuardTurn::is_now)
    }

    /// How often in a row, from 1 on.
    pub(super) fn attempt(&self) -> u32 {
        let attempts = self.all().filter_map(|turn| match turn {
            GuardTurn::Now(attempt) => Some(attempt),
            _ => None,
        });
        attempts.max().unwrap_or(1)
    }

    /// The losses that are restored now.
    pub(super) fn losses(&self) -> BTreeSet<IfName> {
        let now = self.links.iter().filter(|(_, turn)| turn.is_now());
        now.map(|(name, _)| name.clone()).collect()
    }

    /// Whether the turns of all these links are later, or never.
    pub(super) fn is_later(&self, links: &BTreeSet<IfName>) -> bool {
        let later = |name| self.links.get(name).is_some_and(|turn| !turn.is_now());
        links.iter().all(later)
    }

    /// Whether it is a pod's turn, or will be.
    pub(super) fn is_of(&self, pod: &PodSight) -> bool {
        self.pods.contains_key(&pod.id)
    }

    /// The pods whose turn it is.
    pub(super) fn pods_now(&self) -> BTreeSet<&PodId> {
        let now = self.pods.iter().filter(|(_, turn)| turn.is_now());
        now.map(|(id, _)| id).collect()
    }

    /// When the first loss is restored, and how often in a row then.
    pub(super) fn later(&self) -> Option<(u64, u32)> {
        let later = self.links.values().filter_map(|turn| match turn {
            GuardTurn::At(at, attempt) => Some((*at, *attempt)),
            _ => None,
        });
        later.min()
    }

    /// When to look again.
    pub(super) fn again_at(&self) -> Option<u64> {
        let later = self.all().filter_map(|turn| match turn {
            GuardTurn::At(at, _) => Some(at),
            _ => None,
        });
        later.min()
    }

    /// The links that are given up, and the most restores in a row of one of them.
    pub(super) fn given_up(&self, record: &GuardRecord) -> Option<(Vec<IfName>, u32)> {
        let links = record
            .given_up()
            .filter(|(name, _)| self.links.contains_key(*name));
        let (links, attempts): (Vec<_>, Vec<_>) =
            links.map(|(name, count)| (name.clone(), count)).unzip();
        attempts.into_iter().max().map(|most| (links, most))
    }
}
