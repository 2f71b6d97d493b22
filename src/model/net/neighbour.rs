//! Neighbour entries that an administrator or a program added.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::fidelity::attribute::Treatment::{Restored, State, Used};
use crate::model::fidelity::attribute::TwinComparison::Reported;
use crate::model::fidelity::attribute::row;
use crate::model::fidelity::form::{IP, MAC, U8, U32, ValueForm, attributes};
use crate::model::{IfName, Mac, is_false};

/// `NTF_EXT_MANAGED`, among other flags.
const MANAGED: ValueForm<bool> = ValueForm {
    read: |value| (U32.read)(value).map(|flags| flags & 1 != 0),
    write: |managed| managed.then(|| 1_u32.to_ne_bytes().to_vec()),
};

attributes! {
    /// A neighbour entry of an administrator: permanent, without ARP, managed, or a proxy.
    #[allow(clippy::struct_excessive_bools)] // each is a flag of the kernel
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Neighbour {
        /// The interface.
        pub dev: IfName;
        /// The neighbour's address.
        pub dst: IpAddr = IP, row(1, "NDA_DST", Restored, "addresses");
        /// Its hardware address; `None` for a proxy entry.
        pub lladdr: Option<Mac> = MAC, row(2, "NDA_LLADDR", Restored, "addresses");
        /// `ip neigh add proxy`.
        #[serde(default)]
        pub proxy: bool;
        /// The neighbour is a router (`NTF_ROUTER`).
        #[serde(default)]
        pub router: bool;
        /// `nud noarp`: no ARP for it, and no garbage collection.
        #[serde(default, skip_serializing_if = "is_false")]
        pub noarp: bool;
        /// `extern_learn`: a routing daemon has added it.
        #[serde(default, skip_serializing_if = "is_false")]
        pub extern_learn: bool;
        /// `managed`: the kernel resolves it, and again and again (Linux 5.16). It has no stored hardware address.
        #[serde(default, skip_serializing_if = "is_false")]
        pub managed: bool = MANAGED, row(15, "NDA_FLAGS_EXT", Restored, "fidelity/half_lost").since("5.16");
        /// Its origin (`NDA_PROTOCOL`, an `RTPROT_*`).
        pub protocol?: u8 = U8, row(12, "NDA_PROTOCOL", Restored, "fidelity/half_lost").since("5.0");
    }

    /// `NDA_*`.
    pub const NEIGHBOUR = "Neighbours",
        "`NDA_*` of `RTM_NEWNEIGH` (`linux/neighbour.h`). Entries that the kernel learnt are not stored", Reported;
    others:
        row(3, "NDA_CACHEINFO", State, ""),
        row(4, "NDA_PROBES", State, ""),
        row(8, "NDA_IFINDEX", Used, ""),
}

impl Neighbour {
    /// A permanent entry without a hardware address.
    pub(crate) fn plain(dev: IfName, dst: IpAddr) -> Self {
        Self {
            dev,
            dst,
            lladdr: None,
            proxy: false,
            router: false,
            noarp: false,
            extern_learn: false,
            managed: false,
            protocol: None,
        }
    }
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
