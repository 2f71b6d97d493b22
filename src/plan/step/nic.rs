//! The change of one setting of a NIC.

use std::fmt;

use crate::model::net::link::OtherDriver;
use crate::model::net::link::nic::{NicGroup, NicKey, NicValue, present};
use crate::model::problem::Object;
use crate::model::{IfName, NetState};

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
    /// The driver, where it is not the recorded one: then the recorded value may be a default of that.
    pub driver: Option<Box<OtherDriver>>,
}

impl NicStep {
    /// Whether the same request can set both.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        (&self.dev, self.group) == (&other.dev, other.group)
    }

    /// The parameters that are on, and that the driver wants off while it changes this: ice changes no channels while RDMA is active
    /// (`ice_set_channels`, since Linux 6.3).
    #[must_use]
    pub fn held_by(&self, state: &NetState) -> Vec<Self> {
        let nic = state.link(&self.dev).and_then(|link| link.nic.as_ref());
        let all = nic.and_then(|nic| nic.settings.get(&NicGroup::Devlink));
        let is_rdma = |key: &NicKey| matches!(key.as_str(), "enable_roce" | "enable_iwarp");
        let held = all.into_iter().flatten().filter(|(key, value)| {
            let is_on = **value == NicValue::Flag(true);
            self.group == NicGroup::Channels && is_on && is_rdma(key)
        });
        let held = held.map(|(key, value)| Self {
            dev: self.dev.clone(),
            group: NicGroup::Devlink,
            key: key.clone(),
            value: value.clone(),
            now: None,
            limit: None,
            driver: None,
        });
        held.collect()
    }

    /// The setting, without its value.
    pub(crate) fn setting(&self) -> Object {
        Object::nic(&self.dev, Some(self.group), Some(&self.key))
    }
}

impl fmt::Display for NicStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "~ {} = {}", self.setting(), self.value.short())?;
        let is_default = self.now.is_none() && self.driver.is_none();
        if is_default {
            return Ok(());
        }
        let (now, driver) = (self.now.as_ref(), self.driver.as_deref());
        write!(f, " (now {})", present(now, driver))
    }
}
