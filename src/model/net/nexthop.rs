//! Nexthop objects (`ip nexthop`, Linux 5.3): next hops with an id, to which routes refer.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::fidelity::attribute::Treatment::{NotRead, Restored, SentBack, State};
use crate::model::fidelity::attribute::TwinComparison::Reported;
use crate::model::fidelity::attribute::row;
use crate::model::fidelity::form::{IP, U32, ValueForm, attributes};
use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;
use crate::model::text::join;

/// `struct nexthop_grp` for each hop: the id, the weight minus one, and since Linux 6.12 its upper byte.
const GROUP: ValueForm<Vec<Member>> = ValueForm {
    read: |value| Some(value.chunks_exact(8).filter_map(Member::read).collect()),
    write: |group| {
        (!group.is_empty()).then(|| group.iter().copied().flat_map(Member::bytes).collect())
    },
};

attributes! {
    /// One nexthop object: a hop, or a group of them.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Nexthop {
        /// Its number in the namespace.
        pub id: u32 = U32, row(1, "NHA_ID", Restored, "fidelity/nexthops");
        /// Address family (`AF_*`); 0 for a group.
        pub family: u8;
        /// Its origin (`RTPROT_*`).
        pub protocol: u8;
        /// Outgoing interface.
        pub dev?: IfName;
        /// Gateway.
        pub gateway?: IpAddr = IP, row(6, "NHA_GATEWAY", Restored, "fidelity/nexthops");
        /// The gateway is on-link even without a route to it.
        #[serde(default)]
        pub onlink: bool;
        /// The hops of a group.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "limits::at_most::<{ limits::MEMBERS }, _, _>"
        )]
        pub group: Vec<Member> = GROUP, row(2, "NHA_GROUP", Restored, "fidelity/nexthops");
        /// Attributes that netfix does not interpret: the type of a group, blackhole, fdb, encapsulation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub extra: Vec<RawAttribute>;
    }

    /// `NHA_*`.
    pub const NEXTHOP = "Nexthop objects", "`NHA_*` of `RTM_NEWNEXTHOP` (`linux/nexthop.h`, Linux 5.3)", Reported;
    others:
        row(3, "NHA_GROUP_TYPE", SentBack, "fidelity/nexthops"),
        row(4, "NHA_BLACKHOLE", SentBack, "fidelity/nexthops"),
        // `dev`, by its ifindex.
        row(5, "NHA_OIF", Restored, "fidelity/nexthops"),
        row(7, "NHA_ENCAP_TYPE", SentBack, "fidelity/nexthops"),
        row(8, "NHA_ENCAP", SentBack, "fidelity/nexthops"),
        row(11, "NHA_FDB", SentBack, "fidelity/nexthops").since("5.8"),
        row(12, "NHA_RES_GROUP", SentBack, "fidelity/nexthops").since("5.13"),
        row(14, "NHA_OP_FLAGS", State, "").since("6.9"),
        row(15, "NHA_GROUP_STATS", State, "").since("6.9"),
        row(16, "NHA_HW_STATS_ENABLE", NotRead("counting in hardware costs no packet"), "").since("6.9"),
        row(17, "NHA_HW_STATS_USED", State, "").since("6.9"),
}

/// A hop of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The id of its object.
    pub id: u32,
    /// Weight, 1 to 65536.
    pub weight: u32,
}

impl Member {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_at_checked(4)?;
        Some(Self {
            id: (U32.read)(id)?,
            weight: u32::from(u16::from_le_bytes([rest[0], rest[1]])) + 1,
        })
    }

    fn bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.id.to_ne_bytes();
        let weight = u16::try_from(self.weight.saturating_sub(1)).unwrap_or(u16::MAX);
        let [low, high] = weight.to_le_bytes();
        [a, b, c, d, low, high, 0, 0]
    }
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
