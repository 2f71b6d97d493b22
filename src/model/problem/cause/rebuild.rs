use super::{Cause, causes};
use crate::model::window::ContainerChange;

causes! {
    /// What shows that a pod was rebuilt in a window, or leaves it unknown.
    RebuildCause {
        /// Another sandbox has the pod's name.
        SandboxReplaced { was: String, is: String, attempt: Option<u32> } => PodRebuilt,
        /// The sandbox is gone, and no other has the pod's name.
        SandboxGone { sandbox: String } => PodRebuilt,
        /// The same sandbox with another attempt.
        SandboxRestarted => PodRebuilt,
        /// Containers restarted or ended.
        ContainersChanged { containers: Vec<ContainerChange> } => PodRebuilt,
        /// No runtime knew the pod, and its namespace is gone.
        NamespaceReplaced => PodRebuilt,
        /// Nothing shows whether the pod is still the same.
        Unknown => PodRebuilt,
        /// The socket of a runtime is gone that answered before the window.
        RuntimeGone => RuntimeUnreachable,
        /// No runtime answers after an interrupted window.
        NoRuntime => RuntimeUnreachable,
        /// A runtime could not be queried after the window.
        NotChecked { cause: Box<Cause> } => RuntimeUnreachable,
    }
}
