use super::causes;
use crate::model::PodInfo;

causes! {
    /// Causes found in finding namespaces and pods.
    InventoryCause {
        /// A selector is no pattern.
        NotAPattern { reason: String } => NotFound,
        /// The path of a selector cannot be read.
        SelectorUnreadable { error: String } => NotFound,
        /// The selectors match no running pod.
        NoSuchPod => NotFound,
        /// The host, or the list of processes, cannot be read.
        CannotObserve { error: String } => Unreadable,
        /// The kernel does not reveal the namespace of a process.
        NetnsHidden => Unreadable,
        /// A namespace cannot be opened.
        CannotOpenNetns { error: String } => Unreadable,
        /// A namespace cannot be entered.
        CannotEnterNetns { error: String } => Unreadable,
        /// A runtime reports a sandbox whose namespace is not found.
        SandboxNotFound { pod: PodInfo, reason: NoNetns } => Unreadable,
        /// Several sandboxes are reported in one namespace.
        SharedNetns { sandboxes: Vec<String> } => Unsupported,
        /// The runtime that the user wants has no socket.
        NoRuntimeSocket { sockets: Vec<String> } => RuntimeUnreachable,
        /// A runtime does not answer.
        RuntimeFailed { error: String } => RuntimeUnreachable,
        /// netfix cannot query any runtime.
        ClientFailed { error: String } => RuntimeUnreachable,
        /// A runtime reports no pod for namespaces that are a pod's.
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
