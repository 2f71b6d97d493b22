//! Progress as a stream of events: a bar on a terminal is one listener, silence is another.

use std::time::Duration;

use crate::model::IfName;

/// What happens while a command works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A phase begins, with this many pods.
    Phase(Stage, usize),
    /// A phase begins that only waits for these devices, for this long at most.
    Waiting(Wait, Vec<IfName>, Duration),
    /// This many more pods are done.
    Advance(usize),
    /// The command has finished.
    Done,
}

/// A part of a command's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Observing every namespace.
    ReadingNamespaces,
    /// Comparing pods with their checkpoints.
    Comparing,
    /// Restoring twins of the pods.
    Rehearsing,
    /// Writing checkpoints.
    WritingCheckpoints,
    /// Restoring the host's own links.
    RestoringHost,
    /// Restoring pods.
    RestoringPods,
    /// Probing gateways.
    ProbingGateways,
}

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Their return, until udev has finished with them.
    Device,
    /// Carrier on them.
    Carrier,
    /// The network manager that owns them.
    Manager,
    /// A loss, which would be restored.
    Loss,
}

/// Takes notice of progress.
pub trait Listener {
    /// Takes notice of an event.
    fn notice(&mut self, event: Progress);
}
