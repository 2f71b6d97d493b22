//! How much a record has: pods that need little come first.

use crate::model::NetState;
use crate::records::matched::Matched;

/// The number of objects in a record, about; a link has many settings.
pub(super) fn size(matched: &Matched) -> usize {
    const OF_LINK: usize = 10;
    const BYTES: u64 = 100;
    if let Some(whole) = &matched.whole {
        return usize::try_from(whole.size() / BYTES).unwrap_or(usize::MAX);
    }
    let NetState {
        links,
        addresses,
        routes,
        advertised: _,
        nexthops,
        rules,
        neighbours,
        sockets: _,
        ways: _,
        learned: _,
        unsupported: _,
    } = &*matched.claims();
    let others = addresses.len() + routes.len() + nexthops.len() + rules.len() + neighbours.len();
    let qdiscs = links.iter().map(|link| link.traffic.objects.len());
    OF_LINK * links.len() + others + qdiscs.sum::<usize>()
}
