//! Arguments of `guard`.

use std::time::Duration;

use clap::Args;

use super::args::{Runtimes, Selectors};
use super::nic::NicArgs;
use super::restore::ProbeArgs;
use super::values;

/// How the guard restores.
#[derive(Debug, Clone, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct GuardArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// Restore also links of the host that somebody deleted while their parent stayed
    #[arg(long)]
    pub also_deleted: bool,
    /// Look once, restore what is lost, and end
    #[arg(long)]
    pub once: bool,
    /// Restore nothing: report what would be restored
    #[arg(long)]
    pub report_only: bool,
    /// Keep the guard still for this long, also one that runs; `0s` ends that
    #[arg(long, value_name = "DURATION", value_parser = values::age, conflicts_with_all = ["once", "report_only"])]
    pub hold: Option<Duration>,
    /// A look for the process that watches.
    #[arg(long, hide = true)]
    pub step: bool,
    /// When a loss repeats, wait this long after five restores in a row, then twice as long each time; after ten, stop
    #[arg(long, hide = true, value_name = "DURATION", default_value = "10s", value_parser = values::time)]
    pub backoff: Duration,
    /// When some NICs are back, wait this long for others that were lost with them
    #[arg(long = "nic-wait", value_name = "DURATION", default_value = "15s", value_parser = values::time)]
    pub wait: Duration,
    /// Wait this long for the network manager that owns a missing host link to bring it back, then recreate it
    #[arg(long = "manager-wait", hide = true, value_name = "DURATION", default_value = "5s", value_parser = values::time)]
    pub manager_grace: Duration,
    /// So long after a restore, find out whether pods were rebuilt
    #[arg(long = "watch", value_name = "DURATION", default_value = "30s", value_parser = values::time)]
    pub settle: Duration,
    /// Settings of NICs.
    #[command(flatten)]
    pub nic: NicArgs,
    /// How the restore probes addresses.
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// Which runtimes.
    #[command(flatten)]
    pub runtimes: Runtimes,
}
