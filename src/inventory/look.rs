//! One look at the machine that serves several purposes: what it found is judged, written down and asked from, and no namespace is
//! read twice.

use super::Inventory;
use super::observe::{self, Observed, Pod};
use crate::matching::{Selection, StoredRecord};
use crate::progress::{Listener, Progress, Stage};
use crate::refusal::Refusal;
use crate::runtime;
use crate::store::{Loaded, Store};

/// What is stored, what runs, and the state of that.
pub(crate) struct Look {
    /// Sorted by id.
    pub stored: Vec<Loaded>,
    pub inventory: Inventory,
    /// One for each pod of the inventory, in their order.
    pub observed: Vec<Observed>,
}

impl Look {
    /// Reads the checkpoints, finds the selected pods with all names that are known of them, and reads each.
    pub(crate) fn take(
        selection: &Selection,
        runtimes: &runtime::Config,
        store: &Store,
        progress: &mut dyn Listener,
    ) -> Result<Self, Refusal> {
        let stored = store.load_all()?;
        let records: Vec<_> = stored.iter().filter_map(record).collect();
        let mut inventory = Inventory::named(selection, runtimes, &records)?;
        let pods = inventory.pods.len();
        progress.notice(Progress::Phase(Stage::ReadingNamespaces, pods));
        let observed = observe::observe_pods_twice(&mut inventory.pods, &inventory.host);
        Ok(Self {
            stored,
            inventory,
            observed,
        })
    }

    /// From now on what could be read is not read again, by whomever.
    pub(crate) fn keep(&mut self) {
        for (pod, observed) in self.inventory.pods.iter_mut().zip(&self.observed) {
            pod.seen = observed.as_ref().ok().map(|(state, _)| state.clone());
        }
    }
}

impl Inventory {
    /// The same, and none of its pods is open.
    pub(crate) fn closed_copy(&self) -> Result<Self, Refusal> {
        let Self {
            node,
            host,
            pods,
            closed,
            problems,
            answer,
        } = self;
        let host = host.copy();
        Ok(Self {
            node: node.clone(),
            host: host.map_err(|error| super::cannot_observe("host", &error))?,
            pods: pods.iter().map(Pod::closed_copy).collect(),
            closed: closed.clone(),
            problems: problems.clone(),
            answer: answer.clone(),
        })
    }
}

fn record((id, stored): &Loaded) -> Option<StoredRecord> {
    let checkpoint = stored.as_ref().ok()?;
    Some(StoredRecord::of_checkpoint(&checkpoint.pod(id), checkpoint))
}
