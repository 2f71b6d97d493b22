//! Restores: observes, plans, applies, and observes again until nothing is missing or nothing more can be done.
//!
//! The order of a restore is in `session.rs`.

mod apply;
mod between;
mod conflict;
pub(crate) mod course;
mod create_links;
#[cfg(feature = "engine")]
pub mod engine;
mod facts;
mod host;
mod permit;
mod pods;
pub(crate) mod rehearsed;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod settle;
mod sockets;
mod turns;

pub(crate) use conflict::answering;
pub(crate) use facts::{DeviceFaults, Limits, RestoreState, Restored, RestoredPod};
pub(crate) use host::wait_nic::WaitLimit;
pub(crate) use permit::Permit;
