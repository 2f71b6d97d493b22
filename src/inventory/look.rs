//! One observation of the machine for several purposes, so that no namespace is read twice: a check, a snapshot and the
//! questions of a window use it.

use crate::inventory::Inventory;
use crate::inventory::node::stamp;
use crate::inventory::pods::{ObservedPod, observe_pods_twice};
use crate::matching::{Selection, StoredRecord};
use crate::model::Stamp;
use crate::progress::{Listener, Progress, Stage};
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::store::{Loaded, Store};

/// What is stored, the pods that run, and their state.
pub(crate) struct Look {
    /// When the first pod was read.
    pub at: Stamp,
    /// Sorted by id.
    pub stored: Vec<Loaded>,
    pub inventory: Inventory,
    /// One for each pod of the inventory, in their order.
    pub observed: Vec<ObservedPod>,
}

impl Look {
    /// Reads the checkpoints, finds the selected pods with all names that are known of them, and reads each.
    pub(crate) fn take(
        selection: &Selection,
        runtimes: &RuntimeConfig,
        store: &Store,
        progress: &mut dyn Listener,
    ) -> Result<Self, Refusal> {
        let stored = store.load_all()?;
        let records: Vec<_> = stored.iter().filter_map(record).collect();
        let mut inventory = Inventory::named(selection, runtimes, &records)?;
        let pods = inventory.pods.len();
        progress.notice(Progress::Phase(Stage::ReadingNamespaces, pods));
        let at = stamp();
        let observed = observe_pods_twice(&mut inventory.pods, &inventory.host);
        Ok(Self {
            at,
            stored,
            inventory,
            observed,
        })
    }

    /// Reads the checkpoints, and each pod of an inventory.
    pub(crate) fn of(mut inventory: Inventory, store: &Store) -> Result<Self, Refusal> {
        Ok(Self {
            at: stamp(),
            stored: store.load_all()?,
            observed: observe_pods_twice(&mut inventory.pods, &inventory.host),
            inventory,
        })
    }

    /// Keeps the states that could be read in their pods: later reads of these pods return them.
    pub(crate) fn keep(&mut self) {
        for (pod, observed) in self.inventory.pods.iter_mut().zip(&self.observed) {
            pod.seen = observed.as_ref().ok().map(|(state, _)| state.clone());
        }
    }
}

fn record((id, stored): &Loaded) -> Option<StoredRecord> {
    let checkpoint = stored.as_ref().ok()?;
    Some(StoredRecord::of_checkpoint(&checkpoint.pod(id), checkpoint))
}
