//! kubelet's unit: paused by systemd, held by a runtime mask, and surely started again.
//!
//! systemd is asked over D-Bus (org.freedesktop.systemd1(5)). A pause is a stop first and a mask after it: a unit that is
//! masked while it runs forgets its settings, `KillMode=` among them, and stopping it would end every container of a k3s.

mod bus;
mod deadline;
mod detach;
mod find;
mod hold;

pub use bus::{Bus, Error};
pub use deadline::{arm, disarm, is_pending, timer_name};
pub use detach::{Detached, Ended, UPGRADE_UNIT, detach, is_at_home};
pub use find::{Found, find};
pub use hold::{is_held, pause, resume};
