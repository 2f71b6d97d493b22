//! Nexthop objects (`ip nexthop`, Linux 5.3): next hops with an id, to which routes refer.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;
use crate::model::text::join;

/// One nexthop object: a hop, or a group of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Nexthop {
    /// Its number in the namespace.
    pub id: u32,
    /// Address family (`AF_*`); 0 for a group.
    pub family: u8,
    /// Its origin (`RTPROT_*`).
    pub protocol: u8,
    /// Outgoing interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<IfName>,
    /// Gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The gateway is on-link even without a route to it.
    #[serde(default)]
    pub onlink: bool,
    /// The hops of a group.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::MEMBERS }, _, _>"
    )]
    pub group: Vec<Member>,
    /// Attributes that netfix does not interpret: the type of a group, blackhole, fdb, encapsulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<RawAttribute>,
}

/// A hop of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The id of its object.
    pub id: u32,
    /// Weight, 1 to 65536.
    pub weight: u32,
}

impl Nexthop {
    /// The order in which objects must be added: hops before the groups that have them.
    pub(crate) fn rank(&self) -> (bool, u32) {
        (!self.group.is_empty(), self.id)
    }
}

impl fmt::Display for Nexthop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {}", self.id)?;
        if !self.group.is_empty() {
            let members = self.group.iter().map(|member| match member.weight {
                1 => member.id.to_string(),
                weight => format!("{},{weight}", member.id),
            });
            write!(f, " group {}", join(members, "/"))?;
        }
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(dev) = &self.dev {
            write!(f, " dev {dev}")?;
        }
        f.write_str(if self.onlink { " onlink" } else { "" })
    }
}
