//! Neighbour entries that an administrator or a program added.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{IfName, Mac, is_false};

/// A neighbour entry of an administrator: permanent, without ARP, managed, or a proxy.
#[allow(clippy::struct_excessive_bools)] // each is a flag of the kernel
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Neighbour {
    /// The interface.
    pub dev: IfName,
    /// The neighbour's address.
    pub dst: IpAddr,
    /// Its hardware address; `None` for a proxy entry.
    pub lladdr: Option<Mac>,
    /// `ip neigh add proxy`.
    #[serde(default)]
    pub proxy: bool,
    /// The neighbour is a router (`NTF_ROUTER`).
    #[serde(default)]
    pub router: bool,
    /// `nud noarp`: no ARP for it, and no garbage collection.
    #[serde(default, skip_serializing_if = "is_false")]
    pub noarp: bool,
    /// `extern_learn`: a routing daemon has added it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub extern_learn: bool,
    /// `managed`: the kernel resolves it, and again and again (Linux 5.16). It has no stored hardware address.
    #[serde(default, skip_serializing_if = "is_false")]
    pub managed: bool,
    /// Its origin (`NDA_PROTOCOL`, an `RTPROT_*`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.proxy {
            return write!(f, "proxy {} dev {}", self.dst, self.dev);
        }
        write!(f, "{}", self.dst)?;
        if let Some(mac) = self.lladdr {
            write!(f, " lladdr {mac}")?;
        }
        let state = match self {
            Self { managed: true, .. } => "managed",
            Self { noarp: true, .. } => "noarp",
            _ => "permanent",
        };
        write!(f, " dev {} {state}", self.dev)
    }
}
