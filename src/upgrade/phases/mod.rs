//! The work of each phase: takes what it needs and returns facts. Only `upgrade::driver` logs them and writes them into the
//! window's record; the pause alone has its own order of record and change.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod late;
pub(crate) mod pause;
pub(crate) mod rehearsal;
pub(crate) mod restore;
pub(crate) mod rollback;
pub(crate) mod snapshot;
pub(crate) mod termination;
pub(crate) mod verify;
pub(crate) mod watch;
