//! The steps for nexthop objects.

use std::collections::HashMap;

use crate::model::Nexthop;
use crate::plan::Step;

/// The steps for nexthop objects, hops before groups: those that are missing, and those that lost a member or an attribute.
pub(crate) fn steps(wanted: impl Iterator<Item = Nexthop>, now: &[Nexthop]) -> Vec<Step> {
    let now: HashMap<u32, &Nexthop> = now.iter().map(|nexthop| (nexthop.id, nexthop)).collect();
    let mut wanted: Vec<Nexthop> = wanted.collect();
    wanted.sort_by_key(Nexthop::rank);
    let step = |wanted: Nexthop| match now.get(&wanted.id) {
        None => Some(Step::AddNexthop(wanted)),
        Some(now) if **now != wanted => Some(Step::ChangeNexthop(wanted)),
        Some(_) => None,
    };
    wanted.into_iter().filter_map(step).collect()
}
