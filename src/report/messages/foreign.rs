//! Sentences about what other programs recorded.

use std::fmt;

use super::{and, described, numbers};
use crate::model::problem::ForeignCause;

impl fmt::Display for ForeignCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCache { error } => write!(
                f,
                "{error}. Use --cni-cache-dir if the runtime keeps libcni's cache elsewhere"
            ),
            Self::NoCacheEntries { folder } => write!(
                f,
                "libcni's cache in {folder} has no entry of a running pod that is selected"
            ),
            Self::CacheOfFormerPod { then } => write!(
                f,
                "{} was in this namespace before: its entry is skipped",
                described(then)
            ),
            Self::CacheOfGonePods { pods } => {
                write!(f, "skipped the entries of {pods} pods that are gone")
            }
            Self::AmbiguousSandboxes { sandboxes } => write!(
                f,
                "the entries of sandboxes {} all lead to this namespace, and no runtime reports which is right: none \
                 is used",
                and(sandboxes).escape_debug()
            ),
            Self::OtherPlugins { plugins } => write!(
                f,
                "interfaces made by {} are left unchanged: netfix cannot create them. A missing one is reported",
                and(plugins).escape_debug()
            ),
            Self::TwoNetworks { networks } => write!(
                f,
                "the networks {} both have an entry for this interface: neither is used",
                and(networks).escape_debug()
            ),
            Self::ParentAssumed { interfaces } => write!(
                f,
                "used as parent of {interfaces} interfaces: it has the host's default route, and their configuration \
                 names no master. Use --parent to name another link"
            ),
            Self::ImportPodReplaced { now, then } => write!(
                f,
                "another pod has this namespace now: {}. The file is for {} and is not imported",
                described(now),
                numbers(then)
            ),
            Self::ImportAmbiguous { now } => write!(
                f,
                "several files lead to the namespace of {}, and no runtime reports its sandbox: none is imported",
                described(now)
            ),
            Self::ImportSuperseded { by } => {
                write!(f, "not imported: {by} is for the same pod and is imported")
            }
            Self::OwnCheckpointKept { id } => write!(
                f,
                "not imported: netfix's own checkpoint {id} of this pod is more complete and is kept"
            ),
            Self::SnapshotSavesMore { pods } => write!(
                f,
                "{pods} of these pods have their interface. Run `netfix snapshot`: it saves the whole state, such as \
                 ifindex, MTU, settings and parent"
            ),
            Self::CacheFileOfGonePod => {
                f.write_str("cannot be used; no sandbox of that id runs")
            }
            Self::SourceIsPartial => f.write_str(
                "does not have ifindexes, MTUs that were not configured, settings, rules, neighbours and later \
                 routes, nor the host's own addresses and routes. A program that is bound to an interface may need a \
                 restart",
            ),
            Self::VlanKnownByName => f.write_str(
                "only the name is known: netfix creates it without QoS maps, flags, addresses and routes, and with \
                 the MAC and MTU of its parent",
            ),
            Self::ImportOfOwnFolder => {
                f.write_str("this is netfix's own folder: its checkpoints need no import")
            }
            Self::ImportOfNoFolder => f.write_str("no such folder"),
            Self::ImportOfEmptyFolder => f.write_str("the folder is empty: nothing to import"),
            Self::ImportPodGone => f.write_str(
                "no running pod has a network namespace at this path: nothing to import",
            ),
        }
    }
}
