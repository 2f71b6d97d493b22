use super::causes;
use crate::model::{IfName, PodId};

causes! {
    /// Causes where another object has the place, the name or the address.
    ConflictCause {
        OtherKind { now: String, then: String } => LinkConflict,
        OtherVlan { now: String, then: String } => LinkConflict,
        VlanIdTaken { by: IfName } => LinkConflict,
        OtherParent { now: Option<IfName>, then: Option<IfName> } => LinkConflict,
        OtherBondMode { now: String, then: String } => LinkConflict,
        OtherBond { now: IfName, then: IfName } => LinkConflict,
        MacClaimed { others: Vec<Holder> } => MacConflict,
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
