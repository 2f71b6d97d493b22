//! The document that every command answers with (`-o json`), schema `netfix/v1`.

mod views;

use std::str::FromStr;

use serde::Serialize;

pub use views::{
    CheckStatus, CheckView, ConfigView, GenerationView, LostView, NodeView, PodView, RuntimeView,
    SettingView, ShowView, StatusView, UnreadView,
};

pub use crate::snapshot::Generations as KeptView;

use crate::model::{Code, Exit, Problem, State};
use crate::refusal::Refusal;
use crate::report::fleet::FleetView;
use crate::report::window::hold::HoldView;
use crate::report::window::view::{ReportView, WindowView};

macro_rules! verbs {
    ($($(#[$meta:meta])* $verb:ident = $word:literal,)*) => {
        /// A command that answers with a document.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Verb {
            $($(#[$meta])* $verb,)*
        }

        impl Verb {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$verb),*];

            /// The word on the command line and in JSON.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$verb => $word,)*
                }
            }
        }
    };
}

verbs! {
    /// Writes checkpoints.
    Snapshot = "snapshot",
    /// Lists them, or their generations.
    List = "list",
    /// Shows one.
    Show = "show",
    /// Compares them with the kernel.
    Diff = "diff",
    /// Lists the steps of a restore; also `restore --dry-run`.
    Plan = "plan",
    /// Restores what is missing.
    Restore = "restore",
    /// Probes the gateways.
    Verify = "verify",
    /// Checks whether every pod could be restored.
    Check = "check",
    /// Shows the state of everything; what a document has until its command is set.
    #[default]
    Status = "status",
    /// Stops kubelet.
    Pause = "pause",
    /// Starts kubelet.
    Resume = "resume",
    /// Runs a maintenance window.
    Upgrade = "upgrade",
    /// Waits for the end of a window.
    Wait = "wait",
    /// Reports a window.
    Report = "report",
    /// Imports the checkpoints of `i40e_net_fix`.
    Import = "import",
    /// Removes old generations.
    Prune = "prune",
}

impl FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|verb| verb.word() == text);
        known
            .copied()
            .ok_or_else(|| format!("{text} has no document"))
    }
}

/// The answer of one command.
#[derive(Debug, Default, Serialize)]
#[serde(tag = "schema", rename = "netfix/v1")]
pub struct Document {
    /// The command.
    pub command: Verb,
    /// The exit code.
    pub exit: u8,
    /// The host.
    pub node: NodeView,
    /// The pods.
    pub pods: Vec<PodView>,
    /// Errors, warnings and notes.
    pub problems: Vec<Problem>,
    /// Whether it is about some of the pods only.
    #[serde(skip)]
    pub is_selection: bool,
    /// `upgrade --dry-run`: whether the window would begin, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The key of this command.
    #[serde(flatten)]
    pub extra: Option<Extra>,
}

/// A key of the document that only one command has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extra {
    /// `check`
    Check(CheckView),
    /// `status`
    Status(Box<StatusView>),
    /// `show`
    Show(ShowView),
    /// `list --generations`
    Generations(Vec<GenerationView>),
    /// `report`
    Report(Box<ReportView>),
    /// `report --list`
    Windows(Vec<WindowView>),
    /// `snapshot` and `prune`
    Kept(KeptView),
    /// `report --merge` and `check --merge`
    Fleet(Box<FleetView>),
    /// `pause`, `resume` and `upgrade`
    Window(Box<HoldView>),
    /// `upgrade --dry-run`
    #[serde(rename = "dry_run")]
    DryRun(bool),
}

impl Document {
    /// A node, its pods and the problems.
    pub(crate) fn of(
        node: NodeView,
        pods: impl IntoIterator<Item = PodView>,
        problems: Vec<Problem>,
    ) -> Self {
        Self {
            node,
            pods: pods.into_iter().collect(),
            problems,
            ..Self::default()
        }
    }

    /// With the exit code for the states of the pods: something that netfix cannot do is never more than part of the work.
    pub(crate) fn judged(self) -> Self {
        let errors = || self.problems.iter().filter(|problem| problem.is_error());
        let good = self.pods.iter().filter(|pod| pod.state.is_good()).count();
        let is_host_partly = self.pods.is_empty() && self.node.state == Some(State::Partial);
        let exit = match (errors().count(), good) {
            (0, all) if all == self.pods.len() => Exit::Done,
            _ if is_host_partly => Exit::Partly,
            (_, 0) if !errors().any(|problem| problem.code() == Code::Unsupported) => Exit::Failed,
            _ => Exit::Partly,
        };
        self.exits(exit)
    }

    /// With this exit code.
    pub(crate) fn exits(self, exit: Exit) -> Self {
        Self {
            exit: exit as u8,
            ..self
        }
    }

    /// Whether the command could not start and has no result, not even an empty one.
    pub(in crate::report) fn is_refused(&self) -> bool {
        self.exit != 0 && self.pods.is_empty() && self.node.steps.is_empty()
    }
}

impl From<Refusal> for Document {
    fn from(Refusal { failed, problems }: Refusal) -> Self {
        let refused = Self {
            problems,
            ..Self::default()
        };
        refused.exits(if failed { Exit::Failed } else { Exit::Refused })
    }
}
