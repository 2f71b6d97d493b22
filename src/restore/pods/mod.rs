//! The pods during a restore.

pub(super) mod batch;
pub(super) mod pod;
pub(super) mod round;
