//! The steps for forwarding entries.

use std::collections::HashSet;

use crate::model::Link;
use crate::model::net::link::fdb::FdbEntry;
use crate::plan::{DaemonState, NetlinkStep, Plan};

/// The steps that add the recorded entries that a link lacks. What a daemon added and has withdrawn stays away, as its routes do.
pub(super) fn steps(wanted: &Link, now: &Link, daemons: DaemonState, plan: &mut Plan) {
    let present: HashSet<&FdbEntry> = now.fdb.iter().collect();
    let is_left = |entry: &FdbEntry| daemons == DaemonState::Leave && entry.is_of_daemon();
    let missing = wanted.fdb.iter();
    let missing = missing.filter(|entry| !present.contains(entry) && !is_left(entry));
    plan.extend(missing.map(|entry| NetlinkStep::AddForwarding {
        dev: now.name.clone(),
        entry: Box::new(entry.clone()),
    }));
}
