//! Sentences about rebuilt pods.

use crate::model::problem::RebuildCause;
use crate::model::text::escape;
use crate::model::window::ContainerChange;

sentences! {
    RebuildCause {
        SandboxReplaced { was, is, attempt: None } => "was rebuilt: its sandbox was {was} and is now {is}"
            (was = short(was), is = short(is)),
        SandboxReplaced { was, is, attempt: Some(attempt) } => "was rebuilt: its sandbox was {was} and is now {is} \
            (attempt {attempt})" (was = short(was), is = short(is)),
        SandboxGone { sandbox } => "its sandbox {sandbox} is gone, and no other replaced it" (sandbox = short(sandbox)),
        SandboxRestarted => "its sandbox was created again",
        ContainersChanged { containers } => "{containers}" (containers = list(containers)),
        NamespaceReplaced => "its network namespace is gone: the pod was rebuilt",
        Unknown => "cannot determine whether this pod was rebuilt",
        RuntimeGone => "cannot determine whether pods were rebuilt: the socket is gone that answered before the window",
        NoRuntime => "cannot determine whether pods were rebuilt: no container runtime answers",
        NotChecked { cause } => "cannot determine whether pods were rebuilt: {cause}",
    }
}

fn list(containers: &[ContainerChange]) -> String {
    let container = |change: &ContainerChange| {
        let what = if change.runs_again {
            "was restarted"
        } else {
            "is gone"
        };
        let (name, id) = (escape(&change.name), short(&change.id));
        format!("container {name} ({id}) {what}")
    };
    let all: Vec<String> = containers.iter().map(container).collect();
    all.join(", ")
}

/// The part of an id that people compare.
fn short(id: &str) -> String {
    escape(&id.chars().take(12).collect::<String>())
}
