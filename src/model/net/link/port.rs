//! What a port of a bridge has in the bridge's tables besides forwarding entries: its VLANs, and multicast groups.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::net::link::VlanId;
use crate::model::{Link, Mac, is_false};

/// `IFLA_BRPORT_STATE` (`linux/if_link.h`), and `BR_STATE_FORWARDING` (`linux/if_bridge.h`).
pub(crate) const STATE: u16 = 1;
pub(crate) const FORWARDING: u8 = 3;
/// `IFLA_BRPORT_ISOLATED`.
pub(crate) const ISOLATED: u16 = 33;
/// `IFLA_BRPORT_BACKUP_PORT`: an ifindex.
pub(crate) const BACKUP_PORT: u16 = 34;

impl Link {
    /// Whether netfix can add a port to it: to a VRF and to a bridge. A bond is a case of its own.
    pub(crate) fn takes_ports(&self) -> bool {
        self.is_bridge() || self.is_vrf()
    }

    /// Lets it exchange packets with other isolated ports, or not.
    pub(crate) fn isolate(&mut self, is_isolated: bool) {
        let settings = self.port.iter_mut();
        for raw in settings.filter(|raw| raw.number == ISOLATED) {
            raw.value = vec![u8::from(is_isolated)];
        }
    }

    /// Whether it exchanges no packet with other isolated ports of its bridge.
    pub(crate) fn is_isolated(&self) -> bool {
        let mut settings = self.port.iter();
        settings.any(|raw| raw.number == ISOLATED && raw.value == [1])
    }
}

/// Consecutive VLANs of a port (`bridge vlan`). The port VLAN is one alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortVlans {
    /// The first of them.
    pub first: VlanId,
    /// The last of them.
    pub last: VlanId,
    /// Untagged packets that come in are of this VLAN.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pvid: bool,
    /// Packets of it go out untagged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untagged: bool,
}

/// How a port is in one VLAN: `pvid`, and `untagged`.
type VlanFlags = (bool, bool);

impl PortVlans {
    /// One VLAN, whose packets are tagged.
    pub(crate) fn of(id: VlanId) -> Self {
        Self {
            first: id,
            last: id,
            pvid: false,
            untagged: false,
        }
    }

    /// The VLAN that the kernel gives to a new port of a bridge.
    pub(crate) fn default_of_port(id: VlanId) -> Self {
        Self {
            pvid: true,
            untagged: true,
            ..Self::of(id)
        }
    }

    /// What of the first VLANs is not in the second ones, or otherwise.
    #[must_use]
    pub fn beyond(wanted: &[Self], now: &[Self]) -> Vec<Self> {
        let now = memberships(now);
        let differ = memberships(wanted).into_iter();
        ranges(differ.filter(|(id, how)| now.get(id) != Some(how)))
    }

    /// The VLANs of a port after these are added: the new ones count where it has one, and there is one port VLAN.
    #[must_use]
    pub fn with(now: &[Self], added: &[Self]) -> Vec<Self> {
        let mut all = memberships(now);
        if added.iter().any(|vlans| vlans.pvid) {
            for (pvid, _) in all.values_mut() {
                *pvid = false;
            }
        }
        all.extend(memberships(added));
        ranges(all.into_iter())
    }

    /// The VLANs of a port after these are deleted, however it is in them.
    #[must_use]
    pub fn without(now: &[Self], deleted: &[Self]) -> Vec<Self> {
        let gone = memberships(deleted);
        let left = memberships(now).into_iter();
        ranges(left.filter(|(id, _)| !gone.contains_key(id)))
    }
}

fn memberships(vlans: &[PortVlans]) -> BTreeMap<u16, VlanFlags> {
    let mut all = BTreeMap::new();
    for one in vlans {
        let ids = u16::from(one.first)..=u16::from(one.last);
        all.extend(ids.map(|id| (id, (one.pvid, one.untagged))));
    }
    all
}

/// Each in as few ranges as the kernel takes.
fn ranges(all: impl Iterator<Item = (u16, VlanFlags)>) -> Vec<PortVlans> {
    let mut ranges: Vec<PortVlans> = Vec::new();
    for (id, (pvid, untagged)) in all {
        let Ok(id) = VlanId::try_from(id) else {
            continue;
        };
        match ranges.last_mut() {
            Some(last)
                if u16::from(last.last) + 1 == u16::from(id)
                    && !pvid
                    && (last.pvid, last.untagged) == (pvid, untagged) =>
            {
                last.last = id;
            }
            _ => ranges.push(PortVlans {
                first: id,
                last: id,
                pvid,
                untagged,
            }),
        }
    }
    ranges
}

/// In the words of bridge(8).
impl fmt::Display for PortVlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last != self.first {
            write!(f, "-{}", self.last)?;
        }
        f.write_str(if self.pvid { " pvid" } else { "" })?;
        f.write_str(if self.untagged { " untagged" } else { "" })
    }
}

/// A multicast group whose packets go to a port, and that an administrator added (`bridge mdb add … permanent`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MdbEntry {
    /// The group.
    pub group: MulticastGroup,
    /// In which VLAN of the bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// The one sender whose packets it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// `proto`, where it is not `static`, which a new entry has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
}

/// The address of a multicast group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MulticastGroup {
    /// Of IPv4 or IPv6.
    Ip(IpAddr),
    /// Of another protocol.
    Link(Mac),
}

/// In the words of bridge(8), without the port.
impl fmt::Display for MdbEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            MulticastGroup::Ip(group) => write!(f, "grp {group}")?,
            MulticastGroup::Link(group) => write!(f, "grp {group}")?,
        }
        if let Some(source) = self.source {
            write!(f, " src {source}")?;
        }
        if let Some(vlan) = self.vlan {
            write!(f, " vid {vlan}")?;
        }
        f.write_str(" permanent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vlans(all: &[(u16, u16, bool, bool)]) -> Vec<PortVlans> {
        let one = |(first, last, pvid, untagged): &(u16, u16, bool, bool)| PortVlans {
            first: VlanId::try_from(*first).unwrap(),
            last: VlanId::try_from(*last).unwrap(),
            pvid: *pvid,
            untagged: *untagged,
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn only_what_is_missing_or_other_of_a_range_is_added() {
        let wanted = vlans(&[(3, 3, true, true), (100, 110, false, false)]);
        let now = vlans(&[
            (1, 1, true, true),
            (100, 104, false, false),
            (106, 106, false, true),
        ]);
        assert_eq!(
            PortVlans::beyond(&wanted, &now),
            vlans(&[(3, 3, true, true), (105, 110, false, false)])
        );
        assert!(PortVlans::beyond(&wanted, &wanted).is_empty());
        assert_eq!(
            PortVlans::without(
                &now,
                &vlans(&[(1, 1, false, false), (102, 102, false, false)])
            ),
            vlans(&[
                (100, 101, false, false),
                (103, 104, false, false),
                (106, 106, false, true)
            ])
        );
    }

    #[test]
    fn a_port_has_one_port_vlan_which_is_never_part_of_a_range() {
        let joined = vlans(&[(1, 1, true, true)]);
        let added = vlans(&[(2, 2, true, true), (3, 4, true, true)]);
        assert_eq!(
            PortVlans::with(&joined, &vlans(&[(2, 2, true, true)])),
            vlans(&[(1, 1, false, true), (2, 2, true, true)])
        );
        assert_eq!(PortVlans::beyond(&added, &[]).len(), 3);
        assert_eq!(added[0].to_string(), "2 pvid untagged");
    }

    #[test]
    fn a_group_is_an_address_of_ip_or_of_the_link_layer() {
        for text in ["239.1.1.1", "ff0e::1", "01:02:03:04:05:06"] {
            let json = format!(r#"{{"group":"{text}","vlan":5}}"#);
            let entry: MdbEntry = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), json);
            assert_eq!(entry.to_string(), format!("grp {text} vid 5 permanent"));
        }
    }
}
