//! Permanent and proxy neighbour entries.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{IfName, Mac};

/// A neighbour entry of an administrator: permanent, or a proxy.
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
        write!(f, " dev {} permanent", self.dev)
    }
}
