use super::{Cause, causes};
use crate::model::window::ContainerChange;

causes! {
    /// What shows that a pod was rebuilt in a window, or leaves it unknown.
    RebuildCause {
        SandboxReplaced { was: String, is: String, attempt: Option<u32> } => PodRebuilt,
        SandboxGone { sandbox: String } => PodRebuilt,
        SandboxRestarted => PodRebuilt,
        ContainersChanged { containers: Vec<ContainerChange> } => PodRebuilt,
        NamespaceReplaced => PodRebuilt,
        Unknown => PodRebuilt,
        RuntimeGone => RuntimeUnreachable,
        NoRuntime => RuntimeUnreachable,
        NotChecked { cause: Box<Cause> } => RuntimeUnreachable,
    }
}
