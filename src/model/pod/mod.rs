//! Pods: their identity, what only one of them can have, and what an answer or a CNI result says of them.

pub mod answers;
pub(crate) mod by_netns;
pub mod claim;
pub mod cni_result;
pub mod cut_off;
pub mod empty;
pub mod identity;
pub mod partial;
pub(crate) mod past;
pub mod summary;
