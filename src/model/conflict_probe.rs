//! How to find out, before an address is added, whether another machine has it.

use std::net::IpAddr;
use std::num::{NonZeroU16, ParseIntError};
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{IfName, Mac};

/// The probe before an address is added (RFC 5227, RFC 4862).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ConflictProbe {
    /// A probe and its repetition, within 200 ms
    #[default]
    Fast,
    /// No probe
    Off,
}

/// The most probes and announcements that may leave in a second: `15` or `15/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRate(pub NonZeroU16);

impl ProbeRate {
    /// The number.
    pub(crate) fn most(self) -> usize {
        self.0.get().into()
    }
}

impl FromStr for ProbeRate {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.strip_suffix("/s").unwrap_or(text).parse().map(Self)
    }
}

/// A machine that answered for addresses of pods that had them: a router with proxy ARP, or a virtual network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressProxy {
    /// The host's link on which it answered.
    pub link: IfName,
    /// The MAC in its answers; `None`: that of the link which has the address, as a switch with ARP suppression answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// The addresses for which it answered, of one family.
    pub addresses: Vec<IpAddr>,
    /// Whether it answered for every address of the family that was probed on the link, and for more than one: then it answers
    /// for others too.
    #[serde(default)]
    pub all: bool,
}

impl AddressProxy {
    /// Whether both are answers of one MAC on one link, for addresses of one family.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let family = |one: &Self| one.addresses.first().map(IpAddr::is_ipv4);
        (&self.link, self.mac, family(self)) == (&other.link, other.mac, family(other))
    }

    /// Whether it answers for this address on this link of the host.
    pub(crate) fn answers_for(&self, link: &IfName, address: IpAddr) -> bool {
        let mut known = self.addresses.iter();
        self.link == *link
            && known
                .any(|known| *known == address || self.all && known.is_ipv4() == address.is_ipv4())
    }
}
