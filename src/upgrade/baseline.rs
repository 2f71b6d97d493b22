//! What was true before the window.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::inventory::procfs;
use crate::matching::Selection;
use crate::model::net::stack;
use crate::model::problem::WindowCause;
use crate::model::window::Run;
use crate::model::{IfName, NodeState, Problem, Window};
use crate::records::stored::{Stored, load, load_node};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::window::facts::Silence;

/// What was true before the window, in memory: a restore from here needs no disk.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub stored: Stored,
    pub node: Option<NodeState>,
    /// Gateways and targets that did not answer.
    pub silent: Vec<Silence>,
    /// The sockets of the runtimes that answered.
    pub runtimes: Vec<PathBuf>,
}

impl Baseline {
    /// The devices of the host at the bottom of the pods' links.
    pub(crate) fn devices(&self) -> BTreeSet<IfName> {
        let checkpoints = self.stored.checkpoints.iter();
        let extensions = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        let devices = extensions.flat_map(|extension| stack::devices(&extension.stack));
        devices.cloned().collect()
    }
}

/// Reads the files of the interrupted window: in the middle of a loss netfix takes no snapshot.
pub(crate) fn recover(
    window: &Window,
    selection: &Selection,
    store: &Store,
) -> Result<Baseline, Refusal> {
    // COMMAND may have outlived its netfix: two at once would upgrade the driver twice.
    let alive = |run: Option<&Run>| {
        let process = run.and_then(|run| run.process);
        process.filter(procfs::is_alive).map(|process| process.pid)
    };
    let rollback = window.rollback.as_ref().map(|rollback| &rollback.run);
    let cause = match (alive(window.run.as_ref()), alive(rollback)) {
        (Some(pid), _) => WindowCause::CommandStillRuns { pid },
        (None, Some(pid)) => WindowCause::RollbackStillRuns { pid },
        (None, None) => {
            let mut baseline = read_back(selection, store)?;
            baseline.silent = Silence::all_recorded(window);
            return Ok(baseline);
        }
    };
    Err(cause.error(window.id.clone()).into())
}

/// Reads everything that a restore needs.
pub(crate) fn read_back(selection: &Selection, store: &Store) -> Result<Baseline, Refusal> {
    let stored = load(store, selection)?;
    let mut problems = Vec::new();
    let node = load_node(store, &mut problems);
    problems.retain(Problem::is_error);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(Baseline {
        stored,
        node,
        ..Baseline::default()
    })
}
