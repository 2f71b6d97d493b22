//! Sentences about what other programs recorded.

use super::{and, described, numbers};
use crate::model::problem::ForeignCause;
use crate::model::text::{count, escape};

sentences! {
    ForeignCause {
        NoCache { error } => "{error}. Use --cni-cache-dir if the runtime keeps libcni's cache elsewhere",
        NoCacheEntries { folder } => "libcni's cache in {folder} has no entry of a running pod that is selected",
        CacheOfFormerPod { then } => "{then} was in this namespace before: its entry is skipped" (then = described(then)),
        CacheOfGonePods { pods } => "skipped the entries of {pods} no longer running" (pods = count(*pods, "pod")),
        AmbiguousSandboxes { sandboxes } => "the entries of sandboxes {sandboxes} all lead to this namespace, and no \
            runtime reports which is right: none is used" (sandboxes = escape(&and(sandboxes))),
        OtherPlugins { plugins } => "interfaces made by {plugins} are left unchanged: netfix cannot create them. A \
            missing one is reported" (plugins = escape(&and(plugins))),
        TwoNetworks { networks } => "the networks {networks} both have an entry for this interface: neither is used"
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
        CacheFileOfGonePod => "cannot be used; no sandbox of that id runs",
        SourceIsPartial => "does not have ifindexes, MTUs that were not configured, settings, rules, neighbours and \
            later routes, nor the host's own addresses and routes. A program that is bound to an interface may need a \
            restart",
        VlanKnownByName => "only the name is known: netfix creates it without QoS maps, flags, addresses and routes, and \
            with the MAC and MTU of its parent",
        ImportOfOwnFolder => "this is netfix's own folder: its checkpoints need no import",
        ImportOfNoFolder => "no such folder",
        ImportOfEmptyFolder => "the folder is empty: nothing to import",
        ImportPodGone => "no running pod has a network namespace at this path: nothing to import",
    }
}
