//! What became of the recorded links of the host, and of each pod on them.

use std::collections::{BTreeMap, BTreeSet};

use super::sight::{InsideSight, LinkSights, PodSight, all_below, below};
use crate::model::window::GuardRecord;
use crate::model::{IfName, PodId};

/// What became of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodFate {
    Well,
    /// It could not be observed.
    Unknown,
    /// It was lost with the host's links under it, and those are back.
    Ready,
    /// They are not.
    Waiting,
    /// Somebody deleted one of them.
    Deleted,
    /// A restore could not complete it.
    Incomplete,
    /// Its runtime took it away.
    Removed,
    /// Its own links were lost alone: its runtime or somebody took them away.
    Alone,
}

/// The recorded links of the host, as they are now.
pub(super) struct Judge<'a> {
    pub links: &'a LinkSights,
    /// Their ifindexes when nothing was lost.
    pub settled: BTreeMap<IfName, u32>,
    /// The pods that a restore could not complete.
    pub incomplete: BTreeSet<PodId>,
    /// Whether deleted links are restored too.
    pub also_deleted: bool,
    /// The devices under what the host has lost of its own.
    pub host_on: &'a BTreeSet<IfName>,
}

impl Judge<'_> {
    fn is_gone(&self, name: &IfName) -> bool {
        self.links.get(name).is_none_or(|link| link.now.is_none())
    }

    /// Whether another link is there by this name, or the same device made anew.
    fn is_remade(&self, name: &IfName) -> bool {
        let Some(link) = self.links.get(name) else {
            return false;
        };
        // A snapshot that is newer than what was settled has it as it is.
        let settled = self.settled.get(name).copied().unwrap_or(link.recorded);
        link.now
            .is_some_and(|now| now != settled && now != link.recorded)
    }

    fn below(&self, name: &IfName) -> &[IfName] {
        below(self.links, name)
    }

    fn has_ports(&self, name: &IfName) -> bool {
        self.links.get(name).is_some_and(|link| link.has_ports)
    }

    /// Whether it is there, or a restore can make it.
    fn is_available(&self, name: &IfName) -> bool {
        let Some(link) = self.links.get(name) else {
            return false;
        };
        if link.now.is_some() || link.comes {
            return true;
        }
        let mut below = link.below.iter();
        match (link.is_device, link.has_ports) {
            (true, _) => false,
            (false, true) => below.any(|one| self.is_available(one)),
            (false, false) => below.all(|one| self.is_available(one)),
        }
    }

    /// Whether it was lost, or what it is on. A bond and a bridge stay without ports.
    fn is_broken(&self, name: &IfName) -> bool {
        let mut below = self.below(name).iter();
        self.is_gone(name)
            || self.is_remade(name)
            || !self.has_ports(name) && below.any(|one| self.is_broken(one))
    }

    /// Whether it is gone, and all below it stayed.
    fn is_deleted(&self, name: &IfName) -> bool {
        let is_device = self.links.get(name).is_none_or(|link| link.is_device);
        let mut below = self.below(name).iter();
        !is_device && self.is_gone(name) && below.all(|one| self.stayed(one))
    }

    fn stayed(&self, name: &IfName) -> bool {
        !self.is_gone(name) && !self.is_remade(name)
    }

    /// Whether it, or a link below it, was deleted and stays so.
    pub(super) fn is_on_deleted(&self, name: &IfName, deleted: &BTreeSet<IfName>) -> bool {
        let mut below = self.below(name).iter();
        self.is_gone(name)
            && (deleted.contains(name) || below.any(|one| self.is_on_deleted(one, deleted)))
    }

    /// The links that were deleted and stay so.
    pub(super) fn deleted(&self) -> BTreeSet<IfName> {
        let names = self.links.keys();
        let deleted = names.filter(|name| !self.also_deleted && self.is_deleted(name));
        deleted.cloned().collect()
    }

    /// Those of them that were not told, with the links below them. What was told of others is forgotten: they are back, or were lost
    /// in another way since.
    pub(super) fn not_told(
        &self,
        deleted: &BTreeSet<IfName>,
        told: &mut BTreeMap<IfName, Vec<u32>>,
    ) -> BTreeMap<IfName, Vec<IfName>> {
        let indexes = |name: &IfName| -> Vec<u32> {
            let below = self.below(name).iter();
            below.filter_map(|one| self.links.get(one)?.now).collect()
        };
        let now: BTreeMap<_, _> = deleted
            .iter()
            .map(|name| (name.clone(), indexes(name)))
            .collect();
        let fresh = now
            .iter()
            .filter(|(name, indexes)| told.get(*name) != Some(*indexes));
        let fresh = fresh
            .map(|(name, _)| (name.clone(), self.below(name).to_vec()))
            .collect();
        *told = now;
        fresh
    }

    /// The devices that are missing, with something on them.
    pub(super) fn missing(&self) -> Vec<IfName> {
        let missing = self.links.iter().filter(|(name, link)| {
            link.is_device && link.now.is_none() && !link.comes && self.matters(name)
        });
        missing.map(|(name, _)| name.clone()).collect()
    }

    /// The devices that were made anew under what the host has lost: that is back with a restore.
    pub(super) fn losses_of_host(&self) -> BTreeSet<IfName> {
        let remade = self.host_on.iter().filter(|name| self.is_remade(name));
        remade.cloned().collect()
    }

    /// Whether the host has lost something with a device that is not back.
    pub(super) fn host_waits(&self) -> bool {
        self.host_on.iter().any(|name| self.is_gone(name))
    }

    /// Whether a pod is on a link, or what the host had may be.
    fn matters(&self, name: &IfName) -> bool {
        self.host_on.contains(name) || !self.is_host_only(name)
    }

    pub(super) fn is_host_only(&self, name: &IfName) -> bool {
        self.links.get(name).is_some_and(|link| link.is_host_only)
    }

    /// The links that are gone or were made anew.
    pub(super) fn lost(&self) -> Vec<IfName> {
        let names = self.links.keys().filter(|name| self.matters(name));
        let lost = names.filter(|name| self.is_gone(name) || self.is_remade(name));
        lost.cloned().collect()
    }

    /// Whether a port was made anew and its bond or bridge does not have it.
    fn is_loose(&self, name: &IfName) -> bool {
        let link = self.links.get(name);
        let master = link.and_then(|link| link.master.as_ref().filter(|_| !link.is_attached));
        let is_back = master.is_some_and(|master| !self.is_gone(master));
        is_back && self.is_remade(name)
    }

    /// Such ports.
    pub(super) fn loose_ports(&self) -> BTreeSet<IfName> {
        let names = self.links.keys();
        names.filter(|name| self.is_loose(name)).cloned().collect()
    }

    /// The lowest links that were lost of a link and those below it: what befell the others too.
    pub(super) fn losses_of(&self, name: &IfName) -> BTreeSet<IfName> {
        let below = self.below(name).iter();
        let below: BTreeSet<_> = below.flat_map(|one| self.losses_of(one)).collect();
        let is_lost = below.is_empty() && (self.is_gone(name) || self.is_remade(name));
        below
            .into_iter()
            .chain(is_lost.then(|| name.clone()))
            .collect()
    }

    /// The links whose loss is the pod's.
    pub(super) fn losses_under(&self, pod: &PodSight) -> BTreeSet<IfName> {
        pod.on
            .iter()
            .flat_map(|name| self.losses_of(name))
            .collect()
    }

    /// Whether a link under the pod, which stays, has lost one below it.
    fn is_on_lost(&self, pod: &PodSight) -> bool {
        let mut below = pod.on.iter().flat_map(|name| all_below(self.links, name));
        below.any(|name| self.is_gone(&name) || self.is_remade(&name))
    }

    /// The fate of each of these pods.
    pub(super) fn fates<'p>(
        &self,
        pods: &'p [PodSight],
        deleted: &BTreeSet<IfName>,
    ) -> Vec<(&'p PodSight, PodFate)> {
        let fate = |pod| (pod, self.fate(pod, deleted));
        pods.iter().map(fate).collect()
    }

    /// What became of a pod.
    fn fate(&self, pod: &PodSight, deleted: &BTreeSet<IfName>) -> PodFate {
        if pod.is_unknown {
            return PodFate::Unknown;
        }
        if !pod.is_lost {
            return PodFate::Well;
        }
        if pod.is_torn {
            return PodFate::Removed;
        }
        let broken = |name: &&IfName| self.is_broken(name);
        let (gone, lost): (Vec<_>, Vec<_>) = pod
            .on
            .iter()
            .filter(broken)
            .partition(|name| self.is_on_deleted(name, deleted));
        let ports = || pod.on.iter().flat_map(|name| all_below(self.links, name));
        let is_back = |name: &&IfName| self.is_available(name);
        let is_incomplete = self.incomplete.contains(&pod.id);
        let is_cut = pod.is_cut_by_host() && (!pod.is_cut_at_end() || self.is_on_lost(pod));
        if lost.iter().any(is_back) {
            PodFate::Ready
        } else if pod.inside == InsideSight::Returned {
            if is_incomplete {
                PodFate::Incomplete
            } else {
                PodFate::Ready
            }
        } else if !lost.is_empty() || pod.inside == InsideSight::Absent {
            PodFate::Waiting
        } else if !gone.is_empty() {
            PodFate::Deleted
        } else if pod.has_no_uplink && ports().any(|port| self.is_loose(&port)) {
            PodFate::Ready
        } else if pod.has_no_uplink && ports().any(|port| self.is_gone(&port)) {
            PodFate::Waiting
        } else if is_cut && !self.losses_of_host().is_empty() {
            PodFate::Ready
        } else if is_cut && self.host_waits() {
            PodFate::Waiting
        } else if is_incomplete {
            PodFate::Incomplete
        } else {
            PodFate::Alone
        }
    }

    /// The ifindexes by which a later loss is recognised: of all links but those of losses that are to be restored.
    pub(super) fn settle(&self, next: &mut GuardRecord, fates: &[(&PodSight, PodFate)]) {
        let is_pending = |fate: &PodFate| matches!(fate, PodFate::Ready | PodFate::Waiting);
        let pending = fates.iter().filter(|(_, fate)| is_pending(fate));
        let mut pending: BTreeSet<IfName> = pending
            .flat_map(|(pod, _)| pod.on.iter().flat_map(|name| all_below(self.links, name)))
            .collect();
        pending.extend(self.loose_ports());
        pending.extend(self.losses_of_host());
        let missing = self.host_on.iter().filter(|name| self.is_gone(name));
        pending.extend(missing.cloned());
        let settled = self
            .links
            .iter()
            .filter(|(name, _)| !pending.contains(*name));
        let settled = settled.filter_map(|(name, link)| Some((name.clone(), link.now?)));
        next.settled.extend(settled);
        next.settled.retain(|name, _| self.links.contains_key(name));
        // Somebody else restored what was given up.
        next.losses
            .retain(|name, pace| !pace.given_up || pending.contains(name));
    }
}
