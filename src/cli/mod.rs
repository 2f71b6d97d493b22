//! The command line: what users type, as types.

mod args;
mod candidates;
pub mod complete;
mod config;
mod examples;
mod exit_status;
mod groups;
mod guard;
mod nic;
mod pages;
mod restore;
mod traits;
mod values;
mod window;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::ArgValueCompleter;

use crate::context::ConfigFile;
use crate::report::{self, Form, Verb};

use candidates::{DEFAULT_STATE_DIR, STATE_DIR};
use config::CONFIG;
use exit_status::refuse;

pub use args::{
    CheckArgs, DEFAULT_KEEP, ImportArgs, PodArgs, Runtimes, Selectors, ShowArgs, SnapshotArgs,
    TargetArgs, VerifyArgs,
};
pub use guard::GuardArgs;
pub use nic::NicArgs;
pub use pages::{Page, page};
pub(crate) use restore::NIC_WAIT;
pub use restore::{
    DiffArgs, PaceArgs, PlanArgs, ProbeArgs, RateArgs, RestoreArgs, RestorePods, RestoreSource,
    SourceArgs,
};
pub use window::{HoldArgs, ReportArgs, UpgradeArgs, WaitArgs};

/// Saves every pod's network before a NIC driver upgrade and restores it after
///
/// Reloading a NIC driver deletes its VLANs and the macvlan interface of every
/// running pod. netfix saves what each network namespace has and restores exactly
/// that after the reload: names, MACs, ifindexes, addresses, routes, settings.
/// No pod is rebuilt. netfix changes only what is missing or differs, so every
/// command can be repeated at any time.
#[derive(Debug, Parser)]
#[command(name = "netfix", version = env!("NETFIX_VERSION"), verbatim_doc_comment, max_term_width = 110, arg_required_else_help = true,
    help_template = groups::template(), after_help = examples::NETFIX)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What the configuration file sets.
    #[arg(skip)]
    pub config: ConfigFile,
}

/// Headings of the help texts.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Directory of the checkpoints and the node's state
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true, env = STATE_DIR, hide_env_values = true,
        value_name = "DIR",
        default_value = DEFAULT_STATE_DIR
    )]
    pub state_dir: PathBuf,
    /// Read the settings of this node, such as probe-rate, from this file; none: from no file [default: /etc/netfix/config.toml]
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true, env = CONFIG, hide_env_values = true,
        value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<OsString>,
    /// Output format
    #[arg(short, long, global = true, help_heading = GLOBAL, value_enum, value_name = "FORMAT", default_value_t = Form::Human)]
    pub output: Form,
    /// Print tables without headers, for scripts
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub no_headers: bool,
    /// Print errors only
    #[arg(short, long, global = true, help_heading = GLOBAL, hide_short_help = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every step, pod and problem; -vv: every netlink message too
    #[arg(short, long, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Wait this long for the lock of another netfix, then exit with code 4 [default: a minute for netfix guard, else a moment]
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true, value_name = "DURATION",
        value_parser = values::time)]
    pub lock_wait: Option<Duration>,
    /// Colors in human output; auto: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Cli {
    /// The command line of this process; wrong usage ends the process with exit code 2.
    #[must_use]
    pub fn of_process() -> Self {
        // clap takes NETFIX_* in the environment for arguments, and would then not print the help.
        if env::args_os().len() <= 1 {
            let _ = write!(io::stderr(), "{}", Self::command().render_help());
            process::exit(2);
        }
        let cli = Self::try_parse().unwrap_or_else(|error| refuse(&error));
        let cli = cli.configured();
        if cli.global.output == Form::Name && !cli.command.lists_pods() {
            let message = format!(
                "netfix {} lists no pods: `-o name` cannot be used",
                cli.command.name()
            );
            refuse(&Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        if let Command::Upgrade(args) = &cli.command
            && let Some(message) = args.conflict()
        {
            refuse(&Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        cli
    }

    /// The command line with the defaults of the configuration file, if the command observes the machine.
    fn configured(self) -> Self {
        let is_read = match &self.command {
            // What watches gives it to its looks.
            Command::Guard(args) => !args.step,
            command => command.verb().is_some(),
        };
        if !is_read {
            return self;
        }
        let config = match config::load(self.global.config.as_ref(), &Self::command()) {
            Ok(config) => config,
            // A mistake in it must not keep the pods without network.
            Err(error) if self.command.is_needed_after_a_loss() => {
                report::config_unused(&error);
                let named = self.global.config.as_ref().map(PathBuf::from);
                ConfigFile {
                    path: Some(named.unwrap_or_else(|| config::DEFAULT_CONFIG.into())),
                    error: Some(error),
                    ..ConfigFile::default()
                }
            }
            // Nothing is wrong with what was typed.
            Err(error) => refuse(&clap::Error::raw(ErrorKind::ValueValidation, error + "\n")),
        };
        Self::with(config).unwrap_or_else(|error| refuse(&error))
    }

    /// The command line of this process with these defaults.
    pub(crate) fn with(config: ConfigFile) -> Result<Self, clap::Error> {
        let matches = config::applied(&config, Self::command()).try_get_matches()?;
        let upgrade = matches.subcommand_matches("upgrade");
        if upgrade.is_some_and(UpgradeArgs::has_limit_alone) {
            let message = "--max-lost is for --rollback, which is not given";
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, message));
        }
        let cli = Self::from_arg_matches(&matches)?;
        Ok(Self { config, ..cli })
    }

    /// What the configuration file of this process sets now.
    pub(crate) fn config_now() -> Result<ConfigFile, String> {
        let cli = Self::try_parse().map_err(|error| error.to_string())?;
        config::load(cli.global.config.as_ref(), &Self::command())
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Save the network state of the host and of every pod
    ///
    /// Each pod gets one checkpoint. Every network namespace with a process or a mount is a pod, except the host's and
    /// PID 1's. If a pod or the host has lost its network, or a part of it such as the default route, the good state is
    /// kept and the loss is reported, until a restore brings it back or --accept gives it up. The checkpoint of a pod
    /// that is gone is moved to the previous generation.
    #[command(after_help = examples::SNAPSHOT)]
    Snapshot(SnapshotArgs),
    /// List the stored checkpoints
    #[command(after_help = examples::LIST)]
    List {
        /// Which pods.
        #[command(flatten)]
        pods: PodArgs,
        /// List the generations of the checkpoints instead
        #[arg(long, conflicts_with_all = ["generation", "netns", "pod", "pods"])]
        generations: bool,
    },
    /// Show everything stored about one pod, and its current state
    #[command(after_help = examples::SHOW)]
    Show(ShowArgs),
    /// Compare the checkpoints with the kernel: `plan --exit-code`
    ///
    /// Exits with 3 if anything is missing or differs.
    #[command(after_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Print the steps of a restore; change nothing
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Restore what is missing: host links, then every pod's network
    ///
    /// A pod's network is its interfaces, addresses, routes and settings. If a recorded NIC is missing, netfix waits for it first.
    /// netfix compares the checkpoints with the kernel and restores only the difference. It does not touch what is
    /// correct. It reports "restored" only after it has read the state back from the kernel.
    #[command(after_help = examples::RESTORE)]
    Restore(RestoreArgs),
    /// Check that the host and every pod reach their gateways
    ///
    /// netfix checks from inside every pod, and with --ping and --tcp also what is beyond the gateways.
    /// The kernel must have an address to send from and routes that refuse no packet, and the gateway must answer: to ARP or
    /// neighbour discovery, or to a ping.
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Check whether a restore would work now, for cron and monitoring
    ///
    /// Every running pod needs a valid and fresh checkpoint that matches the kernel, and must not have any object that netfix
    /// cannot restore. The container runtime, the NIC, the state directory, the kernel and netfix's capabilities must
    /// allow a restore. netfix prints one line per finding.
    ///
    /// Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// Stop kubelet until `resume` or the deadline
    ///
    /// netfix arms a systemd timer, then stops kubelet's unit and masks it until the next boot. At the deadline the timer
    /// unmasks and starts the unit, even if netfix is gone.
    #[command(after_help = examples::PAUSE)]
    Pause {
        /// Which unit, and for how long.
        #[command(flatten)]
        hold: HoldArgs,
        /// Of the restore at the deadline.
        #[command(flatten)]
        rate: RateArgs,
    },
    /// Start kubelet again, even if the netfix that paused it is gone
    ///
    /// Refused while COMMAND of the window still runs or a pod has lost its network: a kubelet that starts then may rebuild
    /// pods. Run `netfix restore` first. The deadline of the window starts kubelet in any case.
    #[command(after_help = examples::RESUME)]
    Resume {
        /// Resume although COMMAND still runs or pods have lost their network
        #[arg(long)]
        force: bool,
        /// Which runtimes.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Run a driver upgrade and restore the pods, as one window
    ///
    /// The phases: check, snapshot, pause, COMMAND, restore, verify, resume, proof (no pod was rebuilt).
    ///
    /// netfix stops kubelet with a deadline and runs COMMAND, such as the driver's upgrade script. When COMMAND ends,
    /// with any exit code, netfix restores the pods, probes their gateways, starts kubelet and checks that no pod was
    /// rebuilt.
    ///
    /// Under systemd the window runs as netfix-upgrade.service, so a lost terminal does not stop it. Its log is printed
    /// here; `netfix status --follow` prints it in any other shell.
    ///
    /// COMMAND cuts off every pod on its NICs. A selection of pods that leaves out some of them is refused; with --force they
    /// are not restored, but observed and counted.
    ///
    /// Exit codes: 0 all pods are back; 1 COMMAND failed, all pods are back; 4 nothing was changed; 5 a pod or kubelet
    /// needs attention, whatever COMMAND returned.
    #[command(after_help = examples::UPGRADE)]
    Upgrade(Box<UpgradeArgs>),
    /// Watch for losses that no window caused, and restore the pods
    ///
    /// When a NIC, bond, VLAN or bridge under pods was lost and is back, netfix restores the pods as `restore` does, probes their
    /// gateways and leaves a record for `netfix report`. It does nothing while a window is open, waits for another netfix, and leaves
    /// alone what somebody deleted. It takes no snapshot.
    ///
    /// Exit codes of --once: those of `restore`; 1 also if pods or the host have lost something and were left so.
    #[command(after_help = examples::GUARD)]
    Guard(GuardArgs),
    /// Show which pods have no network, the window, the next command
    ///
    /// With the cause of each loss, the NIC, the snapshot's age, kubelet and the guard, in at most 12 lines; -v prints all. Changes nothing
    /// and needs no lock. A part that cannot be read is `-` with the reason, and the exit code is 1.
    #[command(after_help = examples::STATUS)]
    Status {
        /// Print the log of the open window until it is closed or its netfix is gone (5); the exit code is the window's
        #[arg(short = 'w', long)]
        follow: bool,
        /// Which runtimes.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Wait for the end of a window; the exit code is the window's
    ///
    /// For automation that used `netfix upgrade --detach`. Killing `netfix wait` does not affect the window.
    ///
    /// Exit codes: those of the window; 124 when --timeout passes first.
    #[command(after_help = examples::WAIT)]
    Wait(WaitArgs),
    /// Run a command on the host, from inside a container
    ///
    /// For a privileged container with hostPID: COMMAND, a program on the host, runs in the namespaces of process 1. The image
    /// needs neither nsenter(1) nor a shell. COMMAND does not outlive the container; a window of `netfix upgrade` does.
    ///
    /// Exit codes: that of COMMAND; 4 refused; 126 COMMAND cannot be started, 127 it does not exist.
    #[command(after_help = examples::HOST)]
    Host {
        /// A program on the host and its arguments
        #[arg(
            value_name = "COMMAND",
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        command: Vec<OsString>,
    },
    /// Report a window: phases, kubelet's pause, each pod's outage
    ///
    /// Every pod is listed as it was before and after. `upgrade` and `pause` leave a record; the last 50 are kept, and the
    /// last 50 of other restores. The open window is reported too.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Import the checkpoints of `i40e_net_fix` from a directory
    ///
    /// netfix reads and checks each file and writes it to the state directory under the same name. If netfix has written
    /// a checkpoint of the same running pod, that one is kept.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Remove all but the newest generations of the checkpoints
    #[command(after_help = examples::PRUNE)]
    Prune {
        /// Keep this many
        #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_KEEP)]
        keep: NonZeroUsize,
    },
    /// Explain the code of a problem: what it means and what to do
    ///
    /// Without CODE: list all codes.
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// The code, as in `error: no-carrier: ...`
        #[arg(value_parser = PossibleValuesParser::new(report::codes()), hide_possible_values = true)]
        code: Option<String>,
    },
    /// Print the JSON Schema of the `-o json` output
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// The document of this command only
        #[arg(value_parser = PossibleValuesParser::new(Verb::ALL.iter().map(|verb| verb.word())).try_map(|word| word.parse::<Verb>()), hide_possible_values = true)]
        command: Option<Verb>,
    },
    /// Print a completion script for a shell
    ///
    /// The script runs netfix for the candidates: commands, options, stored pods, generations and windows. Only root can read
    /// the stored ones.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Print the manual pages (roff)
    ///
    /// Without COMMAND: netfix(8), which lists the commands.
    #[command(after_help = examples::MAN)]
    Man {
        /// The page of this command only
        #[arg(value_parser = pages::command, add = ArgValueCompleter::new(pages::commands))]
        command: Option<String>,
        /// Write all pages to this directory, netfix.8 and one per command, and print their paths
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        dir: Option<PathBuf>,
    },
}
