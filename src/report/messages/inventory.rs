//! Sentences about finding namespaces and pods.

use std::fmt;

use super::and;
use crate::model::problem::{InventoryCause, NoNetns};

impl fmt::Display for InventoryCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPattern { reason } => write!(f, "not a pattern: {reason}"),
            Self::SelectorUnreadable { error } => write!(f, "cannot read this path: {error}"),
            Self::NoSuchPod => f.write_str("no running network namespace matches the selectors"),
            Self::CannotObserve { error } => f.write_str(error),
            Self::NetnsHidden => f.write_str(
                "the kernel does not reveal the namespace of this process: a pod may be missing here",
            ),
            Self::CannotOpenNetns { error } => {
                write!(f, "the namespace cannot be opened: {error}")
            }
            Self::CannotEnterNetns { error } => {
                write!(f, "the namespace cannot be entered: {error}")
            }
            Self::SandboxNotFound { pod, reason } => {
                let or_unknown = |text: &Option<String>| {
                    text.as_deref().unwrap_or("unknown").escape_debug().to_string()
                };
                write!(
                    f,
                    "{} reports that {} runs (uid {}, sandbox {}), but {reason}. The pod is skipped",
                    pod.source,
                    pod.title(),
                    or_unknown(&pod.uid),
                    or_unknown(&pod.sandbox)
                )
            }
            Self::SharedNetns { sandboxes } => write!(
                f,
                "several sandboxes are reported in this namespace, so it gets the name of none: {}",
                and(sandboxes).escape_debug()
            ),
            Self::NoRuntimeSocket { sockets } => write!(
                f,
                "none of the sockets {} exists. Name the socket with --runtime-endpoint unix:///PATH, or continue \
                 without a runtime: --runtime none",
                and(sockets)
            ),
            Self::RuntimeFailed { error } => write!(
                f,
                "{error}; the list of running pods is unknown. Check the runtime and run this again, or continue \
                 without pod names: --runtime none"
            ),
            Self::ClientFailed { error } => write!(f, "cannot query any runtime: {error}"),
            Self::PodListIncomplete { namespaces } => write!(
                f,
                "reports no pod for {}, but a process with an interface on a host link runs there: the pod list is \
                 incomplete. Check the runtime and run this again, or if these are no pods of a runtime, use \
                 --runtime none",
                and(namespaces)
            ),
        }
    }
}

impl fmt::Display for NoNetns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingReported => f.write_str(
                "reports neither a path nor a process, and no process is in a cgroup of its name",
            ),
            Self::TwoNamespaces {
                path,
                of_path,
                process,
                of_process,
            } => write!(
                f,
                "{path} and {process} are two namespaces ({of_path} and {of_process}), and neither is trusted"
            ),
            Self::Unreachable(reasons) => {
                write!(f, "its namespace cannot be found: {}", reasons.join("; "))
            }
            Self::InOtherPod => f.write_str("its process is in another pod's namespace"),
            Self::NotDiscovered => {
                f.write_str("no process and no mount led to its namespace a moment ago")
            }
        }
    }
}
