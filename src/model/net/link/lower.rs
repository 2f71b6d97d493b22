//! Links that name their lower device in the data of their kind, and what becomes of them without it.

use std::net::IpAddr;

use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::{Link, LinkKind, Parent};
use crate::model::net::raw::RawAttribute;

/// How the links of a kind refer to their lower device, in `IFLA_INFO_DATA` (`linux/if_link.h`, `linux/if_tunnel.h`).
#[derive(Debug)]
pub(crate) struct LowerKind {
    /// `IFLA_INFO_KIND`.
    driver: &'static str,
    /// The attributes with the ifindex of a lower device.
    pub links: &'static [u16],
    pub fate: WithoutLower,
    /// Attributes that the kernel reports as a number and takes as a flag.
    pub flags: &'static [u16],
    /// Attributes that are set by being there: one that is reported as 0 must not be sent.
    pub unset: &'static [u16],
    /// Attributes of links with tables of their own, which netfix does not read.
    tables: &'static [u16],
}

/// What becomes of a link when its lower device is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutLower {
    /// The kernel deletes it: a restore creates it again with its data.
    Deleted,
    /// It stays and sends nothing: a restore gives it the device again.
    Kept,
    /// It stays and sends nothing, and the kernel refuses to give it another device.
    Fixed,
    /// It stays with fewer ports or is deleted, and netfix cannot give it the device again.
    Reduced,
}

/// A kind whose links stay, with the same attribute for all of them (`IFLA_GRE_LINK`, `IFLA_IPTUN_LINK`, `IFLA_VTI_LINK`). No
/// tunnel driver listens to the end of a device.
const fn tunnel(driver: &'static str) -> LowerKind {
    LowerKind {
        driver,
        links: &[1],
        fate: WithoutLower::Kept,
        flags: &[],
        unset: &[],
        tables: &[],
    }
}

const KINDS: &[LowerKind] = &[
    // `vxlan_handle_lowerdev_unregister` in `drivers/net/vxlan/vxlan_core.c`.
    LowerKind {
        driver: "vxlan",
        // `IFLA_VXLAN_LINK`
        links: &[3],
        fate: WithoutLower::Deleted,
        // `IFLA_VXLAN_TTL_INHERIT`
        flags: &[28],
        // `IFLA_VXLAN_REMCSUM_RX`: its bits collide with `IFLA_VXLAN_RESERVED_BITS` (`vxlan_nl2conf`).
        unset: &[22],
        // `IFLA_VXLAN_VNIFILTER`
        tables: &[30],
    },
    tunnel("gre"),
    tunnel("gretap"),
    tunnel("erspan"),
    tunnel("ip6gre"),
    tunnel("ip6gretap"),
    tunnel("ip6erspan"),
    tunnel("ipip"),
    tunnel("sit"),
    tunnel("ip6tnl"),
    tunnel("vti"),
    tunnel("vti6"),
    // `xfrmi_change` in `net/xfrm/xfrm_interface_core.c` refuses another `IFLA_XFRM_LINK`.
    LowerKind {
        fate: WithoutLower::Fixed,
        ..tunnel("xfrm")
    },
    // `IFLA_HSR_SLAVE1`, `IFLA_HSR_SLAVE2`: `hsr_netdev_notify` in `net/hsr/hsr_main.c`.
    LowerKind {
        links: &[1, 2],
        fate: WithoutLower::Reduced,
        ..tunnel("hsr")
    },
];

/// How the links of a kind refer to their lower device; `None` for a kind that has none, or has it in `IFLA_LINK` alone.
pub(crate) fn of(driver: &str) -> Option<&'static LowerKind> {
    KINDS.iter().find(|kind| kind.driver == driver)
}

impl LinkKind {
    /// How its links refer to their lower device.
    pub(crate) fn lower(&self) -> Option<&'static LowerKind> {
        match self {
            Self::Other { driver, .. } => of(driver),
            _ => None,
        }
    }

    /// Whether its data is recorded.
    pub(crate) fn has_data(&self) -> bool {
        matches!(self, Self::Other { data, .. } if !data.is_empty())
    }

    /// Whether netfix has all that a new link of this kind needs, which refers to its lower device by its data.
    pub(super) fn has_whole_data(&self) -> bool {
        let Self::Other { data, .. } = self else {
            return false;
        };
        let is_set = |raw: &RawAttribute| raw.value.iter().any(|byte| *byte != 0);
        self.lower().is_some_and(|kind| {
            let mut beyond = data.iter().filter(|raw| kind.tables.contains(&raw.number));
            kind.fate == WithoutLower::Deleted && !data.is_empty() && !beyond.any(is_set)
        })
    }
}

impl Link {
    /// Whether netfix can create it again.
    #[must_use]
    pub fn can_be_made(&self) -> bool {
        // Without a lower device it survives.
        let is_on_device = matches!(self.parent, Some(Parent::Own(_) | Parent::Host(_)));
        self.kind.can_be_made() && (is_on_device || self.kind.lower().is_none())
    }

    /// Whether it can be lost with a NIC: a device, or a link on one.
    pub(crate) fn can_be_lost(&self) -> bool {
        self.kind == LinkKind::Physical || self.can_be_made()
    }

    /// Whether a pod loses it with the host's NIC: it is on a link of the host, or a device that is inside the pod.
    pub(crate) fn is_lost_with_host(&self) -> bool {
        self.is_on_host() || self.kind == LinkKind::Physical
    }

    /// The kind of the links that stand in for devices in a rehearsal. Every node with pods has it, and to load its driver adds no link,
    /// as that of a dummy does.
    pub(crate) const STAND_IN: &str = "veth";

    /// The links of the twin of a host have indexes from here on, beyond all others: the kernel declares a link operational at once only
    /// if its index is not that of the link below it (`linkwatch_urgent_event` in `net/core/link_watch.c`).
    pub(crate) const FIRST_STAND_IN: u32 = 1 << 20;

    /// Whether a port of a switch can lead to other machines, and be lost with a NIC: not the end of a pair, which belongs to a pod,
    /// nor a tap of a virtual machine. A dummy or an ifb can stand in for a device.
    pub(crate) fn can_be_uplink(&self) -> bool {
        let is_known = self.can_be_lost() || self.parent.is_some() || self.is_stand_in();
        is_known || matches!(self.kind.name(), "dummy" | "ifb")
    }

    /// Whether it carries frames in packets between machines: a program tells it the MACs of the other machines.
    pub(crate) fn is_overlay(&self) -> bool {
        matches!(self.kind.name(), "vxlan" | "geneve")
    }

    /// Whether its driver has made the device anew since this record, which is of the same boot. Without that of a sysfs, the ifindex
    /// decides.
    pub(crate) fn is_made_anew(&self, now: &Self) -> bool {
        let instance = |link: &Self| link.hardware.as_ref()?.instance;
        match instance(self).zip(instance(now)) {
            Some((then, now)) => then != now,
            None => self.index != 0 && self.index != now.index,
        }
    }

    /// Whether it stands in for a device in a rehearsal.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.kind.name() == Self::STAND_IN && self.index >= Self::FIRST_STAND_IN
    }

    /// Whether a new vxlan has this entry, to its remote or group.
    pub(crate) fn comes_with(&self, entry: &FdbEntry) -> bool {
        /// `IFLA_VXLAN_GROUP`, `IFLA_VXLAN_GROUP6`.
        const REMOTE: [u16; 2] = [2, 16];
        let LinkKind::Other { data, .. } = &self.kind else {
            return false;
        };
        let dst = entry.dst.map(|dst| match dst {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        });
        let is_plain = entry.port.is_none() && entry.vni.is_none() && entry.lladdr.0 == [0; 6];
        let mut remotes = data.iter().filter(|raw| REMOTE.contains(&raw.number));
        is_plain && remotes.any(|raw| Some(&raw.value) == dst.as_ref())
    }

    /// What becomes of it without its lower device, if it refers to one by its data.
    pub(crate) fn without_lower(&self) -> Option<WithoutLower> {
        self.kind.lower().map(|kind| kind.fate)
    }

    /// Whether its lower device is gone, and it is still there: its data has the ifindex that nothing has now.
    pub(crate) fn has_lost_lower(&self) -> bool {
        let LinkKind::Other { data, .. } = &self.kind else {
            return false;
        };
        let kind = self.kind.lower();
        kind.is_some_and(|kind| data.iter().any(|raw| kind.links.contains(&raw.number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hardware;

    #[test]
    fn a_device_with_its_former_ifindex_is_another_one_by_its_folder_in_sysfs() {
        let device = |index, instance| Link {
            index,
            hardware: Some(Hardware {
                instance,
                ..Hardware::default()
            }),
            ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
        };
        let then = device(2, Some(100));
        assert!(then.is_made_anew(&device(2, Some(200))));
        assert!(!then.is_made_anew(&device(7, Some(100))));
        // A record of an earlier version, and a kernel without a sysfs of a namespace.
        assert!(then.is_made_anew(&device(7, None)));
        assert!(!device(2, None).is_made_anew(&device(2, Some(200))));
    }

    fn vxlan(data: &[(u16, u8)], parent: Option<Parent>) -> Link {
        let data = data.iter().map(|(number, value)| RawAttribute {
            number: *number,
            value: vec![*value],
        });
        let kind = LinkKind::Other {
            driver: "vxlan".to_owned(),
            data: data.collect(),
        };
        Link {
            parent,
            ..Link::plain("vx0".parse().unwrap(), kind)
        }
    }

    #[test]
    fn a_vxlan_on_a_device_can_be_made_again_unless_it_has_tables_of_its_own() {
        let on_device = Some(Parent::Own("eth0".parse().unwrap()));
        let made = |data, parent| vxlan(data, parent).can_be_made();
        assert!(made(&[(1, 5), (30, 0)], on_device.clone()));
        assert!(!made(&[(1, 5)], None), "it survives");
        assert!(!made(&[(1, 5)], Some(Parent::Elsewhere)));
        assert!(!made(&[(1, 5), (30, 1)], on_device.clone()), "vnifilter");
        assert!(!made(&[], on_device), "a record without its data");
    }

    #[test]
    fn an_ifindex_that_is_left_in_the_data_is_that_of_a_lost_device() {
        assert!(vxlan(&[(1, 5), (3, 4)], None).has_lost_lower());
        assert!(!vxlan(&[(1, 5)], None).has_lost_lower());
    }
}
