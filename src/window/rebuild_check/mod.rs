//! The check that no pod was rebuilt: a pure comparison of what the runtimes and the kernel reported of each pod before
//! the window with what they report now. `query` asks them.

#[cfg(test)]
mod cases;
pub(crate) mod query;

use serde::Deserialize;

use crate::model::problem::RebuildCause;
use crate::model::window::{Container, ContainerChange, PodFingerprint};
use crate::model::{Bytes, NetnsIdentity, PodInfo};
use crate::runtime::Sandbox;

/// The machine after the window.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct After {
    /// Every running sandbox; `None` when a runtime that answered before does not answer now.
    pub sandboxes: Option<Vec<Sandbox>>,
    /// Every namespace; `None` when they could not be listed.
    pub namespaces: Option<Vec<NetnsIdentity>>,
}

/// Whether a pod was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RebuildVerdict {
    /// The runtime, or the kernel if no runtime knew the pod, reports the same as before.
    Same,
    /// Something is not as it was.
    Rebuilt(RebuildCause),
    /// Neither is shown.
    Unknown,
}

impl RebuildVerdict {
    /// Whether the pod was rebuilt, `None` where that is not known, and what to report.
    pub(crate) fn recorded(self, after: &After) -> (Option<bool>, Option<RebuildCause>) {
        match self {
            Self::Same => (Some(false), None),
            Self::Rebuilt(cause) => (Some(true), Some(cause)),
            // The runtime that does not answer is a separate problem.
            Self::Unknown if after.sandboxes.is_none() => (None, None),
            Self::Unknown => (None, Some(RebuildCause::Unknown)),
        }
    }
}

/// Compares a pod with the machine after the window. `then` is what its runtime reported before, `None` when no runtime knew it;
/// `namespace` its network namespace, `None` when no checkpoint has it. Returns the sandbox that is the pod's now, or has its
/// name, too.
pub(crate) fn check<'a>(
    info: &PodInfo,
    then: Option<&PodFingerprint>,
    namespace: Option<&NetnsIdentity>,
    after: &'a After,
) -> (RebuildVerdict, Option<&'a Sandbox>) {
    let known = then.zip(after.sandboxes.as_ref());
    let now = known
        .and_then(|(then, sandboxes)| own(then, sandboxes).or_else(|| successor(info, sandboxes)));
    let change = known.and_then(|(then, _)| change(then, now));
    let verdict = match (change, is_same_namespace(namespace, after)) {
        (Some(cause), _) => RebuildVerdict::Rebuilt(cause),
        (None, Some(false)) => RebuildVerdict::Rebuilt(RebuildCause::NamespaceReplaced),
        (None, _) if known.is_some() => RebuildVerdict::Same,
        (None, Some(true)) if then.is_none() => RebuildVerdict::Same,
        // A runtime that knew the pod and does not answer may have started its containers again.
        (None, _) => RebuildVerdict::Unknown,
    };
    (verdict, now)
}

fn own<'a>(then: &PodFingerprint, sandboxes: &'a [Sandbox]) -> Option<&'a Sandbox> {
    sandboxes.iter().find(|now| now.id == then.sandbox)
}

/// The sandbox that has the pod's name now.
fn successor<'a>(info: &PodInfo, sandboxes: &'a [Sandbox]) -> Option<&'a Sandbox> {
    sandboxes.iter().find(|now| {
        info.name.is_some()
            && now.name.as_deref().map(Bytes::from) == info.name
            && now.namespace == info.namespace
    })
}

/// What differs; `None` when nothing does.
fn change(then: &PodFingerprint, now: Option<&Sandbox>) -> Option<RebuildCause> {
    let Some(now) = now else {
        return Some(RebuildCause::SandboxGone {
            sandbox: then.sandbox.clone(),
        });
    };
    if now.id != then.sandbox {
        return Some(RebuildCause::SandboxReplaced {
            was: then.sandbox.clone(),
            is: now.id.clone(),
            attempt: now.attempt,
        });
    }
    if now.attempt != then.attempt {
        return Some(RebuildCause::SandboxRestarted);
    }
    let runs_again = |then: &Container| now.containers.iter().any(|now| now.name == then.name);
    let containers: Vec<ContainerChange> = then
        .containers
        .iter()
        .filter(|then| !now.containers.contains(then))
        .map(|then| ContainerChange {
            name: then.name.clone(),
            id: then.id.clone(),
            runs_again: runs_again(then),
        })
        .collect();
    (!containers.is_empty()).then_some(RebuildCause::ContainersChanged { containers })
}

/// Whether the pod's namespace still exists; `None` when nothing shows it.
fn is_same_namespace(then: Option<&NetnsIdentity>, after: &After) -> Option<bool> {
    let (then, now) = (then?, after.namespaces.as_ref()?);
    if now.iter().any(|now| then.is_same(now)) {
        return Some(true);
    }
    // A namespace that may be the same one shows nothing.
    let is_doubtful = now.iter().any(|now| then.may_be(now));
    (!is_doubtful).then_some(false)
}
