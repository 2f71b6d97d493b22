//! Sentences about what a source leaves out that knows only part of a pod.

use crate::model::problem::PartialCause;
use crate::model::text::escape;

sentences! {
    PartialCause {
        ParentUnknown => "is missing, and no source names its parent. Name it with --parent, for example --parent eth0.3",
        MtuAboveParent { mtu: then, parent, available: now } => "had MTU {then}, and {parent} has {now} now. Run `ip link \
            set {parent} mtu {then}`, the same for the links below it, then this command again",
        MacUnknown => "its MAC was not written down: it gets a new one, which netfix announces to the neighbours",
        PluginLost { what } => "was configured by {what}, which netfix cannot repeat" (what = escape(what)),
        PluginUnseen { what } => "netfix cannot see whether {what} is still in effect" (what = escape(what)),
        ConfiguredOtherwise => "is what was configured; the link is up, so it is left unchanged",
        SettingUnknown => "was configured, and netfix cannot set it: write it with sysctl",
        RouteOfTwoFamilies { route } => "{route}: destination and gateway are of different families",
    }
}
