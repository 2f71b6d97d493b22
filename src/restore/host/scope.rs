//! The links of the host that pods need: the devices under the pods and the links above them.

use std::collections::BTreeSet;

use crate::inventory::observe::Host;
use crate::matching::host_baseline::HostBaseline;
use crate::model::{Address, IfName, Indexed, LinkGraph};
use crate::plan::link::port::is_taken_back;
use crate::plan::{self, Plan};
use crate::restore::host::own_addresses::OwnAddresses;
use crate::situation::plan_of;

/// The plan without the addresses that are not to be added, or not yet.
pub(super) fn plan_without(host: &Host, baseline: &HostBaseline, own: &OwnAddresses) -> Plan {
    let (plan, links) = plan_of(host, baseline);
    if own.is_empty() {
        return plan;
    }
    let is_left_out = |one: &Address| own.is_left_out(&links.name_now(&one.dev), one.local);
    let wanted = baseline
        .state
        .without_ways(&host.state, is_left_out, |_| false);
    let observed = baseline.observed(&host.state, None);
    plan::host(&wanted, observed, &baseline.scope()).0
}

/// The devices under the pods and the links above them: each by its name in the record, and now.
pub(super) fn in_scope(
    host: &Host,
    baseline: &HostBaseline,
) -> impl Iterator<Item = (IfName, IfName)> {
    let (_, links) = plan_of(host, baseline);
    let names = LinkGraph::new(&baseline.state.links).changed_with(&baseline.devices);
    names.into_iter().map(move |name| {
        let now = links.name_now(&name);
        (name, now)
    })
}

/// Those that Open vSwitch has not taken back yet, by their name now.
pub(super) fn not_taken_back(host: &Host, baseline: &HostBaseline) -> Vec<IfName> {
    let (state, present) = (Indexed::new(&baseline.state), Indexed::new(&host.state));
    let waits = |(then, now): &(IfName, IfName)| {
        let both = state.link(then).zip(present.link(now));
        both.is_some_and(|(then, now)| is_taken_back(then, Some(now), &state, &present))
    };
    let links = in_scope(host, baseline).filter(waits);
    links.map(|(_, now)| now).collect()
}

/// The ifindexes of those that exist.
pub(super) fn parents(host: &Host, baseline: &HostBaseline) -> BTreeSet<u32> {
    in_scope(host, baseline)
        .filter_map(|(_, now)| Some(host.state.link(&now)?.index))
        .collect()
}

/// The parents of the pods' links after a restore, compared with those that the pods were restored on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::restore) enum ParentChange {
    #[default]
    Same,
    /// One more is there.
    More,
    /// One is gone, or another one of its name is in its place.
    Lost,
}

impl ParentChange {
    /// By their ifindexes.
    pub(in crate::restore) fn compare(before: &BTreeSet<u32>, now: &BTreeSet<u32>) -> Self {
        if !before.is_subset(now) {
            Self::Lost
        } else if before == now {
            Self::Same
        } else {
            Self::More
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_of_another_index_was_lost_and_one_that_came_was_not() {
        let [none, old, new, both] = [&[][..], &[5], &[7], &[5, 7]]
            .map(|indexes: &[u32]| indexes.iter().copied().collect::<BTreeSet<_>>());
        assert_eq!(ParentChange::compare(&old, &old), ParentChange::Same);
        assert_eq!(ParentChange::compare(&none, &new), ParentChange::More);
        assert_eq!(ParentChange::compare(&old, &both), ParentChange::More);
        assert_eq!(ParentChange::compare(&old, &new), ParentChange::Lost);
        assert_eq!(ParentChange::compare(&both, &new), ParentChange::Lost);
    }
}
