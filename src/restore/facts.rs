//! What a restore did, and how it left the host and the pods.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::context::Pending;
use crate::model::problem::RestoreCause;
use crate::model::window::{LostSetting, SettingResult};
use crate::model::{
    ConflictProbe, CutOff, IfName, Loss, LossCause, NodeIdentity, PodId, PodInfo, PodSummary,
    ProbeRate, Problem, State,
};
use crate::plan::Step;
use crate::records::lost::Unrestorable;
use crate::restore::conflict::detection::Detection;

/// What a restore did, and what is left.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub node: NodeIdentity,
    /// When the host's state was recorded (RFC 3339), where it was.
    pub recorded: Option<String>,
    /// Whether it was about some of the pods, and of the host only about what is under them.
    pub is_selection: bool,
    /// Steps on the host, and its state after them. `None` where nothing has a usable record: then nothing was changed.
    pub host: Option<(Vec<Step>, RestoreState)>,
    /// The recorded devices of the host that were missing or made anew when it began. `None` where they were not compared.
    pub devices_lost: Option<BTreeSet<IfName>>,
    /// Sorted by id.
    pub pods: Vec<RestoredPod>,
    /// The settings of NICs that were lost, on the host and in pods.
    pub settings: Vec<LostSetting>,
    /// Pods with a record that are gone, or that their runtime is tearing down: nothing was changed in them.
    pub gone: Vec<PodInfo>,
    pub problems: Vec<Problem>,
    /// The devices of the host that have no network.
    pub devices: DeviceFaults,
    /// Whether nothing was changed because no record may be used here.
    pub is_refused: bool,
    /// Whether nothing was missing after a restore before this one.
    pub was_complete: bool,
    /// Announcements that are still to be sent.
    pub pending: Pending,
    /// Addresses that the kernel still probes.
    pub detection: Detection,
}

/// The devices of the host that a restore left without network.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceFaults {
    /// Those that are not there.
    pub missing: Vec<IfName>,
    /// Those without carrier, by their present name.
    pub silent: Vec<IfName>,
    /// Those whose driver runs in safe mode.
    pub crippled: Vec<IfName>,
}

impl Restored {
    /// Whether every pod has its network back.
    pub(crate) fn is_complete(&self) -> bool {
        let has_errors = self.problems.iter().any(Problem::is_error);
        self.host.is_some() && !has_errors && self.broken().next().is_none()
    }

    /// Whether no step was carried out, on the host or in a pod.
    pub(crate) fn is_unchanged(&self) -> bool {
        let host = self.host.iter().flat_map(|(steps, _)| steps);
        let pods = self.pods.iter().flat_map(|pod| &pod.done);
        host.chain(pods).next().is_none()
    }

    /// The number of pods in this state.
    pub(crate) fn count(&self, state: RestoreState) -> usize {
        self.pods.iter().filter(|pod| pod.state == state).count()
    }

    /// How each pod was left.
    pub(crate) fn states(&self) -> Vec<(PodId, State)> {
        let pods = self.pods.iter();
        pods.map(|one| (one.pod.info.id.clone(), one.state.into()))
            .collect()
    }

    /// Adds what it did with lost settings of NICs to what restores before it did. What those left, and this one did not find, is as it
    /// was.
    pub(crate) fn note_settings(&self, known: &mut Vec<LostSetting>) {
        let has_read = |pod: Option<&PodId>| match pod {
            None => self.host.is_some(),
            Some(id) => {
                let mut pods = self.pods.iter();
                pods.any(|one| one.pod.info.id == *id && one.after.is_some())
            }
        };
        known.retain(|one| one.result == SettingResult::Restored || !has_read(one.pod.as_ref()));
        for setting in &self.settings {
            let mut before = known.iter_mut();
            match before.find(|one| one.order() == setting.order()) {
                Some(before) => before.result = setting.result,
                None => known.push(setting.clone()),
            }
        }
        known.sort_by(|a, b| a.order().cmp(&b.order()));
    }

    /// The pods without a record that are cut off.
    pub(crate) fn young_cut_off(&self) -> BTreeSet<PodId> {
        let pods = self.pods.iter();
        let young = pods.filter(|one| one.state == RestoreState::CutOff && one.before.is_none());
        young.map(|one| one.pod.info.id.clone()).collect()
    }

    /// The pods that are not as they were.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &RestoredPod> {
        self.pods.iter().filter(|pod| !pod.state.is_good())
    }
}

/// What a restore did in one pod, and what is left.
#[derive(Debug)]
pub(crate) struct RestoredPod {
    pub pod: PodSummary,
    pub state: RestoreState,
    /// The links that it had. `None` for a pod that was not worked on.
    pub before: Option<Vec<IfName>>,
    /// The links that it has. `None` where they could not be read.
    pub after: Option<Vec<IfName>>,
    /// Steps that were carried out.
    pub done: Vec<Step>,
    /// Whether the host's links under it stayed since the restore before: what it lost, it lost alone.
    pub lost_alone: bool,
}

impl RestoredPod {
    /// Takes down what the pod lacks of the host's links under it, or that it reaches nothing, whatever was done.
    pub(super) fn still_lacks(
        &mut self,
        lost: Option<Loss>,
        cut_off: Option<CutOff>,
    ) -> Option<Problem> {
        let id = &self.pod.info.id;
        if let Some(Loss { link, what }) = lost {
            self.state = RestoreState::of(!self.done.is_empty(), false);
            let cause = match what {
                LossCause::Uplink => RestoreCause::UplinkLost,
                what => RestoreCause::StillLost { what },
            };
            return Some(cause.error(link).of(id));
        }
        let what = cut_off.filter(|_| self.state.is_good())?;
        self.state = RestoreState::CutOff;
        Some(what.problem().of(id))
    }
}

/// How a restore left a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreState {
    /// Nothing was missing.
    InSync,
    /// Something was missing, and nothing is.
    Restored,
    /// Something was restored, and something is still missing.
    Partial,
    /// Nothing could be restored.
    Failed,
    /// Nothing that a checkpoint has is missing, and it reaches nothing.
    CutOff,
    /// It may have lost something, and no checkpoint describes it.
    NoCheckpoint,
    /// It was not compared with its record.
    Unknown,
}

impl RestoredPod {
    /// A pod that was not worked on.
    pub(super) fn untouched(pod: PodSummary, why: Unrestorable) -> Self {
        Self {
            pod,
            state: match why {
                Unrestorable::Unusable => RestoreState::Failed,
                Unrestorable::NoCheckpoint => RestoreState::NoCheckpoint,
                Unrestorable::CutOff => RestoreState::CutOff,
            },
            before: None,
            after: None,
            done: Vec::new(),
            lost_alone: false,
        }
    }
}

impl RestoreState {
    /// Whether nothing is known to be missing.
    pub(crate) fn is_good(self) -> bool {
        matches!(
            self,
            Self::InSync | Self::Restored | Self::CutOff | Self::Unknown
        )
    }

    /// The state where something was changed before.
    pub(crate) fn after(self, changed: bool) -> Self {
        match self {
            Self::InSync => Self::of(changed, true),
            // It was compared then.
            Self::Unknown if changed => Self::Restored,
            other => other,
        }
    }

    /// The state of a pod that may not have been compared.
    pub(super) fn unless(self, is_unread: bool) -> Self {
        match self {
            Self::InSync if is_unread => Self::Unknown,
            other => other,
        }
    }

    pub(super) fn of(changed: bool, is_complete: bool) -> Self {
        match (changed, is_complete) {
            (false, true) => Self::InSync,
            (true, true) => Self::Restored,
            (true, false) => Self::Partial,
            (false, false) => Self::Failed,
        }
    }
}

/// How long a restore may take for what it does not do itself, and how it probes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For the NIC.
    pub wait: Duration,
    /// Whether that is the limit for carrier too. Otherwise only the least time is waited for the carrier of a NIC that was there.
    pub awaits_carrier: bool,
    /// For a network manager that owns a link.
    pub manager_grace: Duration,
    /// To watch whether anything is lost again.
    pub settle: Duration,
    /// Whether a pod that has its links and addresses is compared too where it has a table of very many entries.
    pub reads_long: bool,
    /// For one pod, before the rest of its work waits for all others.
    pub pod_budget: Duration,
    /// How to probe an address before it is added.
    pub conflict_probe: ConflictProbe,
    /// How many probes and announcements may leave in a second.
    pub probe_rate: Option<ProbeRate>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::nic::{NicGroup, NicValue};

    fn setting(key: &str, found: u64, result: SettingResult) -> LostSetting {
        LostSetting {
            pod: None,
            nic: "eth0".parse().unwrap(),
            group: NicGroup::Rings,
            key: key.to_owned().try_into().unwrap(),
            before: NicValue::Number(512),
            found: Some(NicValue::Number(found)),
            driver: None,
            result,
        }
    }

    #[test]
    fn the_record_of_lost_settings_has_what_became_of_each_in_the_end() {
        use SettingResult::{Refused, Restored as Back};
        let restored = |settings, state| Restored {
            host: Some((Vec::new(), state)),
            settings,
            ..Restored::default()
        };
        let first = restored(
            vec![
                setting("rx", 256, Refused),
                setting("rx-jumbo", 0, Refused),
                setting("tx", 256, Back),
            ],
            RestoreState::Partial,
        );
        let mut known = Vec::new();
        first.note_settings(&mut known);
        assert_eq!(known, first.settings);
        // Nothing could be read: what is known stays.
        Restored::default().note_settings(&mut known);
        assert_eq!(known, first.settings);
        // The driver has taken one, and a program has set another one.
        let second = restored(vec![setting("rx", 1024, Back)], RestoreState::Restored);
        let both = first.then(second);
        both.note_settings(&mut known);
        let expected = [setting("rx", 1024, Back), setting("tx", 256, Back)];
        assert_eq!(known, expected);
        assert_eq!(both.settings, expected);
    }
}
