//! netfix's checkpoints in the hands of `i40e_net_fix`, the tool it grew out of, and that tool's checkpoints
//! in netfix's.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot go on says why and stops"
)]

#[path = "../common/mod.rs"]
mod common;

mod import;
mod its_files;
mod our_files;
mod reader;
