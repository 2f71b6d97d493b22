//! Causes found in what a reload of a NIC's driver needs, and in what it left.

use super::causes;
use crate::model::IfName;

causes! {
    /// Causes found in drivers: before a reload of each, and after it.
    DriverCause {
        Held { holders: Vec<String>, module: String, is_in_command: bool } => DriverReload,
        FirmwareMissing { files: Vec<String>, has_safe_mode: bool } => DriverReload,
        FiltersFull { needed: u64, room: u64, beyond: FullFilters } => DriverReload,
        NameNotPinned { config: String } => DeviceRenamed,
        OtherParameter { running: String, option: String } => SettingDiffers,
        NotReloaded { nics: Vec<IfName> } => DriverReload,
        ModuleGone => DriverReload,
    }
}

/// What becomes of packets to a MAC for which a device has no filter left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullFilters {
    /// The device takes all packets, and the processor drops the wrong ones.
    Promiscuous,
    /// They are lost.
    Lost,
    /// They are lost beyond `max_macs` (`devlink dev param`), which a reload sets back.
    MaxMacs,
}
