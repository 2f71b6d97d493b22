//! Sentences about rebuilt pods.

use std::fmt;

use crate::model::problem::RebuildCause;
use crate::model::window::ContainerChange;

impl fmt::Display for RebuildCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SandboxReplaced { was, is, attempt } => {
                let attempt = attempt.map(|attempt| format!(" (attempt {attempt})"));
                return write!(
                    f,
                    "was rebuilt: its sandbox was {} and is now {}{}",
                    short(was),
                    short(is),
                    attempt.unwrap_or_default()
                );
            }
            Self::SandboxGone { sandbox } => {
                return write!(
                    f,
                    "its sandbox {} is gone, and no other replaced it",
                    short(sandbox)
                );
            }
            Self::SandboxRestarted => "its sandbox was created again",
            Self::ContainersChanged { containers } => {
                let all: Vec<String> = containers.iter().map(container).collect();
                return f.write_str(&all.join(", "));
            }
            Self::NamespaceReplaced => "its network namespace is gone: the pod was rebuilt",
            Self::Unknown => "cannot determine whether this pod was rebuilt",
            Self::RuntimeGone => {
                "cannot determine whether pods were rebuilt: the socket is gone that answered before the window"
            }
            Self::NoRuntime => {
                "cannot determine whether pods were rebuilt: no container runtime answers"
            }
            Self::NotChecked { cause } => {
                return write!(f, "cannot determine whether pods were rebuilt: {cause}");
            }
        })
    }
}

fn container(change: &ContainerChange) -> String {
    let what = if change.runs_again {
        "was restarted"
    } else {
        "is gone"
    };
    format!(
        "container {} ({}) {what}",
        change.name.escape_debug(),
        short(&change.id)
    )
}

/// The part of an id that people compare.
fn short(id: &str) -> String {
    let first: String = id.chars().take(12).collect();
    first.escape_debug().to_string()
}
