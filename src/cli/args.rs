//! Arguments that several commands share.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::candidates;
use super::nic::IndexArgs;
use super::values::{self, EXPERT};
use crate::gateways::targets::VerifyTarget;
use crate::inventory::selectors;
use crate::matching::Selection;
use crate::model::{Bytes, IfName};
use crate::refusal::Refusal;
use crate::runtime::{RuntimeConfig, Which};

/// The heading of the targets in the help.
const TARGETS: &str = "Connectivity from inside the pods";

/// How many generations are kept unless the user sets another number.
pub const DEFAULT_KEEP: NonZeroUsize = NonZeroUsize::new(5).unwrap();

/// The pods that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct Selectors {
    /// Only these pods: name, namespace/name, id or glob such as 'shop/*'
    #[arg(value_name = "POD", add = ArgValueCompleter::new(candidates::pods_or_files))]
    pub pods: Vec<OsString>,
    /// Same as POD; repeatable
    #[arg(long, hide = true, value_name = "POD", add = ArgValueCompleter::new(candidates::pods))]
    pub pod: Vec<OsString>,
    /// Only the network namespaces with this path or glob; repeatable
    #[arg(long, help_heading = EXPERT, hide_short_help = true, value_name = "PATH-OR-GLOB")]
    pub netns: Vec<OsString>,
}

impl Selectors {
    /// Whether the user restricts the command to some pods.
    pub(crate) fn is_used(&self) -> bool {
        !(self.pods.is_empty() && self.pod.is_empty() && self.netns.is_empty())
    }

    /// The selection for the engine, or the selector that is not a pattern.
    pub(crate) fn selection(&self) -> Result<Selection, Refusal> {
        let bytes = |text: &OsString| Bytes::from(text.as_os_str());
        let pods: Vec<Bytes> = self.pods.iter().chain(&self.pod).map(bytes).collect();
        let netns: Vec<Bytes> = self.netns.iter().map(bytes).collect();
        Ok(selectors::selection(&netns, &pods)?)
    }
}

/// The stored pods that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct PodArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Use this generation of the checkpoints instead of the newest; `list --generations` prints the numbers
    #[arg(long, value_name = "NUMBER", add = ArgValueCompleter::new(candidates::generations))]
    pub generation: Option<u64>,
}

/// The container runtimes that netfix queries.
#[derive(Debug, Clone, Args)]
pub struct Runtimes {
    /// Query this container runtime for pod names; auto: every runtime whose socket exists
    #[arg(long, hide = true, value_enum, value_name = "RUNTIME", env = "NETFIX_RUNTIME", hide_env_values = true, default_value_t = Which::Auto)]
    pub runtime: Which,
    /// The runtime's socket, if it is not at its usual path
    #[arg(long, hide = true, value_name = "unix:///PATH", env = "NETFIX_RUNTIME_ENDPOINT", hide_env_values = true, value_parser = values::endpoint)]
    pub runtime_endpoint: Option<PathBuf>,
}

impl Runtimes {
    /// The configuration of the queries.
    #[must_use]
    pub fn config(&self) -> RuntimeConfig {
        RuntimeConfig {
            which: self.runtime,
            endpoint: self.runtime_endpoint.clone(),
            containers: None,
        }
    }
}

/// A snapshot of these pods.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
    /// Keep this many generations of the checkpoints, this one included
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_KEEP)]
    pub keep: NonZeroUsize,
    /// Give up what this pod or the host has lost: record the present state as the good one; repeatable
    #[arg(long, value_name = "[NAMESPACE/]NAME|host", conflicts_with = "every", add = ArgValueCompleter::new(candidates::accepted))]
    pub accept: Vec<OsString>,
    /// While a window runs that is younger than this, take no snapshot and exit with 0: for timers and cron
    #[arg(long, help_heading = EXPERT, hide_short_help = true, value_name = "DURATION", conflicts_with = "accept", value_parser = values::age)]
    pub skip_in_window: Option<Duration>,
    /// Repeat at this interval until SIGTERM: for containers, which have no systemd timer
    #[arg(long, value_name = "DURATION", value_parser = values::interval)]
    pub every: Option<Duration>,
    /// What a restore will do with ifindexes.
    #[command(flatten)]
    pub index: IndexArgs,
}

/// The pod to show.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The pod's id or name, or the beginning of either
    #[arg(id = "POD", value_name = "POD", add = ArgValueCompleter::new(candidates::pods))]
    pub pod: OsString,
    /// Use this generation of the checkpoints instead of the newest; `list --generations` prints the numbers
    #[arg(long, value_name = "NUMBER", add = ArgValueCompleter::new(candidates::generations))]
    pub generation: Option<u64>,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}

/// What each pod has to reach beyond its gateways.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// From inside each pod, ping this address, or this name as the pod resolves it; repeatable
    #[arg(long, help_heading = TARGETS, value_name = "HOST", value_parser = VerifyTarget::ping)]
    pub ping: Vec<VerifyTarget>,
    /// From inside each pod, connect by TCP, such as to db.shop.svc:5432; repeatable
    #[arg(long, help_heading = TARGETS, value_name = "HOST:PORT", value_parser = VerifyTarget::tcp)]
    pub tcp: Vec<VerifyTarget>,
}

impl TargetArgs {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<VerifyTarget> {
        [self.ping.as_slice(), &self.tcp].concat()
    }
}

/// The pods to probe.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// What else.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Wait this long for all answers
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::time)]
    pub answer_wait: Duration,
}

/// What to check.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
    /// Check only the pods on this NIC of the host and on NICs with the same driver; repeatable
    ///
    /// Default: the NICs under the pods.
    #[arg(long = "nic", value_name = "IFNAME")]
    pub nics: Vec<IfName>,
    /// CRITICAL if the last complete snapshot is older than this, and WARNING if the last one that confirmed a checkpoint is;
    /// netfix-snapshot.timer runs once an hour. With --merge: a node whose check is older is UNKNOWN
    #[arg(long, value_name = "DURATION", default_value = "3h", value_parser = values::age)]
    pub max_age: Duration,
    /// A pod or a part of one without a checkpoint is no warning until this long after the last snapshot of all pods
    #[arg(long, hide = true, value_name = "DURATION", default_value = "2h", value_parser = values::age)]
    pub max_new: Duration,
    /// Rehearse the restore: build a copy of every pod from its checkpoint in an unreachable namespace, and compare
    #[arg(long)]
    pub rehearse: bool,
    /// What a restore will do with ifindexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Print one status line with performance data, as monitoring plugins do
    #[arg(long)]
    pub nagios: bool,
    /// Write Prometheus metrics of the node to this file too; the file is replaced atomically. Not with selectors
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pod", "pods", "netns"])]
    pub textfile: Option<PathBuf>,
    /// Repeat at this interval until SIGTERM: for containers, which have no systemd timer
    #[arg(long, value_name = "DURATION", value_parser = values::interval, conflicts_with_all = ["nagios", "merge"])]
    pub every: Option<Duration>,
    /// Do not check: merge the documents that `check -o json` printed on many nodes; `-` is stdin
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["nics", "nagios", "pod", "pods", "netns", "textfile"])]
    pub merge: Vec<PathBuf>,
    /// Write the merged documents to this file too, as one self-contained HTML page
    #[arg(long, value_name = "FILE", requires = "merge")]
    pub html: Option<PathBuf>,
}

/// The checkpoints to import.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The directory, such as /home/work/cni-plugins/checkpoints
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}
