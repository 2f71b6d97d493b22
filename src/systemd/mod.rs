//! systemd over D-Bus (org.freedesktop.systemd1(5)): stops and masks kubelet's unit, arms the deadline, runs netfix as a unit.
//!
//! A pause stops the unit first and masks it then: a unit that is masked while it runs loses its settings, `KillMode=` among
//! them, and stopping it would kill every container of k3s.

mod bus;
mod kubelet_unit;
mod mask;
mod timer;
mod transient_unit;

pub use crate::systemd::bus::{Bus, UnitState};
pub use crate::systemd::kubelet_unit::paused_units;
pub use crate::systemd::kubelet_unit::{KubeletUnit, find};
pub use crate::systemd::mask::{is_held, pause, resume};
pub use crate::systemd::timer::{
    arm, disarm, is_deadline_at_work, is_pending, start_deadlines, timer_name,
};
pub use crate::systemd::transient_unit::{
    Detached, UPGRADE_UNIT, UnitEnd, configures_links, detach, is_at_home,
};
