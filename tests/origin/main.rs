//! netfix's checkpoints used by `i40e_net_fix`, the predecessor of netfix, and the checkpoints of
//! `i40e_net_fix` used by netfix.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]

#[path = "../common/mod.rs"]
mod common;

mod import;
mod its_files;
mod our_files;
mod reader;
