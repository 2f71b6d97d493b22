//! kubelet's unit: paused with a deadline that starts it again, and resumed. The order never leaves it stopped: record, arm the
//! deadline, stop, mask, verify; then start, stop the deadline.

mod damaged;
pub(crate) mod deadline;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod unit;
