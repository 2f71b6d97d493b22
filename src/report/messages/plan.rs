//! Sentences about what a plan cannot restore.

use std::fmt;

use crate::model::Hardware;
use crate::model::problem::PlanCause;

impl fmt::Display for PlanCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostLinkMissing { parent } => {
                write!(f, "cannot be recreated: the host's {parent} is missing")
            }
            Self::OwnLinkMissing { parent } => write!(f, "cannot be recreated: {parent} is missing"),
            Self::DeviceMissing { hardware } => write!(f, "the device{} is missing", device(hardware.as_ref())),
            Self::DeviceRenamed { now } => write!(f, "is now named {now}; its VLANs and macvlans are recreated on it"),
            Self::KindMissing { kind } => write!(f, "is missing, and netfix cannot create links of kind {kind}"),
            Self::MasterLost { master } => {
                write!(f, "was a port of {master}, and netfix cannot make it one again")
            }
            Self::QdiscLost { now, then } => write!(f, "has qdisc {now} now; netfix cannot restore its qdisc {then}"),
            Self::ObjectLost => f.write_str("is missing, and netfix cannot restore it"),
            Self::IfindexDiffers { now, then } => write!(
                f,
                "has ifindex {now} now, {then} in the checkpoint: sockets bound to the old one receive nothing"
            ),
            Self::Surplus => f.write_str("is not in the checkpoint; left unchanged"),
            Self::DuplicateAddress => f.write_str(
                "another machine on the network has this address (duplicate address detection failed)",
            ),
            Self::LifetimeOver => f.write_str(
                "its lifetime ended after the checkpoint was written: the DHCP client or router must renew it",
            ),
        }
    }
}

/// What a person needs to recognise a device.
fn device(hardware: Option<&Hardware>) -> String {
    let Some(Hardware {
        permanent_mac,
        bus,
        driver,
    }) = hardware
    else {
        return String::new();
    };
    let mac = permanent_mac.map(|mac| mac.to_string());
    let parts: Vec<String> = [driver.clone(), bus.clone(), mac]
        .into_iter()
        .flatten()
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(", "))
    }
}
