//! Bonding options: between `IFLA_BOND_*` and the model.

use netlink_packet_route::link::InfoBond;

use crate::model::Mac;
use crate::model::net::link::bond::{Bond, BondOption as Opt};

/// A bond, and the ifindex of its primary port, for which the model has a name.
pub(crate) fn parse(infos: &[InfoBond]) -> (Bond, Option<u32>) {
    let mut bond = Bond::default();
    let mut primary = None;
    for info in infos {
        if let Some((option, value)) = number(info) {
            bond.options.insert(option, value);
            continue;
        }
        match info {
            InfoBond::Mode(mode) => bond.mode = (*mode).into(),
            InfoBond::ArpIpTarget(targets) => bond.arp_ip_target.clone_from(targets),
            InfoBond::NsIp6Target(targets) => bond.ns_ip6_target.clone_from(targets),
            InfoBond::Primary(index) => primary = Some(*index).filter(|index| *index != 0),
            InfoBond::AdActorSystem(mac) => {
                bond.ad_actor_system = Some(Mac(*mac)).filter(|mac| mac.0 != [0; 6]);
            }
            _ => {}
        }
    }
    (bond, primary)
}

/// An attribute that is a numeric option.
fn number(info: &InfoBond) -> Option<(Opt, u32)> {
    Some(match info {
        InfoBond::FailOverMac(v) => (Opt::FailOverMac, u8::from(*v).into()),
        InfoBond::UseCarrier(v) => (Opt::UseCarrier, (*v).into()),
        InfoBond::MiiMon(v) => (Opt::Miimon, *v),
        InfoBond::UpDelay(v) => (Opt::Updelay, *v),
        InfoBond::DownDelay(v) => (Opt::Downdelay, *v),
        InfoBond::ArpInterval(v) => (Opt::ArpInterval, *v),
        InfoBond::ArpValidate(v) => (Opt::ArpValidate, (*v).into()),
        InfoBond::ArpAllTargets(v) => (Opt::ArpAllTargets, (*v).into()),
        InfoBond::PrimaryReselect(v) => (Opt::PrimaryReselect, u8::from(*v).into()),
        InfoBond::XmitHashPolicy(v) => (Opt::XmitHashPolicy, u8::from(*v).into()),
        InfoBond::ResendIgmp(v) => (Opt::ResendIgmp, *v),
        InfoBond::NumPeerNotif(v) => (Opt::NumPeerNotif, (*v).into()),
        InfoBond::AllPortsActive(v) => (Opt::AllSlavesActive, u8::from(*v).into()),
        InfoBond::MinLinks(v) => (Opt::MinLinks, *v),
        InfoBond::LpInterval(v) => (Opt::LpInterval, *v),
        InfoBond::PacketsPerPort(v) => (Opt::PacketsPerSlave, *v),
        InfoBond::AdLacpRate(v) => (Opt::AdLacpRate, u8::from(*v).into()),
        InfoBond::AdSelect(v) => (Opt::AdSelect, u8::from(*v).into()),
        InfoBond::AdActorSysPrio(v) => (Opt::AdActorSysPrio, (*v).into()),
        InfoBond::AdUserPortKey(v) => (Opt::AdUserPortKey, (*v).into()),
        InfoBond::TlbDynamicLb(v) => (Opt::TlbDynamicLb, (*v).into()),
        InfoBond::PeerNotifDelay(v) => (Opt::PeerNotifyDelay, *v),
        InfoBond::AdLacpActive(v) => (Opt::AdLacpActive, (*v).into()),
        InfoBond::MissedMax(v) => (Opt::ArpMissedMax, (*v).into()),
        InfoBond::CoupledControl(v) => (Opt::CoupledControl, (*v).into()),
        _ => return None,
    })
}

/// The attribute that sets one numeric option.
#[allow(clippy::cast_possible_truncation)] // each value comes from an attribute of the same width
pub(crate) fn set_number(option: Opt, value: u32) -> InfoBond {
    let byte = value as u8;
    let on = value != 0;
    match option {
        Opt::FailOverMac => InfoBond::FailOverMac(byte.into()),
        Opt::UseCarrier => InfoBond::UseCarrier(on),
        Opt::Miimon => InfoBond::MiiMon(value),
        Opt::Updelay => InfoBond::UpDelay(value),
        Opt::Downdelay => InfoBond::DownDelay(value),
        Opt::ArpInterval => InfoBond::ArpInterval(value),
        Opt::ArpValidate => InfoBond::ArpValidate(value.into()),
        Opt::ArpAllTargets => InfoBond::ArpAllTargets(value.into()),
        Opt::PrimaryReselect => InfoBond::PrimaryReselect(byte.into()),
        Opt::XmitHashPolicy => InfoBond::XmitHashPolicy(byte.into()),
        Opt::ResendIgmp => InfoBond::ResendIgmp(value),
        Opt::NumPeerNotif => InfoBond::NumPeerNotif(byte),
        Opt::AllSlavesActive => InfoBond::AllPortsActive(byte.into()),
        Opt::MinLinks => InfoBond::MinLinks(value),
        Opt::LpInterval => InfoBond::LpInterval(value),
        Opt::PacketsPerSlave => InfoBond::PacketsPerPort(value),
        Opt::AdLacpRate => InfoBond::AdLacpRate(byte.into()),
        Opt::AdSelect => InfoBond::AdSelect(byte.into()),
        Opt::AdActorSysPrio => InfoBond::AdActorSysPrio(value as u16),
        Opt::AdUserPortKey => InfoBond::AdUserPortKey(value as u16),
        Opt::TlbDynamicLb => InfoBond::TlbDynamicLb(on),
        Opt::PeerNotifyDelay => InfoBond::PeerNotifDelay(value),
        Opt::AdLacpActive => InfoBond::AdLacpActive(on),
        Opt::ArpMissedMax => InfoBond::MissedMax(byte),
        Opt::CoupledControl => InfoBond::CoupledControl(on),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::link::bond::*;

    #[test]
    fn every_numeric_option_survives_a_round_trip() {
        let options = [
            Opt::FailOverMac,
            Opt::UseCarrier,
            Opt::Miimon,
            Opt::Updelay,
            Opt::Downdelay,
            Opt::ArpInterval,
            Opt::ArpValidate,
            Opt::ArpAllTargets,
            Opt::PrimaryReselect,
            Opt::XmitHashPolicy,
            Opt::ResendIgmp,
            Opt::NumPeerNotif,
            Opt::AllSlavesActive,
            Opt::MinLinks,
            Opt::LpInterval,
            Opt::PacketsPerSlave,
            Opt::AdLacpRate,
            Opt::AdSelect,
            Opt::AdActorSysPrio,
            Opt::AdUserPortKey,
            Opt::TlbDynamicLb,
            Opt::PeerNotifyDelay,
            Opt::AdLacpActive,
            Opt::ArpMissedMax,
            Opt::CoupledControl,
        ];
        for option in options {
            assert_eq!(number(&set_number(option, 1)), Some((option, 1)));
        }
    }
}
