use super::causes;
use crate::model::{IfName, PodId};

causes! {
    /// Causes where another object has the place, the name or the address.
    ConflictCause {
        /// A link of another kind has the name.
        OtherKind { now: String, then: String } => LinkConflict,
        /// A VLAN with another id or protocol has the name.
        OtherVlan { now: String, then: String } => LinkConflict,
        /// Another link has the VLAN's id on its parent.
        VlanIdTaken { by: IfName } => LinkConflict,
        /// The link is on another parent; `None` is a link of a third namespace.
        OtherParent { now: Option<IfName>, then: Option<IfName> } => LinkConflict,
        /// The bond has another mode.
        OtherBondMode { now: String, then: String } => LinkConflict,
        /// The port is in another bond.
        OtherBond { now: IfName, then: IfName } => LinkConflict,
        /// Others claim the MAC too.
        MacClaimed { others: Vec<Holder> } => MacConflict,
        /// Others claim the address too.
        AddressClaimed { others: Vec<Holder> } => AddressConflict,
    }
}

/// A namespace that has, or claims, what only one can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The pod, or `None` for the host.
    pub pod: Option<PodId>,
    /// A path that leads to the pod's namespace.
    pub netns: String,
    /// The link that has it, where that is known.
    pub link: Option<IfName>,
}
