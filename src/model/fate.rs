//! What shows what happened to a pod in a window and to its containers, and the words for that.

use serde::{Deserialize, Serialize};

use crate::model::is_false;

/// The fingerprint of a pod, from its runtime: a rebuilt pod has another sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFingerprint {
    /// Sandbox id.
    pub sandbox: String,
    /// How often the sandbox was recreated; null where the runtime does not count.
    pub attempt: Option<u32>,
    /// Its containers that run or have ended, the last one of each name, sorted by name.
    pub containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// Its id.
    pub id: String,
    /// How often it was restarted; null where the runtime does not count.
    pub restarts: Option<u32>,
    /// Whether it ended, or was not started yet. Records of an earlier netfix have only those that ran.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended: bool,
    /// Exit code of its end, where that was queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// When it ended last, in milliseconds since 1970, where that was queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<i64>,
    /// When it was created, in milliseconds since 1970; not in a record.
    #[serde(default, skip_serializing)]
    pub created: Option<i64>,
}

/// What happened to a pod in a window, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Sandbox, namespace and containers are as before.
    Same,
    /// A container was restarted in the same sandbox.
    Restarted,
    /// A container ended in the same sandbox, and was not started again.
    Ended,
    /// Another sandbox or namespace is in its place.
    Rebuilt,
    /// Its sandbox ended, and no other is in its place.
    Gone,
}

/// What happened to a container that ran before the window, or had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerChange {
    /// Its name in the pod.
    pub name: String,
    /// The id that it had.
    pub id: String,
    /// How often it was restarted; 0 where it ended and was not started again.
    pub restarts: u32,
    /// Exit code of its end; null where the runtime does not report it.
    pub exit: Option<i32>,
    /// Why this is no failure of the window; null where it may be one.
    pub excuse: Option<Excuse>,
}

/// Why the end of a container is no failure of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excuse {
    /// It had been restarted before the window too.
    RestartedBefore,
    /// It did not run at the snapshot.
    NotRunningBefore,
    /// It ended before kubelet ran again: kubelet did not end it.
    EndedInPause,
    /// It ended with exit code 0, and was not to run again.
    Completed,
}

/// How netfix last saw a pod that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastSeen {
    /// It had all of its network.
    Whole,
    /// It was not restored.
    NotRestored,
    /// It went while kubelet, which alone deletes it, was paused.
    InPause,
}
