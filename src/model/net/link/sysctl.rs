//! Per-interface sysctls: `/proc/sys/net/ipv{4,6}/{conf,neigh}/<interface>/<key>`.

use std::collections::HashSet;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::model::net::link::settings::Settings;
use crate::model::text::Invalid;

/// The name of one per-interface sysctl, such as `arp_notify`: lower-case letters, digits and `_` only, so that no
/// checkpoint can make netfix write outside the interface's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SysctlKey(&'static str);

impl SysctlKey {
    /// A key known at compile time.
    #[must_use]
    pub const fn known(name: &'static str) -> Self {
        Self(name)
    }

    /// The file's name below `conf/<interface>/`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.0
    }
}

impl<'de> Deserialize<'de> for SysctlKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<&str> for SysctlKey {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if !text.is_empty() && text.bytes().all(allowed) {
            Ok(Self(interned(text)))
        } else {
            Err(Invalid::new(&text, "the name of a per-interface sysctl"))
        }
    }
}

impl TryFrom<String> for SysctlKey {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.as_str().try_into()
    }
}

impl fmt::Display for SysctlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The one copy of a name: each of a thousand pods has a hundred settings, and the kernel some hundred names.
fn interned(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name = name.to_owned().leak();
    names.insert(name);
    name
}

/// All per-interface settings of one link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sysctls {
    /// `/proc/sys/net/ipv4/conf/<interface>`.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub ipv4: Settings,
    /// `/proc/sys/net/ipv6/conf/<interface>`.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub ipv6: Settings,
    /// `/proc/sys/net/ipv4/neigh/<interface>`.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub neigh4: Settings,
    /// `/proc/sys/net/ipv6/neigh/<interface>`.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub neigh6: Settings,
    /// `/proc/sys/net/ipv6/conf/<interface>/stable_secret` where one is set (RFC 7217).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_secret: Option<Ipv6Addr>,
}

impl Sysctls {
    /// The settings of each folder; the secret, which is no number, is in none.
    #[must_use]
    pub fn folders(&self) -> [(Folder, &Settings); 4] {
        let Self {
            ipv4,
            ipv6,
            neigh4,
            neigh6,
            stable_secret: _,
        } = self;
        [
            (Folder::Ipv4Conf, ipv4),
            (Folder::Ipv6Conf, ipv6),
            (Folder::Ipv4Neigh, neigh4),
            (Folder::Ipv6Neigh, neigh6),
        ]
    }

    /// From what the link derives link-local addresses of its own.
    pub(crate) fn gen_mode(&self) -> GenMode {
        const MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
        self.ipv6.get(&MODE).copied().into()
    }

    /// The settings of one folder.
    pub fn folder_mut(&mut self, folder: Folder) -> &mut Settings {
        match folder {
            Folder::Ipv4Conf => &mut self.ipv4,
            Folder::Ipv6Conf => &mut self.ipv6,
            Folder::Ipv4Neigh => &mut self.neigh4,
            Folder::Ipv6Neigh => &mut self.neigh6,
        }
    }
}

/// From what a link derives its link-local addresses (`IN6_ADDR_GEN_MODE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenMode {
    /// Its MAC.
    OfMac,
    /// A secret.
    OfSecret,
    /// It adds none.
    Nothing,
}

impl From<Option<i64>> for GenMode {
    fn from(value: Option<i64>) -> Self {
        match value {
            Some(1) => Self::Nothing,
            Some(2 | 3) => Self::OfSecret,
            _ => Self::OfMac,
        }
    }
}

/// A folder of `/proc/sys/net` with one folder per interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// `ipv4/conf`.
    Ipv4Conf,
    /// `ipv6/conf`.
    Ipv6Conf,
    /// `ipv4/neigh`.
    Ipv4Neigh,
    /// `ipv6/neigh`.
    Ipv6Neigh,
}

impl Folder {
    /// The folder's path below `/proc/sys/net`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4Conf => "ipv4/conf",
            Self::Ipv6Conf => "ipv6/conf",
            Self::Ipv4Neigh => "ipv4/neigh",
            Self::Ipv6Neigh => "ipv6/neigh",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::link::sysctl::*;

    #[test]
    fn a_key_cannot_leave_its_folder() {
        for text in ["", "../all/forwarding", "a/b", ".", "arp notify", "ARP"] {
            assert!(SysctlKey::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert!(SysctlKey::try_from("mldv1_unsolicited_report_interval".to_owned()).is_ok());
    }
}
