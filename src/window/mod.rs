//! Maintenance windows: the record, of which `session` is the only writer, the log, and the commands that read both.

pub(crate) mod abandoned;
pub(crate) mod background;
pub(crate) mod bus;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod fates;
pub(crate) mod history;
pub(crate) mod kernel_log;
pub(crate) mod log_file;
pub(crate) mod network;
pub(crate) mod observed;
pub(crate) mod rebuild_check;
pub(crate) mod records;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod window_log;
