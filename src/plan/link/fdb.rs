//! The steps for forwarding entries.

use std::collections::HashSet;

use crate::model::Link;
use crate::model::net::link::fdb::FdbEntry;
use crate::plan::{DaemonState, NetlinkStep, Plan};

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FdbTable {
    /// Those in the link's own table.
    Own,
    /// Those in the table of its bridge.
    Bridge,
}

/// The steps that add the recorded entries that a link lacks. What a daemon added and has withdrawn stays away, as its routes do.
pub(super) fn steps(
    wanted: &Link,
    now: &Link,
    table: FdbTable,
    daemons: DaemonState,
    plan: &mut Plan,
) {
    let present: HashSet<&FdbEntry> = now.fdb.iter().collect();
    let is_left = |entry: &FdbEntry| daemons == DaemonState::Leave && entry.is_of_daemon();
    let entries = wanted.fdb.iter();
    let entries = entries.filter(|entry| entry.master == (table == FdbTable::Bridge));
    let missing = entries.filter(|entry| !present.contains(entry) && !is_left(entry));
    plan.extend(missing.map(|entry| NetlinkStep::AddForwarding {
        dev: now.name.clone(),
        entry: Box::new(entry.clone()),
    }));
}
