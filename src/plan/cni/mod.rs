//! A CNI result as the state before: what it lacks is taken from the pod, and what its plugins add is added.

pub(crate) mod complete;
pub(crate) mod routes;
