//! Links that were created in vain.

use std::collections::BTreeSet;

use crate::kernel::{Socket, link};
use crate::model::{IfName, Indexed, Link, NetState};
use crate::restore::apply::FailedStep;
use crate::restore::permit::Permit;

/// Removes the macvlans that this run created and that cannot go up, so that no link without traffic stays.
///
/// Returns the names of those that were removed.
pub(crate) fn take_back(
    _: Permit<'_>,
    socket: &mut Socket,
    state: &NetState,
    failures: &[FailedStep],
    created: &[IfName],
) -> BTreeSet<IfName> {
    let created: BTreeSet<&IfName> = created.iter().collect();
    let taken_up = failures.iter().filter_map(FailedStep::takes_up);
    let useless: Vec<&IfName> = taken_up.filter(|dev| created.contains(dev)).collect();
    if useless.is_empty() {
        return BTreeSet::new();
    }
    let state = Indexed::new(state);
    let useless: Vec<&Link> = useless
        .into_iter()
        .filter_map(|dev| state.link(dev))
        .filter(|link| link.kind.is_macvlan())
        .collect();
    let requests: Vec<_> = useless.iter().map(|link| link::del(link.index)).collect();
    let results = socket.run(&requests).unwrap_or_default();
    let gone = useless
        .iter()
        .zip(results)
        .filter(|(_, result)| result.is_ok());
    gone.map(|(link, _)| link.name.clone()).collect()
}
