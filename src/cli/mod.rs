//! The command line: what users type, as types.

mod args;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use args::{HoldArgs, PodArgs, Runtimes, Selectors, Source, SourceArgs, Target, UpgradeArgs};

/// Snapshots every pod's network before a NIC driver upgrade and puts it back after.
///
/// Reloading a NIC driver deletes its VLANs and the macvlan inside every running
/// pod. netfix writes down what each network namespace has, and after the reload
/// puts back exactly that: same names, MACs, ifindexes, addresses, routes and
/// settings, without one pod being rebuilt. It changes only what is missing or
/// differs, so any command can be run again at any time.
///
/// Typical use:
///   netfix upgrade -- sh upgrade.sh   the whole window around a driver upgrade
///   netfix snapshot; netfix check     from cron
///   netfix restore --wait 60s         after a loss that nobody planned
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

/// How many snapshots are kept unless the user says otherwise.
pub const DEFAULT_KEEP: NonZeroUsize = NonZeroUsize::new(5).unwrap();

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
described in docs/json.md, with the problem codes of docs/problems.md.
Where journald runs, begin, end, steps and problems are in the journal:
  journalctl -t netfix              with POD=, NETNS=, CODE= to search by";

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
    /// Print each step as well, and on stderr each netlink message with the kernel's answer
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
    /// Wait this long for another netfix that is changing things; 0s: give up at once, with exit code 4
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DURATION", default_value = "0s",
        value_parser = humantime::parse_duration)]
    pub lock_wait: Duration,
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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write down the host's network state and one checkpoint for every pod
    ///
    /// Finds every network namespace that a process lives in or that is mounted, except the host's own and PID 1's.
    /// A pod that has lost an interface keeps its good checkpoint and is reported as degraded. A pod that is gone
    /// loses its checkpoint to a kept snapshot.
    Snapshot {
        /// Which pods.
        #[command(flatten)]
        selectors: Selectors,
        /// Who is asked for their names.
        #[command(flatten)]
        runtimes: Runtimes,
        /// How many snapshots to keep, this one included; one that finds nothing changed counts with the one before
        #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_KEEP)]
        keep: NonZeroUsize,
    },
    /// List the stored checkpoints
    List {
        /// Which pods.
        #[command(flatten)]
        pods: PodArgs,
        /// List the kept snapshots instead
        #[arg(long, conflicts_with_all = ["generation", "netns", "pod"])]
        generations: bool,
    },
    /// Show everything that is stored about one pod
    Show {
        /// The pod's id, its name, or the beginning of either
        #[arg(id = "POD", value_name = "POD")]
        pod: String,
        /// Of this kept snapshot, as `list --generations` numbers them, instead of the last one
        #[arg(long, value_name = "NUMBER")]
        generation: Option<u64>,
        /// Who is asked for its name.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Show what differs between the checkpoints and the kernel; exits with 3 where something is missing
    Diff {
        /// Only this pod
        #[arg(id = "POD", value_name = "POD")]
        pod: Option<String>,
        /// Which pods.
        #[command(flatten)]
        pods: PodArgs,
        /// Who is asked where the kernel cannot tell.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Print the steps that a restore would take; touches nothing
    Plan {
        /// Which pods.
        #[command(flatten)]
        target: Target,
        /// Where from.
        #[command(flatten)]
        source: SourceArgs,
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
        /// Where from.
        #[command(flatten)]
        source: SourceArgs,
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
    /// Say whether every running pod could be restored now: for cron and monitoring
    ///
    /// Every running pod needs a valid, fresh checkpoint that matches the kernel, and the runtime, the NIC, the state
    /// folder, the kernel and netfix's rights must suffice for a restore. One line a finding. Exits with 0 (OK),
    /// 1 (WARNING), 2 (CRITICAL) or 3 (UNKNOWN).
    Check {
        /// Which pods.
        #[command(flatten)]
        selectors: Selectors,
        /// Who is asked for their names.
        #[command(flatten)]
        runtimes: Runtimes,
        /// How old a checkpoint may be, counted from the last snapshot that found it true, such as 26h
        #[arg(long, value_name = "DURATION", default_value = "26h", value_parser = humantime::parse_duration)]
        max_age: Duration,
        /// Print one status line with performance data, as monitoring plugins do
        #[arg(long)]
        nagios: bool,
        /// Write Prometheus metrics to this file as well, atomically
        #[arg(long, value_name = "FILE")]
        textfile: Option<PathBuf>,
    },
    /// Stop kubelet's unit and keep it from running, until `resume` or the deadline
    ///
    /// The unit is stopped, then masked until the next boot. Before that a systemd timer is armed that starts it again
    /// at the deadline, whatever has become of netfix.
    Pause {
        /// Which unit, and for how long.
        #[command(flatten)]
        hold: HoldArgs,
    },
    /// Let kubelet's unit run again, whoever paused it and whatever became of them
    Resume,
    /// Run a driver upgrade as one window: check, snapshot, pause kubelet, COMMAND, restore, verify, resume, proof
    ///
    /// COMMAND is what takes the network away, such as a driver's upgrade script. Everything around it is netfix's: kubelet
    /// is paused with a deadline, COMMAND is run, and when it has ended, well or not, the pods get their network back,
    /// their gateways are asked, kubelet runs again, and the runtime is asked whether any pod was rebuilt.
    ///
    /// Under systemd the window runs as the unit netfix-upgrade.service and does not depend on this terminal; what it says
    /// is shown here, and by `netfix status --follow` from any other login.
    ///
    /// Exits with 0 when all is well, 1 when COMMAND failed and every pod is back, 4 when nothing was changed, and 5 when
    /// something is left to do for a pod or for kubelet, whatever COMMAND said.
    Upgrade(Box<UpgradeArgs>),
    /// Show when the last snapshot was, what is stored, who runs here, which window is open and who holds the lock
    Status {
        /// Show what is said in the window that is open, until it is closed
        #[arg(long)]
        follow: bool,
        /// Who is asked for the pods.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Show what became of a maintenance window: phases, kubelet's pause, every pod before and after, its outage
    ///
    /// Works from the record that `upgrade` and `pause` leave, of which the last 50 are kept, and from the open window.
    Report {
        /// The window's id or its beginning, instead of the newest one
        #[arg(id = "WINDOW", value_name = "WINDOW")]
        window: Option<String>,
        /// Write a page for a browser or a change ticket to this file as well, atomically; nothing else is needed to
        /// read it
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// List all windows instead, one line each
        #[arg(long, conflicts_with_all = ["WINDOW", "html"])]
        list: bool,
    },
    /// Take over checkpoints in the origin's format from a folder
    ///
    /// Each file is read, checked and written to the state folder under its own name. A checkpoint that netfix has
    /// written about the same living pod is better and is kept.
    Import {
        /// The folder, such as /home/work/cni-plugins/checkpoints
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Who is asked whose namespace is whose.
        #[command(flatten)]
        runtimes: Runtimes,
    },
    /// Remove all but the last kept snapshots
    Prune {
        /// How many snapshots to keep
        #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_KEEP)]
        keep: NonZeroUsize,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}
