//! Addresses and MACs that another link or machine may have: probed before, and announced after a restore.

pub(super) mod announce;
pub(crate) mod answering;
pub(super) mod detection;
mod flight;
pub(super) mod holders;
pub(super) mod pace;
pub(super) mod probe;
pub(super) mod targets;
