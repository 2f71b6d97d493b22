//! Which stored state belongs to which namespace, and which claims contradict each other.
//!
//! Pure: the inventory gathers what runs here and where stored paths lead; nothing here reads a file or opens a socket.

pub(crate) mod at_risk;
pub(crate) mod claims;
pub(crate) mod host_baseline;
pub(crate) mod host_parents;
mod records;
mod selection;

pub use records::{
    Machine, Matching, NetnsKey, PodFacts, Proof, Rejection, StoredRecord, Verdict, match_records,
};
pub use selection::Selection;
