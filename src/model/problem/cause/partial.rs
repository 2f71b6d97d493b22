use super::causes;
use crate::model::IfName;

causes! {
    /// Causes in what a source leaves out that knows only part of a pod.
    PartialCause {
        /// The source does not have the missing link's parent.
        ParentUnknown => ParentMissing,
        /// The missing link had a larger MTU than its parent has now.
        MtuAboveParent { mtu: u32, parent: IfName, available: u32 } => Failed,
        /// The source does not have the link's MAC.
        MacUnknown => PartialSource,
        /// The source says that a plugin or an option changed a link that is recreated.
        PluginLost { what: String } => Unsupported,
        /// The same, of a link that is there.
        PluginUnseen { what: String } => PartialSource,
        /// The link is up and differs from its configuration.
        ConfiguredOtherwise => PartialSource,
        /// A setting was configured that netfix does not know.
        SettingUnknown => Unsupported,
        /// A route's destination and gateway are of different families.
        RouteOfTwoFamilies { route: String } => Unsupported,
    }
}
