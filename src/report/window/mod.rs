//! The report of a maintenance window: its record, and what is computed from it.

mod figures;
pub(super) mod hold;
mod kernel;
pub(super) mod nics;
pub(super) mod outcome;
pub(super) mod page;
mod sentence;
mod settings;
mod tables;
pub(super) mod terminal;
pub(super) mod view;
pub(super) mod words;
