//! A driver upgrade as one window: from the check to the check that no pod was rebuilt. `driver` has the order of the phases and
//! what follows from each; `phases` has their work.

mod baseline;
pub(crate) mod condition;
pub(crate) mod device_loss;
pub(crate) mod driver;
pub(crate) mod launch;
pub(crate) mod ledger;
pub(crate) mod limit;
mod phases;
pub(crate) mod preview;
mod process_tree;
mod programs;
pub(crate) mod request;
mod signals;
mod unselected;
