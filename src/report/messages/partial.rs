//! Sentences about what a source leaves out that knows only part of a pod.

use std::fmt;

use crate::model::problem::PartialCause;

impl fmt::Display for PartialCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParentUnknown => f.write_str(
                "is missing, and no source names its parent. Name it with --parent, for example --parent eth0.3",
            ),
            Self::MtuAboveParent {
                mtu,
                parent,
                available,
            } => write!(
                f,
                "had MTU {mtu}, and {parent} has {available} now. Run `ip link set {parent} mtu {mtu}`, the same for the \
                 links below it, then this command again"
            ),
            Self::MacUnknown => f.write_str(
                "its MAC was not written down: it gets a new one, which netfix announces to the neighbours",
            ),
            Self::PluginLost { what } => {
                write!(f, "was configured by {}, which netfix cannot repeat", what.escape_debug())
            }
            Self::PluginUnseen { what } => {
                write!(f, "netfix cannot see whether {} is still in effect", what.escape_debug())
            }
            Self::ConfiguredOtherwise => f.write_str("is what was configured; the link is up, so it is left unchanged"),
            Self::SettingUnknown => f.write_str("was configured, and netfix cannot set it: write it with sysctl"),
            Self::RouteOfTwoFamilies { route } => {
                write!(f, "{route}: destination and gateway are of different families")
            }
        }
    }
}
