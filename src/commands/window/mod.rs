//! The commands around a maintenance window, one file a command.

pub(crate) mod confirm;
pub(crate) mod fleet;
pub(crate) mod pause;
pub(crate) mod report;
pub(crate) mod status;
pub(crate) mod upgrade;
pub(crate) mod wait;
