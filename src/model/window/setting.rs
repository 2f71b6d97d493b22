//! Settings of NICs in the record of a window.

use serde::{Deserialize, Serialize};

use crate::model::net::link::OtherDriver;
use crate::model::net::link::nic::{NicGroup, NicKey, NicValue};
use crate::model::{IfName, PodId};

/// A setting that a NIC had before COMMAND and not after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostSetting {
    /// The pod that has the NIC; absent for a NIC of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodId>,
    /// The NIC.
    pub nic: IfName,
    /// What one request sets.
    pub group: NicGroup,
    /// The setting.
    pub key: NicKey,
    /// Its value before.
    pub before: NicValue,
    /// Its value when netfix first read it after COMMAND; null: the default, or the driver does not have it.
    pub found: Option<NicValue>,
    /// The driver, where it is not the one from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Box<OtherDriver>>,
    /// What became of it.
    pub result: SettingResult,
}

impl LostSetting {
    /// Its place in the record.
    pub(crate) fn order(&self) -> impl Ord + use<'_> {
        (&self.pod, &self.nic, self.group, &self.key)
    }
}

/// What became of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingResult {
    /// It was put back.
    Restored,
    /// The driver refused it, or accepted it and did not set it.
    Refused,
    /// The driver does not have it any more.
    Unknown,
    /// The NIC had no carrier, which it needs.
    Waiting,
    /// It was only to be reported.
    Left,
}
