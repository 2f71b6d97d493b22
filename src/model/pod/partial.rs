//! A pod's network from a source that is incomplete: a CNI result, perhaps with the plugins' configuration.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::net::link::MacvlanMode;
use crate::model::net::link::VlanId;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::pod::cni_result::CniRoute;
use crate::model::{IfName, Interface, Mac};

/// One pod, as far as the source describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    /// Its interfaces, sorted by name.
    pub attachments: Vec<Attachment>,
}

impl Partial {
    /// The interfaces in few words.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        self.attachments
            .iter()
            .map(|attachment| Interface {
                name: attachment.ifname.clone(),
                kind: attachment.made.name().to_owned(),
                mac: attachment.mac,
                parent: attachment.parent.clone(),
                mtu: attachment.mtu,
                addresses: attachment.addresses.clone(),
                gateways: attachment.gateways(),
            })
            .collect()
    }
}

/// One interface of a pod, as its plugins created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name in the pod.
    pub ifname: IfName,
    /// Its kind.
    pub made: Made,
    /// Its parent on the host, where known.
    pub parent: Option<IfName>,
    /// Hardware address, where known.
    pub mac: Option<Mac>,
    /// The hardware address for a new link where the source has none; the same in every run.
    pub spare_mac: Option<Mac>,
    /// MTU in bytes, where the configuration has one; otherwise a new link has its parent's.
    pub mtu: Option<u32>,
    /// Its addresses, in the order in which they were added.
    pub addresses: Vec<IpNet>,
    /// Its routes, in the order in which they were added, each with its effective gateway.
    pub routes: Vec<CniRoute>,
    /// Settings of the link.
    pub tuning: Tuning,
    /// Plugins of the chain whose changes netfix cannot repeat.
    pub beyond: Vec<String>,
}

/// The interface of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// A macvlan on a link of the host.
    Macvlan {
        /// Its mode, where known.
        mode: Option<MacvlanMode>,
        /// Requested broadcast queue length in packets.
        bc_queue_len: Option<u32>,
    },
    /// A VLAN, in the pod, on a link of the host.
    Vlan(VlanId),
    /// Something that netfix cannot create: usually the plugin's name.
    Other(String),
}

impl Made {
    /// The kind in `ip link`, or the plugin's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Macvlan { .. } => "macvlan",
            Self::Vlan(_) => "vlan",
            Self::Other(what) => what,
        }
    }
}

/// Settings by plugins; an absent one is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Transmit queue length in packets.
    pub txqueuelen: Option<u32>,
    /// `promisc on` or `off`.
    pub promisc: Option<bool>,
    /// `allmulticast on` or `off`.
    pub allmulti: Option<bool>,
    /// Sysctls from the configuration.
    pub sysctls: Sysctls,
    /// Sysctls that the plugin always sets.
    pub implied: Sysctls,
}

impl Attachment {
    /// An attachment of which only name and kind are known.
    pub(crate) fn bare(ifname: IfName, made: Made) -> Self {
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

    /// Whether netfix can recreate it.
    pub(crate) fn can_be_made(&self) -> bool {
        !matches!(self.made, Made::Other(_))
    }

    /// Its gateways, each once.
    pub(crate) fn gateways(&self) -> Vec<IpAddr> {
        let mut gateways = Vec::new();
        for gateway in self.routes.iter().filter_map(|route| route.gw) {
            if !gateways.contains(&gateway) {
                gateways.push(gateway);
            }
        }
        gateways
    }
}
