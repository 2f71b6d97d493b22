//! `netfix guard` at this moment, for `status`, `check` and the metrics.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::clock;
use crate::inventory::node::node_identity;
use crate::inventory::procfs;
use crate::model::IfName;
use crate::model::window::{GuardDeed, GuardHold, GuardRecord, UnplannedEnd};
use crate::store::{Store, StoreError};

/// What systemd starts at boot has a link here: systemctl(1), enable.
const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/netfix-guard.service";

/// So many of its last decisions are shown.
const LAST: usize = 5;

/// The guard of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardNow {
    /// What it does.
    pub state: GuardState,
    /// Until when a person keeps it still (RFC 3339, UTC); null where nobody does.
    pub hold: Option<String>,
    /// The links whose pods it restores no more.
    pub given_up: Vec<GivenUpLink>,
    /// The pods that it could not complete, and tries again.
    pub incomplete: Vec<IncompleteNow>,
    /// The restores so far.
    pub restores: u64,
    /// What it would have restored, with `--report-only`.
    pub reported: u64,
    /// The last restore; null before the first.
    pub last: Option<UnplannedEnd>,
    /// Its last decisions to do something, or to leave what is lost; the newest last.
    pub deeds: Vec<GuardDeed>,
}

/// A link that was lost again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenUpLink {
    /// Its name.
    pub name: IfName,
    /// The restores in a row.
    pub attempts: u32,
}

/// A pod that the guard could not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteNow {
    /// Its name.
    pub title: String,
    /// What is in the way.
    pub why: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// What a guard does at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuardState {
    /// It does not run, and is not to.
    Off,
    /// It does not run, though its unit is enabled.
    Stopped,
    /// A person keeps it still.
    Held,
    /// It reports what it would do.
    ReportOnly,
    /// A loss repeats: it restores the pods on that link no more.
    GivenUp,
    /// It has restored pods, and finds out what becomes of them.
    Watching,
    /// It restores what is lost.
    Armed,
}

/// Whether systemd starts it at boot.
pub(crate) fn is_enabled() -> bool {
    Path::new(WANTED).is_symlink()
}

/// Until when a person keeps the guard still, and for how long.
pub(crate) fn hold(store: &Store) -> Result<Option<(GuardHold, Duration)>, StoreError> {
    let hold = store.load_hold()?.map(|hold| {
        let left = clock::time_until(&hold.until);
        (hold, left)
    });
    Ok(hold.filter(|(_, left)| !left.is_zero()))
}

impl GuardNow {
    /// Reads what is known of it.
    pub(crate) fn read(store: &Store) -> Result<Self, StoreError> {
        Self::with(store.load_guard()?, store)
    }

    /// The same; `None` where it never ran.
    pub(crate) fn read_if_ran(store: &Store) -> Result<Option<Self>, StoreError> {
        let record = store.load_guard()?;
        let has_run = record.schema > 0;
        has_run.then(|| Self::with(record, store)).transpose()
    }

    fn with(record: GuardRecord, store: &Store) -> Result<Self, StoreError> {
        let hold = hold(store)?.map(|(hold, _)| hold);
        Ok(Self::of(record, hold, is_enabled()))
    }

    /// By what the guard knows, and whether systemd is to run it.
    pub(crate) fn of(mut record: GuardRecord, hold: Option<GuardHold>, is_enabled: bool) -> Self {
        let is_of_boot = record.boot == node_identity().boot_id;
        let is_running = record.watcher.as_ref().is_some_and(procfs::is_running);
        let links = record.given_up().filter(|_| is_of_boot);
        let given_up = links.map(|(name, attempts)| GivenUpLink {
            name: name.clone(),
            attempts,
        });
        let given_up: Vec<GivenUpLink> = given_up.collect();
        let state = match (is_running, is_enabled) {
            (false, true) => GuardState::Stopped,
            (false, false) => GuardState::Off,
            _ if hold.is_some() => GuardState::Held,
            _ if record.reports_only => GuardState::ReportOnly,
            _ if !given_up.is_empty() => GuardState::GivenUp,
            _ if record.watch.is_some() => GuardState::Watching,
            _ => GuardState::Armed,
        };
        let others = record.deeds.len().saturating_sub(LAST);
        let incomplete = record.incomplete.into_values().filter(|_| is_of_boot);
        Self {
            state,
            hold: hold.map(|hold| hold.until),
            given_up,
            incomplete: incomplete
                .map(|pod| IncompleteNow {
                    title: pod.title,
                    why: pod.why,
                    attempts: pod.pace.attempts,
                })
                .collect(),
            restores: record.restores,
            reported: record.reported,
            last: record.last,
            deeds: record.deeds.split_off(others),
        }
    }
}
