//! What `netfix guard` knows from one look to the next: `guard.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod::identity::Holder;
use crate::model::{IfName, PodId, is_false};

/// Version of the format.
pub const GUARD_SCHEMA: u32 = 1;

/// What the guard knows, and what it tells monitoring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct GuardRecord {
    /// Version of this format.
    pub schema: u32,
    /// The process that watches; null where none ever did.
    pub watcher: Option<Holder>,
    /// Whether it only reports what it would restore.
    pub reports_only: bool,
    /// The boot that the ifindexes and times are of.
    pub boot: Option<String>,
    /// When the snapshot was taken that the last look compared with (RFC 3339, UTC).
    pub snapshot: Option<String>,
    /// The ifindexes of the host's links under pods when nothing was lost, by their recorded names.
    pub settled: BTreeMap<IfName, u32>,
    /// The deleted links that were reported, each with the ifindexes of the links below it then.
    pub told: BTreeMap<IfName, Vec<u32>>,
    /// The devices of the host that were missing at the last look.
    pub missing: Vec<IfName>,
    /// How often each link was lost in a row, by its recorded name.
    pub losses: BTreeMap<IfName, GuardPace>,
    /// The pods that a restore could not complete.
    pub incomplete: BTreeMap<PodId, IncompletePod>,
    /// Whether something is lost or left alone: then every event of a link matters.
    pub is_waiting: bool,
    /// Whether a pod could not be observed: the next look follows without an event.
    pub is_unsure: bool,
    /// Whether a pod has a device of the host inside: its return is the event of a new link.
    pub has_devices_inside: bool,
    /// When it is the turn of a loss or a pod (`CLOCK_BOOTTIME`, milliseconds).
    pub again_at: Option<u64>,
    /// The last decision that was logged: it is logged once.
    pub said: String,
    /// The watch after the last restore; null once it is over.
    pub watch: Option<GuardWatch>,
    /// The restores so far.
    pub restores: u64,
    /// How often a guard that only reports would have restored.
    pub reported: u64,
    /// The last restore; null before the first.
    pub last: Option<UnplannedEnd>,
    /// The last decisions to do something, or to leave what is lost; the newest last.
    pub deeds: Vec<GuardDeed>,
}

impl GuardRecord {
    /// When the next look follows without an event (`CLOCK_BOOTTIME`, milliseconds).
    #[must_use]
    pub fn next_look(&self) -> Option<u64> {
        let watch = self.watch.as_ref().map(|watch| watch.until);
        self.again_at.into_iter().chain(watch).min()
    }

    /// Keeps a decision, in place of the oldest of fifty.
    pub(crate) fn note_deed(&mut self, deed: GuardDeed) {
        const MOST: usize = 50;
        self.deeds.push(deed);
        let old = self.deeds.len().saturating_sub(MOST);
        self.deeds.drain(..old);
    }

    /// The links that the guard restores no more, each with the restores in a row before that.
    pub fn given_up(&self) -> impl Iterator<Item = (&IfName, u32)> {
        let links = self.losses.iter();
        links.filter_map(|(name, pace)| pace.given_up.then_some((name, pace.attempts)))
    }
}

/// What the guard decided to do, or to leave alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardDeed {
    /// When (RFC 3339, UTC).
    pub at: String,
    /// What, in words.
    pub text: String,
    /// Whether it left what is lost: no window has that.
    #[serde(default)]
    pub left: bool,
}

/// A pod that a restore could not complete, although its links of the host were back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IncompletePod {
    /// Its name.
    pub title: String,
    /// When it was lost (`CLOCK_BOOTTIME`, milliseconds).
    pub since: u64,
    /// What was in the way.
    pub why: String,
    /// How often it was tried.
    pub pace: GuardPace,
}

/// How often a link was lost, or a pod restored, in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardPace {
    /// The restores that followed each other closely.
    pub attempts: u32,
    /// When the last one began (`CLOCK_BOOTTIME`, milliseconds).
    pub last: Option<u64>,
    /// Whether the last one left the link as it was.
    pub in_vain: bool,
    /// Whether the guard restores no more.
    pub given_up: bool,
}

/// What happens to the pods of a restore for a while belongs to its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardWatch {
    /// The window of the restore.
    pub window: String,
    /// When it is over (`CLOCK_BOOTTIME`, milliseconds).
    pub until: u64,
}

/// A person keeps the guard still: `guard-hold.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardHold {
    /// Version of this format.
    pub schema: u32,
    /// Until when (RFC 3339, UTC).
    pub until: String,
    /// Whether `netfix pause` did that, where it found no kubelet: `netfix resume` ends it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_pause: bool,
}

/// How a restore of the guard ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedEnd {
    /// The window, for `netfix report`.
    pub window: Option<String>,
    /// When it ended (RFC 3339, UTC).
    pub at: String,
    /// The exit code that `netfix restore` would have.
    pub exit: u8,
}
