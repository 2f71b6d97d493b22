//! Sentences about finding pods, and matching them with what is stored.

use super::{and, described, few, numbers};
use crate::model::problem::{ForeignCause, InventoryCause, MatchingCause, NoNetns, PartialCause};
use crate::model::text::{count, escape};
use crate::model::{CutOffCause, LinkFault};

sentences! {
    InventoryCause {
        NotAPattern { reason } => "not a pattern: {reason}",
        SelectorUnreadable { error } => "cannot read this path: {error}",
        NoSuchPod => "no running network namespace matches the selectors",
        CannotObserve { error } => "{error}",
        TooMany { most } => "not compared with its checkpoint: a table of this namespace has more than {most} entries. \
            `netfix snapshot` and `netfix plan` read all of them",
        NetnsHidden => "the kernel does not reveal the namespace of this process: a pod may be missing here",
        Unseen { namespaces } => "{namespaces} to which a link of the host was moved cannot be found: an open descriptor or a socket alone \
            holds it. Links inside are neither recorded nor restored" (namespaces = count(*namespaces, "namespace")),
        MountsUnread { more } => "its mounts{more} were not all read: a namespace that only such a mount holds may be missing here"
            (more = match more { 0 => String::new(), more => format!(", and those of {more} more processes,") }),
        CannotOpenNetns { error } => "the namespace cannot be opened: {error}",
        CannotEnterNetns { error } => "the namespace cannot be entered: {error}",
        SandboxNotFound { pod, reason } => "{source} reports that {title} runs (uid {uid}, sandbox {sandbox}), but \
            {reason}. The pod is skipped" (
                source = pod.source,
                title = pod.title(),
                uid = or_unknown(pod.uid.as_deref()),
                sandbox = or_unknown(pod.sandbox.as_deref()),
            ),
        SharedNetns { sandboxes } => "several sandboxes are reported in this namespace, so it stays unnamed: \
            {sandboxes}" (sandboxes = escape(&and(sandboxes))),
        NoRuntimeSocket { sockets } => "none of the sockets {sockets} exists. Name the socket with --runtime-endpoint \
            unix:///PATH, or continue without a runtime: --runtime none" (sockets = and(sockets)),
        RuntimeFailed { error } => "{error}; the list of running pods is unknown. Check the runtime and run this again, \
            or continue without pod names: --runtime none",
        RuntimeRefused { error, other, namespaces } if namespaces.is_empty() => "{error}; pods of this runtime may run. \
            Start it and run this again, or if it is not in use, query only the other runtime (names and ids are \
            kept): --runtime-endpoint unix://{other}",
        RuntimeRefused { error, other, namespaces } => "{error}, and no other runtime reports {namespaces}: that may be a \
            pod of this one. Start it and run this again, or if it is not in use, query only the other runtime (names \
            and ids are kept): --runtime-endpoint unix://{other}" (namespaces = few(namespaces)),
        RuntimeLeftOver { error, other } => "{error}: skipped, because {other} reports every pod",
        ClientFailed { error } => "cannot query any runtime: {error}",
        PodListIncomplete { namespaces } => "reports no pod for {namespaces}, but a process with an interface on a host \
            link runs there: the pod list is incomplete. Check the runtime and run this again, or if these are not pods \
            of any runtime, use --runtime none" (namespaces = and(namespaces)),
    }
}

sentences! {
    NoNetns {
        NothingReported => "reports neither a path nor a process, and no process runs in its cgroup",
        TwoNamespaces { path, of_path, process, of_process } => "{path} and {process} are two namespaces ({of_path} and \
            {of_process}), and neither is trusted",
        Unreachable(reasons) => "its namespace cannot be found: {reasons}" (reasons = reasons.join("; ")),
        InOtherPod => "its process is in another pod's namespace",
        NotDiscovered => "its namespace was not found through any process or mount",
    }
}

fn or_unknown(text: Option<&str>) -> String {
    escape(text.unwrap_or("unknown"))
}

sentences! {
    LinkFault {
        Missing => "is missing",
        Down => "is down",
        NoCarrier => "has no carrier",
    }
}

sentences! {
    CutOffCause {
        Link(fault) => "{fault}",
        Below { link, fault } => "the host's {link} below it {fault}",
        Loose(end) => "its other end {end} is no port of a bridge, and the host has no route to it",
        NoAddress => "has no address",
        NoRoute => "has no route to another machine",
    }
}

sentences! {
    MatchingCause {
        OtherMachine => "the checkpoint was written on another machine and is not used. Run `netfix snapshot` here",
        OtherBoot => "the checkpoint was written before this machine's last boot and is not used: its namespace is gone",
        NetnsGone => "the network namespace is gone, and with it the pod. The next `netfix snapshot` removes the \
            checkpoint",
        NoPodAtPath => "no running pod has a network namespace at this path",
        HostNotSelected => "was recreated and is not complete, and no selected pod needs it: left unchanged. To restore the whole \
            host, run `netfix restore` without a selection",
        NetnsReplaced => "another network namespace is at this path now: the pod was replaced and its checkpoint is not \
            used",
        NetnsUnproven => "a namespace with the same inode exists, but this kernel has no namespace cookies, and no \
            process, mount or runtime proves that it is the same one: the checkpoint is not used",
        BareWithoutCheckpoint => "has no network, and no checkpoint to restore it from",
        WithoutCheckpoint => "has no checkpoint: skipped",
        CutOff { why } => "{why}: the pod is cut off, and no good checkpoint has what it lacks. Recreate the pod, or if this is right, \
            run `netfix snapshot --accept POD`",
        NoCheckpoints => "no pod with a checkpoint matches (`netfix list`). If the network works, run `netfix snapshot`",
        FromGeneration { generation } => "is missing or cannot be read: netfix uses that of generation {generation}",
        NodeOfOtherMachine => "was written on another machine and is not used. Each machine needs a state directory of its \
            own: was this one copied or shared?",
        NodeOfOtherBoot => "was written before this machine's last boot and is not used",
        UnknownParent => "--parent is neither a link of the host nor one of the stored node state, nor a VLAN on one",
        PodReplaced { now, then } => "another pod has this namespace now: {now}. The checkpoint is for {then} and is not \
            used" (now = described(now), then = numbers(then)),
        PodRecreated { now, then } => "{title} was deleted and recreated: it is {now} now. The checkpoint is for {then} \
            and is not used. When it has its interfaces, run `netfix snapshot`" (title = then.title(), now = numbers(now), then = numbers(then)),
        AmbiguousCheckpoints { ids } => "the paths of several checkpoints lead to this namespace, and no runtime reports \
            its sandbox: none of {ids} is used" (ids = and(ids)),
        Superseded { by } => "superseded by {by} (same namespace, more complete)",
        SeveralPods { pods } => "{pods} begin with this: use a longer prefix" (pods = count(*pods, "pod")),
    }
}

sentences! {
    ForeignCause {
        NoCache { error } => "{error}. Use --cni-cache-dir if the runtime keeps libcni's cache elsewhere",
        NoCacheEntries { folder } => "libcni's cache in {folder} has no entry of a running pod that is selected",
        FromCniCache => "the pod has no checkpoint: netfix uses the interfaces, addresses and routes that its CNI plugins reported \
            when they created it",
        CacheOfFormerPod { then } => "{then} was in this namespace before: its entry is skipped" (then = described(then)),
        CacheOfGonePods { pods } => "skipped the entries of {pods} no longer running" (pods = count(*pods, "pod")),
        AmbiguousSandboxes { sandboxes } => "the entries of sandboxes {sandboxes} all lead to this namespace, and no \
            runtime reports which is right: none is used" (sandboxes = escape(&and(sandboxes))),
        OtherPlugins { plugins } => "interfaces made by {plugins} are left unchanged: netfix cannot create them. A \
            missing one is reported" (plugins = escape(&and(plugins))),
        TwoNetworks { networks } => "networks {networks} all have an entry for this interface; none is used"
            (networks = escape(&and(networks))),
        ParentAssumed { interfaces } => "used as parent of {interfaces}: it has the host's default route, and the \
            configuration names no master. Use --parent to name another link"
            (interfaces = count(*interfaces, "interface")),
        ImportPodReplaced { now, then } => "another pod has this namespace now: {now}. The file is for {then} and is not \
            imported" (now = described(now), then = numbers(then)),
        ImportAmbiguous { now } => "several files lead to the namespace of {now}, and no runtime reports its sandbox: \
            none is imported" (now = described(now)),
        ImportSuperseded { by } => "not imported: {by} is for the same pod and is imported",
        OwnCheckpointKept { id } => "not imported: netfix's own checkpoint {id} of this pod is more complete and is kept",
        SnapshotSavesMore { pods } => "the interface is present in {pods}. Run `netfix snapshot`: it saves the whole \
            state, such as ifindex, MTU, settings and parent" (pods = count(*pods, "pod")),
        CacheFileOfGonePod => "unusable; no running sandbox has this id",
        SourceIsPartial => "does not have ifindexes, MTUs that were not configured, settings, rules, neighbours and \
            later routes, nor the host's own addresses and routes. A program that is bound to an interface may need a \
            restart",
        VlanKnownByName => "only the name is known: netfix creates it without QoS maps, flags, addresses and routes, and \
            with the MAC and MTU of its parent",
        ImportOfOwnFolder => "this is netfix's own directory: its checkpoints need no import",
        ImportOfNoFolder => "no such directory",
        ImportOfEmptyFolder => "the directory is empty: nothing to import",
        ImportPodGone => "no running pod has a network namespace at this path: nothing to import",
    }
}

sentences! {
    PartialCause {
        ParentUnknown => "is missing, and no source names its parent. Name it with --parent, for example --parent eth0.3",
        MtuAboveParent { mtu: then, parent, available: now } => "had MTU {then}, but {parent} now has {now}. Run `ip link \
            set {parent} mtu {then}` for it and for the links below it, then retry",
        MacUnknown => "its MAC is not recorded: it gets a new one, which netfix announces to the neighbours",
        PluginLost { what } => "was configured by {what}, which netfix cannot reapply" (what = escape(what)),
        PluginUnseen { what } => "netfix cannot see whether {what} is still in effect" (what = escape(what)),
        ConfiguredOtherwise => "is configured and differs now; left unchanged because the link is up",
        SettingUnknown => "was configured, and netfix cannot set it: write it with sysctl",
        RouteOfTwoFamilies { route } => "{route}: destination and gateway are of different families",
    }
}
