//! Arguments that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::runtime::{Config, Which};

/// Headings of the help texts.
const PODS: &str = "Which pods";
const RUNTIME: &str = "Who is asked for pods";
const SOURCE: &str = "Where from";

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
        Config { which: self.runtime, endpoint: self.runtime_endpoint.clone() }
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
