//! The changes of virtual functions that are writes to the files of the bus.

use std::fmt;

use crate::model::IfName;

/// A change of the virtual functions of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SriovStep {
    /// The device; or, for [`SriovChange::Await`], the link that the function becomes.
    pub dev: IfName,
    /// The device's bus address.
    pub bus: String,
    /// What changes.
    pub change: SriovChange,
}

/// What changes of the virtual functions of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SriovChange {
    /// Whether a driver is bound to each new function at once.
    Autoprobe(bool),
    /// How many there are; there is none yet.
    Number(u32),
    /// The only driver that may be bound to a function.
    Override(u32, String),
    /// Binds a driver to a function.
    Bind(u32),
    /// Takes the driver from a function and binds it again: it reads the administrative MAC only then.
    Rebind(u32),
    /// A pod's device that comes with a step for the host; nothing to carry out before that.
    Await(u32),
}

impl SriovStep {
    /// Whether the network device of a function comes, or comes again, by this step.
    pub(crate) fn makes(&self, index: u32) -> bool {
        match self.change {
            SriovChange::Bind(bound) | SriovChange::Rebind(bound) => bound == index,
            _ => false,
        }
    }
}

impl fmt::Display for SriovStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dev, bus, change } = self;
        match change {
            SriovChange::Autoprobe(is_on) => {
                let on = u8::from(*is_on);
                write!(f, "~ link {dev} sriov_drivers_autoprobe = {on}")
            }
            SriovChange::Number(vfs) => write!(f, "~ link {dev} sriov_numvfs = {vfs} (now 0)"),
            SriovChange::Override(index, driver) => {
                write!(f, "~ link {dev} vf {index} driver_override = {driver}")
            }
            SriovChange::Bind(index) => write!(f, "~ link {dev} vf {index} bind driver"),
            SriovChange::Rebind(index) => write!(f, "~ link {dev} vf {index} bind driver again"),
            SriovChange::Await(index) => write!(f, "+ physical {dev} from vf {index} of {bus}"),
        }
    }
}
