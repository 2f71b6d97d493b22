//! Forwarding entries of links (`bridge fdb`): of a port in the table of its bridge, and of a link in its own one, as a vxlan has it.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{IfName, Mac, is_false};

/// An entry that an administrator or a program added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FdbEntry {
    /// The MAC that is reached through it.
    pub lladdr: Mac,
    /// In the table of the bridge that the link is a port of (`master`); else in that of the link (`self`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub master: bool,
    /// `vlan`: in which VLAN of the bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// `dst`: the other end of the tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<IpAddr>,
    /// `port`: its UDP port, where it is not that of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `vni`: its network, where it is not that of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<u32>,
    /// `src_vni`: the network from which packets come, on a link that has all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_vni: Option<u32>,
    /// `via`: the link to the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<IfName>,
    /// `nhid`: a nexthop object instead of `dst`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nexthop: Option<u32>,
    /// `NUD_*` bits (`linux/neighbour.h`): 128 is `permanent` (in a bridge: `local`), 64 without 128 `static`.
    pub state: u16,
    /// `NTF_*` bits, of those that are set with the entry: 16 `extern_learn`, 64 `sticky`, 128 `router`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u8,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl FdbEntry {
    /// `NUD_NOARP`, `NUD_PERMANENT`.
    pub(crate) const NOARP: u16 = 0x40;
    pub(crate) const PERMANENT: u16 = 0x80;
    /// `NTF_EXT_LEARNED`.
    pub(crate) const EXTERN_LEARN: u8 = 0x10;
    /// The flags that are set with an entry: `NTF_EXT_LEARNED`, `NTF_STICKY`, `NTF_ROUTER`.
    pub(crate) const SETTABLE: u8 = Self::EXTERN_LEARN | 0x40 | 0x80;

    /// Whether a daemon added it, such as one for EVPN.
    pub(crate) fn is_of_daemon(&self) -> bool {
        self.flags & Self::EXTERN_LEARN != 0
    }

    /// Whether a MAC may have several of them, to several ends of a tunnel: broadcast, a group, all that are unknown.
    pub(crate) fn is_of_many(&self) -> bool {
        self.lladdr.is_group() || self.lladdr.0 == [0; 6]
    }
}

/// In the words of bridge(8), without the link.
impl fmt::Display for FdbEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lladdr,
            master,
            vlan,
            dst,
            port,
            vni,
            source_vni,
            via,
            nexthop,
            state,
            flags: _,
        } = self;
        write!(f, "{lladdr}")?;
        word(f, "vlan", vlan.as_ref())?;
        word(f, "dst", dst.as_ref())?;
        word(f, "port", port.as_ref())?;
        word(f, "vni", vni.as_ref())?;
        word(f, "src_vni", source_vni.as_ref())?;
        word(f, "via", via.as_ref())?;
        word(f, "nhid", nexthop.as_ref())?;
        f.write_str(if *master { " master" } else { " self" })?;
        f.write_str(match () {
            () if self.is_of_daemon() => " extern_learn",
            () if state & Self::PERMANENT != 0 => " permanent",
            () => " static",
        })
    }
}

fn word(f: &mut fmt::Formatter<'_>, name: &str, value: Option<&impl fmt::Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name} {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_words_of_bridge_and_few_keys_in_files() {
        let mut entry = FdbEntry {
            lladdr: Mac([2, 0, 0, 0, 0, 1]),
            master: false,
            vlan: None,
            dst: Some([10, 0, 0, 1].into()),
            port: None,
            vni: None,
            source_vni: None,
            via: Some("eth0".parse().unwrap()),
            nexthop: None,
            state: 128,
            flags: 0,
        };
        assert_eq!(
            entry.to_string(),
            "02:00:00:00:00:01 dst 10.0.0.1 via eth0 self permanent"
        );
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            r#"{"lladdr":"02:00:00:00:00:01","dst":"10.0.0.1","via":"eth0","state":128}"#
        );
        entry = serde_json::from_str(
            r#"{"lladdr":"02:00:00:00:00:01","master":true,"vlan":5,"state":64}"#,
        )
        .unwrap();
        assert_eq!(entry.to_string(), "02:00:00:00:00:01 vlan 5 master static");
    }
}
