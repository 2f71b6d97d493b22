//! How many MACs a device filters by, and what its driver does with more.

use crate::model::net::link::nic::{NicGroup, NicState, NicValue};
use crate::model::problem::{DriverCause, FullFilters};

/// What a device filters by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MacLoad {
    /// Unicast MACs beside its own.
    pub unicast: u64,
    /// Multicast MACs.
    pub multicast: u64,
    /// VLANs on it.
    pub vlans: u64,
    /// Ports of the whole device.
    pub ports: u64,
    /// Whether it is a virtual function that its device does not trust.
    pub is_untrusted: bool,
}

/// The filters of a device that are not enough, if its driver is known to have a limit.
pub(crate) fn full(driver: &str, load: MacLoad, nic: Option<&NicState>) -> Option<DriverCause> {
    /// `I40E_MAX_MACVLAN_PER_HW` of i40e; it shares them among its ports.
    const I40E: u64 = 3072;
    /// `BNXT_MAX_UC_ADDRS` of bnxt, without its own.
    const BNXT: u64 = 3;
    /// `IXGBE_MAX_RAR_ENTRIES` of ixgbe, of which virtual functions take some.
    const IXGBE: u64 = 128;
    /// For an untrusted function of i40e and ice (`I40E_VC_MAX_MAC_ADDR_PER_VF`).
    const IAVF: u64 = 18;
    let MacLoad {
        unicast,
        multicast,
        vlans,
        ports,
        is_untrusted,
    } = load;
    let functions = nic
        .and_then(|nic| nic.sriov.as_ref())
        .map_or(0, |own| own.vfs);
    let (needed, room, beyond) = match driver {
        "i40e" => (
            (1 + unicast + multicast) * (vlans + 1),
            I40E / ports.max(1),
            FullFilters::Promiscuous,
        ),
        "ixgbe" if functions > 0 => (1 + unicast, IXGBE, FullFilters::Promiscuous),
        "mlx5_core" => (1 + unicast, default_max_macs(nic)?, FullFilters::MaxMacs),
        "bnxt_en" if is_untrusted => (unicast, BNXT, FullFilters::Lost),
        "bnxt_en" => (unicast, BNXT, FullFilters::Promiscuous),
        "iavf" if is_untrusted => (1 + unicast + multicast, IAVF, FullFilters::Lost),
        _ => return None,
    };
    (needed > room).then_some(DriverCause::FiltersFull {
        needed,
        room,
        beyond,
    })
}

/// The MACs for which mlx5 has room after a reload, if it has that limit.
fn default_max_macs(nic: Option<&NicState>) -> Option<u64> {
    const MAX_MACS: u64 = 128;
    let parameters = nic?.settings.get(&NicGroup::DevlinkInit)?;
    let (_, now) = parameters
        .iter()
        .find(|(key, _)| key.as_str() == "max_macs")?;
    matches!(now, NicValue::Number(_)).then_some(MAX_MACS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::net::link::nic::Sriov;

    fn load(unicast: u64, multicast: u64, vlans: u64) -> MacLoad {
        MacLoad {
            unicast,
            multicast,
            vlans,
            ports: 1,
            is_untrusted: false,
        }
    }

    fn beyond(
        driver: &str,
        load: MacLoad,
        nic: Option<&NicState>,
    ) -> Option<(u64, u64, FullFilters)> {
        match full(driver, load, nic)? {
            DriverCause::FiltersFull {
                needed,
                room,
                beyond,
            } => Some((needed, room, beyond)),
            _ => None,
        }
    }

    #[test]
    fn i40e_has_a_filter_for_each_mac_in_each_vlan_and_shares_them_among_ports() {
        let ports = |ports| MacLoad {
            ports,
            ..load(100, 150, 3)
        };
        assert_eq!(beyond("i40e", ports(1), None), None);
        let all = (251 * 4, 768, FullFilters::Promiscuous);
        assert_eq!(beyond("i40e", ports(4), None), Some(all));
        assert_eq!(beyond("ice", ports(4), None), None);
    }

    #[test]
    fn a_function_that_is_not_trusted_loses_what_a_device_takes_unfiltered() {
        let untrusted = MacLoad {
            is_untrusted: true,
            ..load(4, 14, 0)
        };
        let lost = |needed, room| Some((needed, room, FullFilters::Lost));
        assert_eq!(beyond("bnxt_en", untrusted, None), lost(4, 3));
        assert_eq!(beyond("iavf", untrusted, None), lost(19, 18));
        assert_eq!(beyond("iavf", load(4, 14, 0), None), None);
        let taken = Some((4, 3, FullFilters::Promiscuous));
        assert_eq!(beyond("bnxt_en", load(4, 14, 0), None), taken);
        assert_eq!(beyond("bnxt_en", load(3, 14, 9), None), None);
    }

    #[test]
    fn a_limit_counts_where_the_driver_has_it() {
        let mut nic = NicState::default();
        assert_eq!(beyond("ixgbe", load(200, 0, 0), Some(&nic)), None);
        assert_eq!(beyond("mlx5_core", load(200, 0, 0), Some(&nic)), None);
        nic.sriov = Some(Sriov {
            vfs: 2,
            ..Sriov::default()
        });
        let key = "max_macs".to_owned().try_into().unwrap();
        let values = BTreeMap::from([(key, NicValue::Number(256))]);
        nic.settings.insert(NicGroup::DevlinkInit, values);
        let all = Some((201, 128, FullFilters::Promiscuous));
        assert_eq!(beyond("ixgbe", load(200, 0, 0), Some(&nic)), all);
        let all = Some((201, 128, FullFilters::MaxMacs));
        assert_eq!(beyond("mlx5_core", load(200, 0, 0), Some(&nic)), all);
        assert_eq!(beyond("mlx5_core", load(127, 900, 9), Some(&nic)), None);
    }
}
