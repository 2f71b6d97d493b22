//! netfix saves every pod's network before a NIC driver upgrade and restores it afterwards.
//!
//! Observe the kernel into plain data, match it with the stored checkpoints, plan the missing steps, apply them, observe
//! again. Matching and planning are pure functions. Only `kernel` sends netlink messages.
//! `docs/architecture.md` has the map.

mod check;
mod checked;
pub mod cli;
mod clock;
pub mod cni;
pub mod commands;
pub mod context;
mod dbus;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gateways;
mod guard;
mod inventory;
pub mod journal;
mod kernel;
mod kubelet;
mod managers;
pub mod matching;
pub mod model;
pub mod plan;
pub mod progress;
mod records;
mod refusal;
mod rehearsal;
pub mod report;
mod restore;
mod upgrade;
mod window;
#[cfg(feature = "engine")]
pub use restore::engine;
mod runtime;
mod side_by_side;
mod situation;
mod snapshot;
pub mod store;
mod systemd;
