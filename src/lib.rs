//! netfix: snapshots every pod's network before a NIC driver upgrade and puts it back after.
//!
//! The kernel is observed into plain data ([`observe`]), a pure function decides what is missing ([`plan`]),
//! [`apply`] carries that out, and a new observation says whether it worked. Only [`kernel`] talks to the kernel.

pub mod apply;
pub mod cli;
pub mod cni;
pub mod commands;
pub mod fault;
pub mod journal;
pub mod kernel;
pub mod kubelet;
pub mod model;
pub mod observe;
pub mod plan;
pub mod probe;
pub mod report;
pub mod runtime;
pub mod store;
