//! Arguments that several commands share.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::candidates;
use super::nic::NicArgs;
use crate::gateways::targets::VerifyTarget;
use crate::inventory::selectors;
use crate::matching::Selection;
use crate::model::{Bytes, ConflictProbe, IfName, ProbeRate};
use crate::records::contest::CNI_CACHE;
use crate::records::fallback::Fallback;
use crate::records::prepare::{RecordSource, SurveyRequest};
use crate::refusal::Refusal;
use crate::runtime::{RuntimeConfig, Which};

/// Headings of the help texts.
const PODS: &str = "Pods";
const RUNTIME: &str = "Container runtime";
pub(super) const SOURCE: &str = "Restore source";
const TARGETS: &str = "Connectivity from inside the pods";

/// How many generations are kept unless the user sets another number.
pub const DEFAULT_KEEP: NonZeroUsize = NonZeroUsize::new(5).unwrap();

/// An interval of at least one second: a shorter one would keep the processor busy.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_secs(1) {
        return Err("shorter than 1s".to_owned());
    }
    Ok(interval)
}

/// The pods that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct Selectors {
    /// Only these pods, by name, namespace/name, id or glob such as 'shop/*'
    #[arg(value_name = "POD", add = ArgValueCompleter::new(candidates::pods_or_files))]
    pub pods: Vec<OsString>,
    /// Only these pods, like POD (repeatable)
    #[arg(long, help_heading = PODS, value_name = "POD", add = ArgValueCompleter::new(candidates::pods))]
    pub pod: Vec<OsString>,
    /// Only the network namespaces with this path or glob (repeatable)
    #[arg(long, help_heading = PODS, value_name = "PATH-OR-GLOB")]
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
    #[arg(long, value_name = "NUMBER", help_heading = PODS, add = ArgValueCompleter::new(candidates::generations))]
    pub generation: Option<u64>,
}

/// The container runtimes that netfix queries.
#[derive(Debug, Clone, Args)]
pub struct Runtimes {
    /// Query this container runtime for pod names; auto: every runtime whose socket exists
    #[arg(long, help_heading = RUNTIME, value_enum, value_name = "RUNTIME", env = "NETFIX_RUNTIME", hide_env_values = true, default_value_t = Which::Auto)]
    pub runtime: Which,
    /// The runtime's socket, if it is not at its usual path
    #[arg(long, help_heading = RUNTIME, value_name = "unix:///PATH", env = "NETFIX_RUNTIME_ENDPOINT", hide_env_values = true, value_parser = endpoint)]
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

/// A socket's path, with or without `unix://` before it.
fn endpoint(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.starts_with('/') {
        Ok(PathBuf::from(path))
    } else {
        Err("not unix:///PATH".to_owned())
    }
}

/// What a restore works from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RestoreSource {
    /// The checkpoints that netfix wrote or imported, and those of earlier generations.
    Checkpoints,
    /// The results that libcni cached when it created the pods.
    CniCache,
}

/// What a restore works from, and the runtimes that it needs for that.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// Restore from this source alone [default: the checkpoints; for a pod without a usable one those of an earlier
    /// generation, then libcni's cache]
    #[arg(long, help_heading = SOURCE, value_enum, value_name = "SOURCE")]
    pub source: Option<RestoreSource>,
    /// libcni's cache: for pods without a checkpoint, and to find out which of two pods an address belongs to
    #[arg(long, help_heading = SOURCE, value_name = "DIR", default_value = CNI_CACHE)]
    pub cni_cache_dir: PathBuf,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}

/// The pods of a restore, and their parent link where the checkpoint has none.
#[derive(Debug, Clone, Args)]
pub struct RestorePods {
    /// Which pods.
    #[command(flatten)]
    pub pods: PodArgs,
    /// The host link under pods whose checkpoint names none (`i40e_net_fix` format), such as eth0.3
    #[arg(long, help_heading = PODS, value_name = "IFNAME")]
    pub parent: Option<IfName>,
    /// Restore also what daemons own, though they may have withdrawn it since the snapshot: routes of routing daemons, addresses
    /// of keepalived, service addresses on the loopback device
    #[arg(long, help_heading = SOURCE)]
    pub with_daemons: bool,
    /// Settings of NICs.
    #[command(flatten)]
    pub nic: NicArgs,
}

impl RestorePods {
    /// The request for the engine.
    pub(crate) fn request(&self, source: &SourceArgs) -> Result<SurveyRequest, Refusal> {
        let generation = self.pods.generation;
        let fallback = match (source.source, generation) {
            (None, None) => Fallback::GenerationsAndCache,
            (Some(RestoreSource::Checkpoints), None) => Fallback::Generations,
            (_, Some(_)) | (Some(RestoreSource::CniCache), None) => Fallback::Nothing,
        };
        Ok(SurveyRequest {
            selection: self.pods.selectors.selection()?,
            source: match source.source {
                None | Some(RestoreSource::Checkpoints) => RecordSource::Checkpoints { generation },
                Some(RestoreSource::CniCache) => {
                    RecordSource::CniCache(source.cni_cache_dir.clone())
                }
            },
            fallback,
            with_daemons: self.with_daemons,
            nic: self.nic.nic_settings,
            parent: self.parent.clone(),
            runtimes: source.runtimes.config(),
            cni_cache: source.cni_cache_dir.clone(),
        })
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
    /// Give up what this pod or the host has lost: the present state is recorded as the good one. May be repeated
    #[arg(long, value_name = "[NAMESPACE/]NAME|host", conflicts_with = "every", add = ArgValueCompleter::new(candidates::accepted))]
    pub accept: Vec<OsString>,
    /// While a window runs that is younger than this, take no snapshot and exit with 0: for timers and cron
    #[arg(long, value_name = "DURATION", conflicts_with = "accept", value_parser = humantime::parse_duration)]
    pub skip_in_window: Option<Duration>,
    /// Take a snapshot again and again, at this interval, until a signal: for a container, where no timer runs netfix
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub every: Option<Duration>,
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

/// The pods to compare.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Which pods.
    #[command(flatten)]
    pub pods: PodArgs,
    /// Settings of NICs.
    #[command(flatten)]
    pub nic: NicArgs,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}

/// The restore to plan.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Which pods.
    #[command(flatten)]
    pub target: RestorePods,
    /// Where from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Exit with code 3 if there is anything to do
    #[arg(long)]
    pub exit_code: bool,
}

/// How fast a restore probes and announces.
#[derive(Debug, Clone, Copy, Args)]
pub struct RateArgs {
    /// Send at most this many probes and announcements in a second, such as 15 for a switch with dynamic ARP inspection; without it
    /// netfix sends them at once
    #[arg(
        long,
        value_name = "NUMBER",
        env = "NETFIX_PROBE_RATE",
        hide_env_values = true
    )]
    pub probe_rate: Option<ProbeRate>,
}

/// The probe before an address is added.
#[derive(Debug, Clone, Copy, Args)]
pub struct ProbeArgs {
    /// Before an address is added, probe whether another machine has it
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub conflict_probe: ConflictProbe,
    /// The same as `--conflict-probe off`
    #[arg(long, hide = true, conflicts_with = "conflict_probe")]
    pub no_conflict_probe: bool,
    /// The rate.
    #[command(flatten)]
    pub rate: RateArgs,
}

impl ProbeArgs {
    /// What both options mean.
    #[must_use]
    pub fn mode(self) -> ConflictProbe {
        if self.no_conflict_probe {
            ConflictProbe::Off
        } else {
            self.conflict_probe
        }
    }
}

/// A restore.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Which pods.
    #[command(flatten)]
    pub target: RestorePods,
    /// Where from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Wait this long for the NIC and its carrier, such as 60s or 2m
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    pub wait: Duration,
    /// Wait this long for the network manager that owns a missing host link to bring it back, then recreate it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub manager_grace: Duration,
    /// Work this long on one pod, then restore all others before the rest of it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub pod_budget: Duration,
    /// The probe.
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// After the restore, watch the links this long, restore what is lost again, and observe everything a last time
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    pub settle: Duration,
    /// Print the steps and change nothing, like `plan`
    #[arg(long)]
    pub dry_run: bool,
}

/// What each pod has to reach beyond its gateways.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// From inside each pod, ping this address, or this name as the pod resolves it; can be repeated
    #[arg(long, help_heading = TARGETS, value_name = "HOST", value_parser = VerifyTarget::ping)]
    pub ping: Vec<VerifyTarget>,
    /// From inside each pod, connect by TCP, such as to db.shop.svc:5432; can be repeated
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
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
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
    /// Only this NIC of the host may be lost: leave out the pods on NICs of other drivers. Can be given several times.
    /// Default: the NICs under the pods
    #[arg(long = "device", value_name = "IFNAME")]
    pub devices: Vec<IfName>,
    /// Warn if the last snapshot that confirmed a checkpoint is older than this
    #[arg(long, value_name = "DURATION", default_value = "26h", value_parser = humantime::parse_duration)]
    pub max_age: Duration,
    /// This long after the last snapshot of all pods, a pod or a part of one that is in no checkpoint is no warning
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = humantime::parse_duration)]
    pub max_new: Duration,
    /// Rehearse the restore: build every pod a second time from its checkpoint, in a namespace that nobody can reach, and compare
    #[arg(long)]
    pub rehearse: bool,
    /// Print one status line with performance data, as monitoring plugins do
    #[arg(long)]
    pub nagios: bool,
    /// Write Prometheus metrics to this file too; the file is replaced atomically
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// Check again and again, at this interval, until a signal: for a container, where no timer runs netfix
    #[arg(long, value_name = "DURATION", value_parser = interval, conflicts_with_all = ["nagios", "merge"])]
    pub every: Option<Duration>,
    /// Do not check: merge the documents that `check -o json` printed on many nodes; `-` is stdin
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["devices", "nagios", "pod", "pods", "netns", "textfile"])]
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
