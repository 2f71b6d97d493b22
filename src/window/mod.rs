//! The record of a maintenance window and its log: what opens, writes, follows, closes and lists them.

pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod findings;
pub(crate) mod follow;
pub(crate) mod log_file;
pub(crate) mod rebuild_check;
pub(crate) mod records;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod window_log;
pub(crate) mod window_status;
