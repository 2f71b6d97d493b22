//! Arguments that several commands share.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::runtime::{Config, Which};

/// Headings of the help texts.
const PODS: &str = "Which pods";
const RUNTIME: &str = "Who is asked for pods";
const SOURCE: &str = "Where from";
const KUBELET: &str = "kubelet";
const PATIENCE: &str = "How long";

/// Which pods a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct Selectors {
    /// Only the network namespaces at this path or matching this glob (repeatable)
    #[arg(long, help_heading = PODS, value_name = "PATH-OR-GLOB")]
    pub netns: Vec<String>,
    /// Only the pods of this name, id or glob (repeatable)
    #[arg(long, help_heading = PODS, value_name = "[NAMESPACE/]NAME-OR-GLOB")]
    pub pod: Vec<String>,
}

/// Which of the stored pods.
#[derive(Debug, Clone, Default, Args)]
pub struct PodArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Use this kept snapshot, as `list --generations` numbers them, instead of the last one
    #[arg(long, value_name = "NUMBER", help_heading = PODS)]
    pub generation: Option<u64>,
}

/// Which container runtimes are asked.
#[derive(Debug, Clone, Args)]
pub struct Runtimes {
    /// Container runtimes to ask for the names of pods; auto: every one whose socket is found
    #[arg(long, help_heading = RUNTIME, value_enum, value_name = "RUNTIME", env = "NETFIX_RUNTIME", default_value_t = Which::Auto)]
    pub runtime: Which,
    /// The runtime's socket, where it is not a usual one
    #[arg(long, help_heading = RUNTIME, value_name = "unix:///PATH", env = "NETFIX_RUNTIME_ENDPOINT", value_parser = endpoint)]
    pub runtime_endpoint: Option<PathBuf>,
}

impl Runtimes {
    /// The same for those who ask.
    #[must_use]
    pub fn config(&self) -> Config {
        Config { which: self.runtime, endpoint: self.runtime_endpoint.clone(), containers: false }
    }
}

/// A socket's path, with or without `unix://` before it.
fn endpoint(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.starts_with('/') { Ok(PathBuf::from(path)) } else { Err("not unix:///PATH".to_owned()) }
}

/// What a restore works from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// What netfix has written, or imported.
    Checkpoints,
    /// What libcni has written when the pods were made.
    CniCache,
}

/// What a restore works from, and who is asked about it.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// What to restore from
    #[arg(long, help_heading = SOURCE, value_enum, value_name = "SOURCE", default_value_t = Source::Checkpoints)]
    pub source: Source,
    /// libcni's cache, for `--source cni-cache`
    #[arg(long, help_heading = SOURCE, value_name = "DIR", default_value = "/var/lib/cni")]
    pub cni_cache_dir: PathBuf,
    /// Who is asked where the kernel cannot tell.
    #[command(flatten)]
    pub runtimes: Runtimes,
}

impl SourceArgs {
    /// From the state folder.
    #[must_use]
    pub fn checkpoints(runtimes: &Runtimes) -> Self {
        Self { source: Source::Checkpoints, cni_cache_dir: PathBuf::new(), runtimes: runtimes.clone() }
    }
}

/// Which pods, and what they stand on where their checkpoint does not say.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// Which pods.
    #[command(flatten)]
    pub pods: PodArgs,
    /// The host's link under the pods whose checkpoint names none (files in the origin's format), such as eth0.3
    #[arg(long, help_heading = PODS, value_name = "IFNAME")]
    pub parent: Option<crate::model::IfName>,
}

/// Which unit is paused, and for how long.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// kubelet's unit, where it is not found by itself (kubelet, k3s, k3s-agent, rke2-server, rke2-agent,
    /// snap.microk8s.daemon-kubelite, k0sworker, k0scontroller)
    #[arg(long, help_heading = KUBELET, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Start the unit again after this long, whatever has become of netfix
    #[arg(long, help_heading = KUBELET, value_name = "DURATION", default_value = "10m", value_parser = deadline)]
    pub deadline: Duration,
}

/// A deadline; one that is over before anything is done would protect nobody.
fn deadline(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_secs(5);
    let deadline = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if deadline < LEAST { Err("at least 5s".to_owned()) } else { Ok(deadline) }
}

/// A whole maintenance window.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct UpgradeArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Who is asked for their names, and whether they were rebuilt.
    #[command(flatten)]
    pub runtimes: Runtimes,
    /// What is paused.
    #[command(flatten)]
    pub hold: HoldArgs,
    /// Wait this long, once COMMAND has ended, for the NIC to be there and to have carrier
    #[arg(long, help_heading = PATIENCE, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub wait: Duration,
    /// How long a gateway may take to answer
    #[arg(long, help_heading = PATIENCE, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
    /// Watch this long, once kubelet runs again, that no pod is rebuilt
    #[arg(long, help_heading = PATIENCE, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub settle: Duration,
    /// How many snapshots to keep
    #[arg(long, value_name = "COUNT", default_value_t = super::DEFAULT_KEEP)]
    pub keep: NonZeroUsize,
    /// Do not ask; for scripts
    #[arg(short, long)]
    pub yes: bool,
    /// Stay a child of this shell instead of becoming a unit of systemd's
    #[arg(long)]
    pub foreground: bool,
    /// When a pod is not restored, keep kubelet paused until `netfix resume` or the deadline
    #[arg(long = "hold")]
    pub keep_paused: bool,
    /// Go on although something is known that could not be restored
    #[arg(long)]
    pub force: bool,
    /// Print the course of the window and touch nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The command that upgrades the driver, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
