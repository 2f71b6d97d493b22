use super::causes;
use crate::model::IfName;

causes! {
    /// Causes in what a source leaves out that knows only part of a pod.
    PartialCause {
        ParentUnknown => ParentMissing,
        MtuAboveParent { mtu: u32, parent: IfName, available: u32 } => Failed,
        MacUnknown => PartialSource,
        PluginLost { what: String } => Unsupported,
        PluginUnseen { what: String } => PartialSource,
        ConfiguredOtherwise => PartialSource,
        SettingUnknown => Unsupported,
        RouteOfTwoFamilies { route: String } => Unsupported,
    }
}
