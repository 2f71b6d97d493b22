//! What a reload of a NIC's driver meets: modules that use it, parameters that it does not keep, filters that are full.

pub(crate) mod command;
pub(crate) mod filters;
pub(crate) mod modules;
pub(crate) mod parameters;
