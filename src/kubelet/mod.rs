//! kubelet's unit: paused with a deadline that starts it again, and resumed.

pub(crate) mod kubelet_pause;
pub(crate) mod overdue;
pub(crate) mod pause;
pub(crate) mod resume;
