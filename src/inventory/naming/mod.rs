//! Names and ids of pods: those that container runtimes report, and those of namespaces that no runtime reports.

pub(super) mod attribution;
pub(super) mod pod_ids;
pub(super) mod sandbox_match;
