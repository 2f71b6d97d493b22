//! The change of one setting of a NIC.

use std::fmt;

use crate::model::IfName;
use crate::model::net::link::nic::{NicGroup, NicKey, NicValue};

/// Sets one setting of a NIC. Consecutive ones of a device and group are one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NicStep {
    /// The device.
    pub dev: IfName,
    /// What one request sets.
    pub group: NicGroup,
    /// The setting.
    pub key: NicKey,
    /// The recorded value.
    pub value: NicValue,
    /// The present value; `None`: the default.
    pub now: Option<NicValue>,
    /// The largest value, where the driver reports it.
    pub limit: Option<NicValue>,
}

impl NicStep {
    /// Whether the same request can set both.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        (&self.dev, self.group) == (&other.dev, other.group)
    }

    /// The setting, without its value.
    pub(crate) fn setting(&self) -> String {
        setting(&self.dev, self.group, &self.key)
    }
}

/// A setting of a device, as in steps and problems.
pub(crate) fn setting(dev: &IfName, group: NicGroup, key: &NicKey) -> String {
    format!("nic {dev} {} {key}", group.as_str())
}

impl fmt::Display for NicStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "~ {} = {}", self.setting(), self.value.short())?;
        match &self.now {
            Some(now) => write!(f, " (now {})", now.short()),
            None => Ok(()),
        }
    }
}
