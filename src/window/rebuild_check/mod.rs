//! What happened to each pod in a window: a pure comparison of what the runtimes and the kernel reported of it before the window
//! with what they report now. `query` asks them.

#[cfg(test)]
mod cases;
pub(crate) mod containers;
pub(crate) mod query;

use serde::Deserialize;

use crate::model::fate::{ContainerChange, Fate, PodFingerprint};
use crate::model::problem::RebuildCause;
use crate::model::{Bytes, NetnsIdentity, PodInfo};
use crate::runtime::Sandbox;

/// The machine after the window.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct After {
    /// Every running sandbox; `None` when a runtime that answered before does not answer now.
    pub sandboxes: Option<Vec<Sandbox>>,
    /// Every namespace; `None` when they could not be listed.
    pub namespaces: Option<Vec<NetnsNow>>,
    /// When kubelet ran again, in milliseconds since 1970; `None` where it was not paused, or that is unknown.
    #[serde(default)]
    pub resumed: Option<i64>,
    /// When this was observed, in milliseconds since the machine's boot.
    #[serde(default)]
    pub observed: u64,
}

/// A namespace after the window.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NetnsNow {
    #[serde(flatten)]
    pub identity: NetnsIdentity,
    /// Its pod, as far as the kernel shows it.
    #[serde(default)]
    pub pod: Option<PodInfo>,
}

/// What happened to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RebuildVerdict {
    /// The runtime, or the kernel if no runtime knew the pod, reports the same as before.
    Same,
    /// Containers of the same sandbox were restarted or ended.
    Changed(Vec<ContainerChange>),
    /// Another sandbox or namespace is in its place.
    Rebuilt(RebuildCause),
    /// Its sandbox or namespace is gone, and no other is in its place.
    Gone,
    /// Its namespace is gone, and the runtime that knew it does not answer.
    NamespaceGone,
    /// Nothing shows it.
    Unknown,
}

impl RebuildVerdict {
    /// In one word; `None` where it is unknown.
    pub(crate) fn fate(&self) -> Option<Fate> {
        match self {
            Self::Same => Some(Fate::Same),
            Self::Changed(changes) if changes.iter().any(|one| one.restarts > 0) => {
                Some(Fate::Restarted)
            }
            Self::Changed(_) => Some(Fate::Ended),
            Self::Rebuilt(_) => Some(Fate::Rebuilt),
            Self::Gone => Some(Fate::Gone),
            Self::NamespaceGone | Self::Unknown => None,
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
    let is_there = is_same_namespace(namespace, after);
    let Some((then, sandboxes)) = then.zip(after.sandboxes.as_ref()) else {
        return (by_namespace(info, then.is_some(), is_there, after), None);
    };
    let own = sandboxes.iter().find(|now| now.id == then.sandbox);
    let now = own.or_else(|| sandboxes.iter().find(|now| is_successor(info, now)));
    let Some(now) = now else {
        return (RebuildVerdict::Gone, None);
    };
    let changes = containers::changes(then, now, after.resumed);
    // A container that is its own sandbox gets another namespace with each restart.
    let is_own = then.containers.iter().any(|one| one.id == then.sandbox);
    let verdict = if now.id != then.sandbox {
        RebuildVerdict::Rebuilt(RebuildCause::SandboxReplaced {
            was: then.sandbox.clone(),
            is: now.id.clone(),
            attempt: now.attempt,
        })
    } else if now.attempt != then.attempt {
        RebuildVerdict::Rebuilt(RebuildCause::SandboxRestarted)
    } else if is_there == Some(false) && (!is_own || changes.is_empty()) {
        RebuildVerdict::Rebuilt(RebuildCause::NamespaceReplaced)
    } else if changes.is_empty() {
        RebuildVerdict::Same
    } else {
        RebuildVerdict::Changed(changes)
    };
    (verdict, Some(now))
}

/// By the kernel alone.
fn by_namespace(
    info: &PodInfo,
    was_known: bool,
    is_there: Option<bool>,
    after: &After,
) -> RebuildVerdict {
    let mut namespaces = after.namespaces.iter().flatten();
    let mut has_successor =
        || namespaces.any(|now| now.pod.as_ref().is_some_and(|pod| is_same_pod(info, pod)));
    match is_there {
        Some(false) if has_successor() => RebuildVerdict::Rebuilt(RebuildCause::NamespaceReplaced),
        Some(false) if was_known => RebuildVerdict::NamespaceGone,
        Some(false) => RebuildVerdict::Gone,
        // A runtime that knew the pod and does not answer may have started its containers again.
        Some(true) if !was_known => RebuildVerdict::Same,
        _ => RebuildVerdict::Unknown,
    }
}

/// Whether a sandbox is the pod's now: it has the pod's uid or name.
fn is_successor(info: &PodInfo, now: &Sandbox) -> bool {
    let has_uid = info.uid.is_some() && now.uid == info.uid;
    let has_name = info.name.is_some()
        && now.name.as_deref().map(Bytes::from) == info.name
        && now.namespace == info.namespace;
    has_uid || has_name
}

/// The same for another namespace.
fn is_same_pod(info: &PodInfo, now: &PodInfo) -> bool {
    let has_uid = info.uid.is_some() && now.uid == info.uid;
    let has_name = info.namespace.is_some()
        && info.name.is_some()
        && (&now.namespace, &now.name) == (&info.namespace, &info.name);
    now.id == info.id || has_uid || has_name
}

/// Whether the pod's namespace still exists; `None` when nothing shows it.
fn is_same_namespace(then: Option<&NetnsIdentity>, after: &After) -> Option<bool> {
    let (then, now) = (then?, after.namespaces.as_ref()?);
    is_present(then, now.iter().map(|now| &now.identity))
}

/// Whether a namespace is among these; `None` where one of them may be it.
pub(crate) fn is_present<'a>(
    then: &NetnsIdentity,
    all: impl IntoIterator<Item = &'a NetnsIdentity>,
) -> Option<bool> {
    // A namespace that may be the same one shows nothing.
    let alike: Vec<_> = all.into_iter().filter(|now| then.may_be(now)).collect();
    if alike.iter().any(|now| then.is_same(now)) {
        Some(true)
    } else {
        alike.is_empty().then_some(false)
    }
}
