use super::causes;
use crate::model::PodInfo;

causes! {
    /// Causes found in finding namespaces and pods.
    InventoryCause {
        NotAPattern { reason: String } => NotFound,
        SelectorUnreadable { error: String } => NotFound,
        NoSuchPod => NotFound,
        CannotObserve { error: String } => Unreadable,
        NetnsHidden => Unreadable,
        CannotOpenNetns { error: String } => Unreadable,
        CannotEnterNetns { error: String } => Unreadable,
        SandboxNotFound { pod: PodInfo, reason: NoNetns } => Unreadable,
        SharedNetns { sandboxes: Vec<String> } => Unsupported,
        NoRuntimeSocket { sockets: Vec<String> } => RuntimeUnreachable,
        RuntimeFailed { error: String } => RuntimeUnreachable,
        ClientFailed { error: String } => RuntimeUnreachable,
        PodListIncomplete { namespaces: Vec<String> } => RuntimeUnreachable,
    }
}

/// Why the namespace of a sandbox is not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoNetns {
    /// The runtime reports neither a path nor a process.
    NothingReported,
    /// The path and the process that it reports lead to different namespaces.
    TwoNamespaces {
        /// The path.
        path: String,
        /// Inode of its namespace.
        of_path: u64,
        /// The process's path.
        process: String,
        /// Inode of its namespace.
        of_process: u64,
    },
    /// Neither leads to a namespace; each with the errno.
    Unreachable(Vec<String>),
    /// Its process is in another pod's namespace.
    InOtherPod,
    /// The namespace existed but no process and no mount led to it.
    NotDiscovered,
}
