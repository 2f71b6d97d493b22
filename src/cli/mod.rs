//! The command line: what users type, as types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Snapshots every pod's network before a NIC driver upgrade and puts it back after.
///
/// Reloading a NIC driver deletes its VLANs and the macvlan inside every running
/// pod. netfix writes down what each network namespace has, and after the reload
/// puts back exactly that: same names, MACs, ifindexes, addresses, routes and
/// settings, without one pod being rebuilt. It changes only what is missing or
/// differs, so any command can be run again at any time.
///
/// Typical use:
///   netfix snapshot                   before the upgrade, and from cron
///   modprobe -r i40e; modprobe i40e   the upgrade
///   netfix restore --wait 60s         afterwards
///   netfix verify                     does every pod reach its gateway?
#[derive(Debug, Parser)]
#[command(name = "netfix", version, verbatim_doc_comment, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Headings of the help texts.
const GLOBAL: &str = "Options of every command";
const PODS: &str = "Which pods";

const EXIT_CODES: &str = "\
Exit codes:
  0  all done
  1  failed
  2  wrong usage
  3  drift found (diff, plan --exit-code)
  4  refused before anything was changed (not root, lock held,
     no checkpoint of this boot)
  5  partly done: some pods, or parts of one, could not be handled;
     each is named on stderr

stdout is the answer, stderr the talk; -o json prints one document,
described in docs/json.md, with the problem codes of docs/problems.md.";

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Folder with the checkpoints and the node's state
    #[arg(long, global = true, help_heading = GLOBAL, env = "NETFIX_STATE_DIR",
        value_name = "DIR",
        default_value = "/var/lib/netfix"
    )]
    pub state_dir: PathBuf,
    /// Form of the answer on stdout
    #[arg(short, long, global = true, help_heading = GLOBAL, value_enum, value_name = "FORMAT", default_value_t = Output::Human)]
    pub output: Output,
    /// Print errors only
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print each step as well
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
    /// Colours in human output (`NO_COLOR` is honoured)
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables and sentences.
    Human,
    /// One JSON document.
    Json,
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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write down the host's network state and one checkpoint for every pod
    ///
    /// Finds every network namespace that a process lives in or that is mounted, except the host's own and PID 1's.
    /// A pod that has lost an interface keeps its good checkpoint and is reported as degraded. A pod that is gone
    /// loses its checkpoint to the folder `previous`.
    Snapshot(Selectors),
    /// List the stored checkpoints
    List(Selectors),
    /// Show everything that is stored about one pod
    Show {
        /// The pod's id, its name, or the beginning of either
        #[arg(id = "POD", value_name = "POD")]
        pod: String,
    },
    /// Show what differs between the checkpoints and the kernel; exits with 3 where something is missing
    Diff {
        /// Only this pod
        #[arg(id = "POD", value_name = "POD")]
        pod: Option<String>,
        /// Which pods.
        #[command(flatten)]
        selectors: Selectors,
    },
    /// Print the steps that a restore would take; touches nothing
    Plan {
        /// Which pods.
        #[command(flatten)]
        target: Target,
        /// Exit with 3 when there is anything to do
        #[arg(long)]
        exit_code: bool,
    },
    /// Put back what is missing: the NIC up, bonds, VLANs, every pod's macvlan, addresses, routes, settings
    ///
    /// Starts from what the kernel has now, so it works whatever part is missing, does nothing when nothing is,
    /// and never touches what is right. A pod counts as restored only when a new observation shows no difference.
    Restore {
        /// Which pods.
        #[command(flatten)]
        target: Target,
        /// Wait this long for the NIC to be there and to have carrier, such as 60s or 2m
        #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
        wait: Duration,
        /// Print the steps and touch nothing, like `plan`
        #[arg(long)]
        dry_run: bool,
    },
    /// Ask every pod's gateways from inside the pod, by ARP or neighbour discovery, all pods at once
    Verify {
        /// Which pods.
        #[command(flatten)]
        selectors: Selectors,
        /// How long a gateway may take to answer
        #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
        timeout: Duration,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}

/// Which pods, and what they stand on where their checkpoint does not say.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// Which pods.
    #[command(flatten)]
    pub selectors: Selectors,
    /// The host's link under the pods whose checkpoint names none (files in the origin's format), such as eth0.3
    #[arg(long, help_heading = PODS, value_name = "IFNAME")]
    pub parent: Option<crate::model::IfName>,
}
