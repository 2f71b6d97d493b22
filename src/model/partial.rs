//! What a source that knows a pod's network only in part says of it: a CNI result, and perhaps the configuration that
//! it came from.

use std::net::IpAddr;

use ipnet::IpNet;

use super::checkpoint::CniRoute;
use super::link::MacvlanMode;
use super::sysctl::Sysctls;
use super::{IfName, Mac};
use crate::model::link::VlanId;

/// Everything that is said of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    /// Its interfaces, in the order of their names.
    pub attachments: Vec<Attachment>,
}

/// One interface of a pod, as its plugins made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name in the pod.
    pub ifname: IfName,
    /// What it is.
    pub made: Made,
    /// The host's link that it stands on, where anybody said so.
    pub parent: Option<IfName>,
    /// Hardware address, where it was written down.
    pub mac: Option<Mac>,
    /// The hardware address of a new link for which none was written down; the same in every run.
    pub spare_mac: Option<Mac>,
    /// MTU in bytes, where it was chosen; otherwise a new link takes its parent's.
    pub mtu: Option<u32>,
    /// Its addresses, in the order in which they were added.
    pub addresses: Vec<IpNet>,
    /// Its routes, in the order in which they were added, each with the gateway that it really goes by.
    pub routes: Vec<CniRoute>,
    /// Settings of the link.
    pub tuning: Tuning,
    /// Plugins of the chain that did something to the pod which cannot be done again from here.
    pub beyond: Vec<String>,
}

/// What a plugin made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// A macvlan on a link of the host.
    Macvlan {
        /// Its mode, where it was written down.
        mode: Option<MacvlanMode>,
        /// Requested broadcast queue length in packets.
        bc_queue_len: Option<u32>,
    },
    /// A VLAN, in the pod, on a link of the host.
    Vlan(VlanId),
    /// Something that netfix cannot make, in words: the plugin's name, as a rule.
    Other(String),
}

impl Made {
    /// What `ip link` calls it, or the plugin's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Macvlan { .. } => "macvlan",
            Self::Vlan(_) => "vlan",
            Self::Other(what) => what,
        }
    }
}

/// Settings that plugins gave a link; what is not there was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Transmit queue length in packets.
    pub txqueuelen: Option<u32>,
    /// `promisc on` or `off`.
    pub promisc: Option<bool>,
    /// `allmulticast on` or `off`.
    pub allmulti: Option<bool>,
    /// Sysctls of the link that somebody configured.
    pub sysctls: Sysctls,
    /// Sysctls that the plugin always sets by itself.
    pub implied: Sysctls,
}

impl Attachment {
    /// An attachment of which nothing but name and kind is said.
    #[must_use]
    pub fn bare(ifname: IfName, made: Made) -> Self {
        Self {
            ifname,
            made,
            parent: None,
            mac: None,
            spare_mac: None,
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            tuning: Tuning::default(),
            beyond: Vec::new(),
        }
    }

    /// Whether netfix could make it again.
    #[must_use]
    pub fn can_be_made(&self) -> bool {
        !matches!(self.made, Made::Other(_))
    }

    /// Its gateways, each once.
    #[must_use]
    pub fn gateways(&self) -> Vec<IpAddr> {
        let mut gateways = Vec::new();
        for gateway in self.routes.iter().filter_map(|route| route.gw) {
            if !gateways.contains(&gateway) {
                gateways.push(gateway);
            }
        }
        gateways
    }
}
