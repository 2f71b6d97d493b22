//! Sentences about what a plan cannot restore.

use crate::model::Hardware;
use crate::model::problem::PlanCause;

sentences! {
    PlanCause {
        HostLinkMissing { parent } => "cannot be recreated: the host's {parent} is missing",
        OwnLinkMissing { parent } => "cannot be recreated: {parent} is missing",
        DeviceMissing { hardware } => "the device{hardware} is missing" (hardware = device(hardware.as_ref())),
        DeviceRenamed { now } => "is now named {now}; its VLANs and macvlans are recreated on it",
        KindMissing { kind } => "is missing, and netfix cannot create links of kind {kind}",
        MasterLost { master } => "was a port of {master}, and netfix cannot make it one again",
        QdiscLost { now, then } => "has qdisc {now} now; netfix cannot restore its qdisc {then}",
        ObjectLost => "is missing, and netfix cannot restore it",
        IfindexDiffers { now, then } => "has ifindex {now} now, {then} in the checkpoint: sockets bound to the old one \
            receive nothing",
        Surplus => "is not in the checkpoint; left unchanged",
        DuplicateAddress => "another machine on the network has this address (duplicate address detection failed)",
        LifetimeOver => "its lifetime ended after the checkpoint was written: the DHCP client or router must renew it",
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
    let parts = [driver.clone(), bus.clone(), mac].into_iter().flatten();
    match parts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        parts => format!(" ({parts})"),
    }
}
