//! What of the host names links by their ifindex, beside the host's record.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::sockets::named;
use crate::kernel::ability::is_kernel;
use crate::model::net::link::index::IndexUses;
use crate::model::{IfName, NetState, NodeState, Problem};
use crate::plan::indexes;

/// What names these links of the host, or an ifindex that no link has.
pub(crate) struct IndexLook<'a> {
    host: &'a NetState,
    at_risk: BTreeSet<IfName>,
    uses: IndexUses,
}

impl<'a> IndexLook<'a> {
    /// For the time after a loss.
    pub(crate) fn after(host: &'a NetState) -> Self {
        Self::of(host, BTreeSet::new())
    }

    /// With what a reload of the host's devices can take; these are those under the pods.
    pub(crate) fn with_risk(host: &'a NetState, devices: &BTreeSet<IfName>) -> Self {
        Self::of(host, host.host_links_at_risk(devices))
    }

    fn of(host: &'a NetState, at_risk: BTreeSet<IfName>) -> Self {
        Self {
            uses: named::read(host, &at_risk),
            host,
            at_risk,
        }
    }

    /// What a reload leaves without its link, or would.
    pub(crate) fn named(&self) -> Vec<Problem> {
        // `IFLA_NEW_IFINDEX`.
        indexes::named(&self.uses, self.host, &self.at_risk, is_kernel((5, 13)))
    }

    /// What names a link that was made again.
    pub(crate) fn dead(&self, recorded: Option<&NodeState>) -> Vec<Problem> {
        indexes::dead(&self.uses, self.host, recorded)
    }

    /// What the next record keeps for that.
    pub(crate) fn former(&self, recorded: Option<&NodeState>) -> BTreeMap<u32, IfName> {
        indexes::former(&self.uses, self.host, recorded)
    }
}
