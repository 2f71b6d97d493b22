//! What the restores of one run know of each other.
//!
//! A pod that loses its links while those of the host under it stay may be one that its runtime is tearing down. Nothing is
//! created in it again: its addresses may belong to another pod by now. While a CNI plugin removes the network, containerd still
//! reports the sandbox as ready: a second query, a moment later, decides.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::kubelet_endpoint;
use crate::inventory::observe::Host;
use crate::matching::NetnsKey;
use crate::model::net::link::nic::FunctionOf;
use crate::model::problem::RestoreCause;
use crate::model::{NetState, Parent, PodId, PodInfo, Problem};
use crate::plan::HostLinks;
use crate::records::survey::Surveyed;
use crate::restore::facts::Restored;
use crate::restore::host::scope::ParentChange;
use crate::restore::pods::pod::{PodJob, PodState};
use crate::runtime::RuntimeConfig;

/// What the restores of one run know of each other.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Pods that were restored by a record from elsewhere.
    pub recovered: BTreeSet<NetnsKey>,
    /// Whether this is a watch after a restore: whatever is missing was lost again.
    pub is_watch: bool,
    /// Whether pods without a record are left to a later restore: the runtime may be at work on them.
    pub leaves_young: bool,
    /// The ifindexes of the host's links under the pods, as the last restore left them; before the first restore those that were not
    /// lost, if that is known.
    parents: Option<BTreeSet<u32>>,
    has_restored: bool,
    /// Those of the parents that are still there.
    stayed: Option<BTreeSet<u32>>,
    /// Pods that stay as they are.
    untouched: BTreeSet<PodId>,
    /// Pods that their runtime was tearing down.
    torn: BTreeMap<NetnsKey, PodInfo>,
    /// The ifindexes that the device of each virtual function has had.
    functions: BTreeMap<FunctionOf, BTreeSet<u32>>,
}

/// Whether a runtime is tearing a pod down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::restore) enum Removal {
    None,
    /// It may be, although it reported the sandbox as ready at this moment.
    Possible(Instant),
    Known,
}

impl Removal {
    fn is_possible(self) -> bool {
        matches!(self, Self::Possible(_))
    }
}

/// Between the two queries about a pod that may be torn down.
const DOUBT: Duration = Duration::from_secs(1);

impl Course {
    /// Finds the pods without a record that are cut off, once a restore is at rest.
    pub(super) fn find_cut_off(&self, surveyed: &mut Surveyed, pods: &[PodJob]) {
        let has_restored = pods.iter().any(|pod| !pod.done.is_empty());
        let is_at_work = self.is_watch && has_restored;
        if !is_at_work && !self.leaves_young && !surveyed.is_in_cache {
            surveyed.find_cut_off();
            surveyed.confirm_cut_off();
        }
    }

    /// After a loss of which links of the host are known to have stayed: their ifindexes; and pods that stay as they are.
    pub(crate) fn after_loss(stayed: BTreeSet<u32>, untouched: BTreeSet<PodId>) -> Self {
        Self {
            parents: Some(stayed),
            untouched,
            ..Self::default()
        }
    }

    /// The pods that their runtime was tearing down.
    pub(crate) fn torn(&self) -> BTreeSet<PodId> {
        self.torn.values().map(|info| info.id.clone()).collect()
    }

    /// The warnings about them.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let torn = self.torn.values();
        torn.map(|info| RestoreCause::TornDown.warning(info.title()).of(&info.id))
    }

    /// Leaves out the pods that stay as they are, and those that an earlier restore found torn down; returns whether there are any.
    pub(super) fn leave_out(&self, surveyed: &mut Surveyed) -> bool {
        let stays =
            |id: &PodId, key: &NetnsKey| self.untouched.contains(id) || self.torn.contains_key(key);
        surveyed
            .matched
            .retain(|one| !stays(&one.info.id, &one.pod.netns.key()));
        !self.torn.is_empty() || !self.untouched.is_empty()
    }

    /// A restore begins; `parents` reads the ifindexes of the host's links under the pods.
    pub(super) fn begin(&mut self, host: &NetState, parents: impl FnOnce() -> BTreeSet<u32>) {
        self.note_functions(host);
        let is_known = self.is_watch || !self.has_restored;
        let before = self.parents.as_ref().filter(|_| is_known);
        self.stayed = before.map(|before| before & &parents());
    }

    /// Takes down which device each virtual function has at this moment.
    fn note_functions(&mut self, host: &NetState) {
        for link in &host.links {
            let hardware = link.hardware.as_ref();
            if let Some(function) = hardware.and_then(|own| own.function.clone()) {
                self.functions
                    .entry(function)
                    .or_default()
                    .insert(link.index);
            }
        }
    }

    /// The virtual functions whose driver makes a device again and again: more often than two loads of it, each with the former ifindex
    /// given back.
    fn loops(&self) -> impl Iterator<Item = Problem> {
        const ORDINARY: usize = 4;
        let many = self
            .functions
            .iter()
            .filter(|(_, had)| had.len() > ORDINARY);
        many.map(|(function, had)| {
            let function = format!("virtual function {} of {}", function.index, function.of);
            RestoreCause::FunctionLoops { times: had.len() }.error(function)
        })
    }

    /// A restore ended, with the host's links under the pods `now`; returns how they changed since `then`.
    pub(super) fn end(
        &mut self,
        host: &NetState,
        then: &BTreeSet<u32>,
        now: BTreeSet<u32>,
    ) -> ParentChange {
        self.note_functions(host);
        let change = ParentChange::compare(then, &now);
        self.parents = Some(now);
        self.has_restored = true;
        change
    }

    /// Leaves out the pods whose links alone are lost, and whose sandbox is not ready any more. One whose sandbox is ready is put
    /// off until the last turn, in which it is queried again. What each pod lacks must be known.
    pub(super) fn leave_torn(
        &mut self,
        pods: &mut Vec<&mut PodJob>,
        host: &Host,
        links: &HostLinks,
        runtimes: &RuntimeConfig,
    ) {
        let Some(stayed) = &self.stayed else { return };
        for pod in pods.iter_mut() {
            pod.lost_alone = has_whole_host(pod, stayed, host, links);
        }
        let alone = pods
            .iter()
            .filter(|pod| pod.lost_alone && has_lost_links(pod));
        let alone: Vec<&PodInfo> = alone.map(|pod| &pod.matched.info).collect();
        if alone.is_empty() {
            return;
        }
        let answer = kubelet_endpoint::query(&runtimes.with_containers(BTreeSet::new()));
        let torn = answer.map_or_else(|_| BTreeSet::new(), |answer| answer.torn_down(alone));
        for pod in pods.iter_mut() {
            let is_alone = pod.lost_alone && has_lost_links(pod);
            if torn.contains(pod.id()) {
                pod.removal = Removal::Known;
                let key = pod.matched.pod.netns.key();
                self.torn.insert(key, pod.matched.info.clone());
            } else if is_alone && pod.matched.info.sandbox.is_some() && !pod.removal.is_possible() {
                pod.removal = Removal::Possible(Instant::now());
                // The last turn reads it again.
                (pod.state, pod.before) = (PodState::Late, None);
            }
        }
        pods.retain(|pod| pod.removal != Removal::Known && !pod.is_late());
    }

    /// Waits until the pods that were put off can be queried again.
    pub(super) fn wait(pods: &[&mut PodJob]) {
        let asked = pods.iter().filter_map(|pod| match pod.removal {
            Removal::Possible(asked) => Some(asked),
            Removal::None | Removal::Known => None,
        });
        let until = asked.max().map(|asked| asked + DOUBT);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        thread::sleep(left.unwrap_or_default());
    }

    /// Adds the pods that were left out to those that are gone, and the functions that never come to rest to the problems.
    pub(super) fn complete(&self, restored: &mut Restored) {
        restored.problems.extend(self.loops());
        let known: BTreeSet<PodId> = restored.gone.iter().map(|info| info.id.clone()).collect();
        let torn = self.torn.values().filter(|info| !known.contains(&info.id));
        restored.gone.extend(torn.cloned());
    }
}

/// Whether the host's links under a pod are among those that `stayed`. A device inside it comes and goes with its driver.
fn has_whole_host(pod: &PodJob, stayed: &BTreeSet<u32>, host: &Host, links: &HostLinks) -> bool {
    pod.matched
        .claims()
        .links
        .iter()
        .all(|link| match &link.parent {
            Some(Parent::Host(parent)) => {
                let parent = host.state.link(&links.name_now(parent));
                parent.is_some_and(|parent| stayed.contains(&parent.index))
            }
            _ => link.hardware.is_none(),
        })
}

fn has_lost_links(pod: &PodJob) -> bool {
    let claims = pod.matched.claims();
    let mut links = claims.links_but_loopback();
    links.any(|link| !pod.before.iter().flatten().any(|name| *name == link.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Hardware, Link, LinkKind};

    #[test]
    fn a_function_whose_device_is_made_again_and_again_is_named() {
        let mut course = Course::default();
        let mut note = |index: u32, device: u32| {
            let function = FunctionOf {
                of: "0000:3b:00.0".to_owned(),
                index,
            };
            let mut link = Link::plain("ens1v3".parse().unwrap(), LinkKind::Physical);
            link.index = device;
            link.hardware = Some(Hardware {
                function: Some(function),
                ..Hardware::default()
            });
            course.note_functions(&NetState {
                links: vec![link],
                ..NetState::default()
            });
            course
                .loops()
                .map(|one| one.object.to_string())
                .collect::<Vec<_>>()
        };
        for device in [7, 12, 7, 13, 7, 7] {
            assert!(note(3, device).is_empty() && note(2, 8).is_empty());
        }
        assert!(note(3, 14).is_empty());
        assert_eq!(note(3, 15), ["virtual function 3 of 0000:3b:00.0"]);
    }
}
