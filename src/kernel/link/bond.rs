//! Bonding options: between `IFLA_BOND_*` and the model.

use netlink_packet_route::link::InfoBond;

use crate::model::Mac;
use crate::model::net::link::bond::{Bond, BondOption};

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

/// Both directions between the attributes that are numeric options and the model, each with the type of the kernel's number.
macro_rules! options {
    (@from bool $value:ident) => {
        $value != 0
    };
    (@from $number:ident $value:ident) => {
        ($value as $number).into()
    };
    ($($kernel:ident = $model:ident: $number:ident),+ $(,)?) => {
        fn number(info: &InfoBond) -> Option<(BondOption, u32)> {
            match info {
                $(InfoBond::$kernel(value) => {
                    Some((BondOption::$model, $number::from(*value).into()))
                })+
                _ => None,
            }
        }

        /// The attribute that sets one numeric option.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "each value comes from an attribute of the same width"
        )]
        pub(crate) fn set_number(option: BondOption, value: u32) -> InfoBond {
            match option {
                $(BondOption::$model => InfoBond::$kernel(options!(@from $number value)),)+
            }
        }
    };
}

options! {
    FailOverMac = FailOverMac: u8,
    UseCarrier = UseCarrier: bool,
    MiiMon = Miimon: u32,
    UpDelay = Updelay: u32,
    DownDelay = Downdelay: u32,
    ArpInterval = ArpInterval: u32,
    ArpValidate = ArpValidate: u32,
    ArpAllTargets = ArpAllTargets: u32,
    PrimaryReselect = PrimaryReselect: u8,
    XmitHashPolicy = XmitHashPolicy: u8,
    ResendIgmp = ResendIgmp: u32,
    NumPeerNotif = NumPeerNotif: u8,
    AllPortsActive = AllSlavesActive: u8,
    MinLinks = MinLinks: u32,
    LpInterval = LpInterval: u32,
    PacketsPerPort = PacketsPerSlave: u32,
    AdLacpRate = AdLacpRate: u8,
    AdSelect = AdSelect: u8,
    AdActorSysPrio = AdActorSysPrio: u16,
    AdUserPortKey = AdUserPortKey: u16,
    TlbDynamicLb = TlbDynamicLb: bool,
    PeerNotifDelay = PeerNotifyDelay: u32,
    AdLacpActive = AdLacpActive: bool,
    MissedMax = ArpMissedMax: u8,
    CoupledControl = CoupledControl: bool,
}
