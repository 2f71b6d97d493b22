//! The pods during a restore.

pub(super) mod batch;
pub(super) mod pod;
pub(super) mod probed;
pub(super) mod round;
mod size;
