//! Arguments of the commands about maintenance windows.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueHint};
use clap_complete::ArgValueCompleter;

use super::args::{DEFAULT_KEEP, Runtimes, Selectors, TargetArgs};
use super::candidates;
use super::nic::NicArgs;
use super::restore::{PaceArgs, ProbeArgs};
use super::values::{self, EXPERT};
use crate::model::IfName;
use crate::upgrade::condition::DriverVersion;

/// Headings of the help texts.
const KUBELET: &str = "kubelet";
const TIMEOUTS: &str = "Timeouts";
const ROLLBACK: &str = "Rollback";
const CONDITIONS: &str = "Already done";
const HOOKS: &str = "Hooks (with NETFIX_WINDOW, --after with NETFIX_VERDICT and NETFIX_RENUMBERED)";

/// The unit that is paused, and for how long.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// kubelet's unit; default: the running one of kubelet, k3s, k3s-agent, rke2-server, rke2-agent,
    /// snap.microk8s.daemon-kubelite, k0sworker, k0scontroller
    #[arg(long, hide = true, value_name = "UNIT", value_parser = values::unit)]
    pub unit: Option<String>,
    /// systemd starts kubelet again after this time, even if netfix is gone
    #[arg(long, help_heading = KUBELET, value_name = "DURATION", default_value = "10m", value_parser = values::deadline)]
    pub deadline: Duration,
}

/// A whole maintenance window.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct UpgradeArgs {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// The runtimes that name the pods and show whether one was rebuilt.
    #[command(flatten)]
    pub runtimes: Runtimes,
    /// COMMAND reloads only this NIC's driver: ignore pods on other drivers; repeatable
    ///
    /// Pods on this NIC, and on NICs with the same driver, are at risk. Default: the NICs under the pods.
    #[arg(long = "nic", value_name = "IFNAME")]
    pub nics: Vec<IfName>,
    /// What is paused.
    #[command(flatten)]
    pub hold: HoldArgs,
    /// Do not pause kubelet; a running kubelet may rebuild pods while they have no network
    #[arg(long, help_heading = EXPERT, hide_short_help = true, conflicts_with_all = ["unit", "keep_paused"])]
    pub no_pause: bool,
    /// What the pods have to reach.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// End COMMAND after this time, then restore the pods; less than --deadline
    ///
    /// The rollback has the same limit. Default: what the deadline leaves before the restore: --deadline less --nic-wait (twice
    /// with --rollback), --manager-wait and 60s, but at least half of --deadline.
    #[arg(long, hide = true, value_name = "DURATION", value_parser = values::second_or_more)]
    pub command_timeout: Option<Duration>,
    /// After COMMAND, wait this long for a missing NIC and its carrier
    #[arg(long, help_heading = TIMEOUTS, value_name = "DURATION", default_value = "60s",
        value_parser = values::time)]
    pub nic_wait: Duration,
    /// What a restore waits for, and for how long.
    #[command(flatten)]
    pub pace: PaceArgs,
    /// Settings of NICs.
    #[command(flatten)]
    pub nic: NicArgs,
    /// How the restore probes addresses.
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// Wait this long for the answers of the gateways
    #[arg(long, hide = true, value_name = "DURATION",
        default_value = "5s", value_parser = values::time)]
    pub answer_wait: Duration,
    /// After kubelet has started, watch this long for lost links and rebuilt pods
    #[arg(long, hide = true, value_name = "DURATION",
        default_value = "30s", value_parser = values::time)]
    pub watch: Duration,
    /// Keep this many generations of the checkpoints
    #[arg(long, hide = true, value_name = "COUNT", default_value_t = DEFAULT_KEEP)]
    pub keep: NonZeroUsize,
    /// Size limit of the window's log with COMMAND's output, such as 512K or 50M; beginning and end are kept
    #[arg(long, hide = true, value_name = "SIZE", default_value = "10M", value_parser = values::size)]
    pub log_limit: u64,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Run in this shell instead of as a systemd unit
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub foreground: bool,
    /// If a pod is not restored, keep kubelet paused until `netfix resume` or the deadline
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub keep_paused: bool,
    /// Also restore pods that have already lost their network, instead of refusing
    #[arg(long)]
    pub repair: bool,
    /// Continue even if some pods cannot be restored or are not selected
    ///
    /// That is: pods that netfix cannot restore, that have already lost their network, or that are at risk and not selected.
    #[arg(long)]
    pub force: bool,
    /// Do not rehearse the restore in a twin of the node before COMMAND
    #[arg(long, help_heading = EXPERT, hide_short_help = true)]
    pub no_rehearsal: bool,
    /// Run with `sh -c` if the NIC does not come back or too many pods stay lost; then restore again
    ///
    /// It runs once: if the NIC or its carrier is not back within --nic-wait, or more than --max-lost pods are lost after the
    /// restore.
    #[arg(long, help_heading = ROLLBACK, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub rollback: Option<String>,
    /// Accept this many lost pods without a rollback (--rollback)
    #[arg(long, hide = true, value_name = "COUNT", default_value_t = 0)]
    pub max_lost: usize,
    /// Return once the window is open, and print its id; `netfix wait` waits for its end
    ///
    /// The window runs as a systemd unit. With --dry-run: would it?
    #[arg(long, conflicts_with = "foreground")]
    pub detach: bool,
    /// Run with `sh -c` first. If it succeeds, the upgrade is already done: exit code 0, no window
    #[arg(long, help_heading = EXPERT, hide_short_help = true, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub unless: Option<String>,
    /// Skip the window if DRIVER runs VERSION; fail if it does not after COMMAND; repeatable
    #[arg(long = "driver-version", help_heading = CONDITIONS, value_name = "DRIVER=VERSION")]
    pub drivers: Vec<DriverVersion>,
    /// Run with `sh -c` before kubelet is paused; if it fails, the window ends with exit code 4
    ///
    /// It runs after the check and the snapshot.
    #[arg(long, help_heading = HOOKS, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub before: Option<String>,
    /// Run with `sh -c` at the end of the window; a failure is only a warning
    #[arg(long, help_heading = HOOKS, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub after: Option<String>,
    /// Do not evaluate the conditions: the netfix that started this one has.
    #[arg(long, hide = true)]
    pub needed: bool,
    /// Do not copy the log to stderr.
    #[arg(long, hide = true)]
    pub no_echo: bool,
    /// Print the phases, the pods and the verdict; change nothing. Exit code 4: refused
    #[arg(long)]
    pub dry_run: bool,
    /// The command that upgrades the driver, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

impl UpgradeArgs {
    /// Whether --max-lost was typed without the rollback that it is for. The configuration file may set it for all windows.
    pub(super) fn has_limit_alone(matches: &ArgMatches) -> bool {
        let is_typed = matches.value_source("max_lost") == Some(ValueSource::CommandLine);
        is_typed && !matches.contains_id("rollback")
    }

    /// Why the times do not fit together: a COMMAND that runs longer than the deadline meets a kubelet that rebuilds pods.
    pub(super) fn conflict(&self) -> Option<String> {
        let (timeout, deadline) = (self.command_timeout?, self.hold.deadline);
        (timeout >= deadline).then(|| {
            let [timeout, deadline] = [timeout, deadline].map(humantime::format_duration);
            format!(
                "--command-timeout {timeout} is not shorter than --deadline {deadline}, at which kubelet starts: use a longer \
                --deadline"
            )
        })
    }
}

/// The window to report.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The window's id or its beginning; default: the newest
    #[arg(id = "WINDOW", value_name = "WINDOW", add = ArgValueCompleter::new(candidates::windows))]
    pub window: Option<String>,
    /// Write the report to this file too, as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// List all windows, one per line
    #[arg(long, conflicts_with_all = ["WINDOW", "html"])]
    pub list: bool,
    /// Merge the JSON documents that `report`, `upgrade` or `wait` printed on many nodes; `-` is stdin
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["WINDOW", "list"], value_hint = ValueHint::FilePath)]
    pub merge: Vec<PathBuf>,
}

/// The window to wait for.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The window's id or its beginning; default: the open window, else the newest
    #[arg(id = "WINDOW", value_name = "WINDOW", add = ArgValueCompleter::new(candidates::windows))]
    pub window: Option<String>,
    /// Stop waiting after this time, with exit code 124; default: wait without a limit
    #[arg(long, value_name = "DURATION", value_parser = values::time)]
    pub timeout: Option<Duration>,
}
