//! Programs that configure the host's links.

use std::fmt;
use std::path::PathBuf;

/// A network manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manager {
    /// systemd-networkd, also as netplan's renderer.
    Networkd,
    /// `NetworkManager`, also as netplan's renderer.
    NetworkManager,
    /// ifupdown of Debian.
    Ifupdown,
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Networkd => "systemd-networkd",
            Self::NetworkManager => "NetworkManager",
            Self::Ifupdown => "ifupdown",
        })
    }
}

/// A program that sets something on NICs when they appear, to the values of its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOwner {
    /// systemd-udevd.
    LinkFile {
        /// The file (systemd.link(5)).
        path: PathBuf,
    },
    /// `NetworkManager`, by a connection profile.
    NetworkManager,
    /// tuned.
    Tuned {
        /// The active profile.
        profile: String,
    },
}
