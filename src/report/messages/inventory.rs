//! Sentences about finding namespaces and pods.

use super::and;
use crate::model::problem::{InventoryCause, NoNetns};
use crate::model::text::escape;

sentences! {
    InventoryCause {
        NotAPattern { reason } => "not a pattern: {reason}",
        SelectorUnreadable { error } => "cannot read this path: {error}",
        NoSuchPod => "no running network namespace matches the selectors",
        CannotObserve { error } => "{error}",
        NetnsHidden => "the kernel does not reveal the namespace of this process: a pod may be missing here",
        CannotOpenNetns { error } => "the namespace cannot be opened: {error}",
        CannotEnterNetns { error } => "the namespace cannot be entered: {error}",
        SandboxNotFound { pod, reason } => "{source} reports that {title} runs (uid {uid}, sandbox {sandbox}), but \
            {reason}. The pod is skipped" (
                source = pod.source,
                title = pod.title(),
                uid = or_unknown(pod.uid.as_deref()),
                sandbox = or_unknown(pod.sandbox.as_deref()),
            ),
        SharedNetns { sandboxes } => "several sandboxes are reported in this namespace, so it gets the name of none: \
            {sandboxes}" (sandboxes = escape(&and(sandboxes))),
        NoRuntimeSocket { sockets } => "none of the sockets {sockets} exists. Name the socket with --runtime-endpoint \
            unix:///PATH, or continue without a runtime: --runtime none" (sockets = and(sockets)),
        RuntimeFailed { error } => "{error}; the list of running pods is unknown. Check the runtime and run this again, \
            or continue without pod names: --runtime none",
        ClientFailed { error } => "cannot query any runtime: {error}",
        PodListIncomplete { namespaces } => "reports no pod for {namespaces}, but a process with an interface on a host \
            link runs there: the pod list is incomplete. Check the runtime and run this again, or if these are no pods \
            of a runtime, use --runtime none" (namespaces = and(namespaces)),
    }
}

sentences! {
    NoNetns {
        NothingReported => "reports neither a path nor a process, and no process is in a cgroup of its name",
        TwoNamespaces { path, of_path, process, of_process } => "{path} and {process} are two namespaces ({of_path} and \
            {of_process}), and neither is trusted",
        Unreachable(reasons) => "its namespace cannot be found: {reasons}" (reasons = reasons.join("; ")),
        InOtherPod => "its process is in another pod's namespace",
        NotDiscovered => "no process and no mount led to its namespace a moment ago",
    }
}

fn or_unknown(text: Option<&str>) -> String {
    escape(text.unwrap_or("unknown"))
}
