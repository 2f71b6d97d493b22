//! One observation of the machine for several purposes, so that no namespace is read twice: a check, a snapshot and the
//! questions of a window use it.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::Inventory;
use crate::inventory::node::stamp;
use crate::inventory::pods::{KnownPackets, ObservedPod, observe_claims, observe_pods_twice};
use crate::kernel::Error;
use crate::matching::{Selection, StoredRecord};
use crate::model::net::reach;
use crate::model::{NetState, PodId, Stamp};
use crate::progress::{Listener, Progress, Stage};
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::store::{Light, Loaded, Store};

/// What is stored, the pods that run, and their state.
pub(crate) struct Look {
    /// When the first pod was read.
    pub at: Stamp,
    /// Sorted by id.
    pub stored: Vec<Loaded>,
    pub inventory: Inventory,
    /// One for each pod of the inventory, in their order.
    pub observed: Vec<ObservedPod>,
    /// The links and addresses of the pods of which nothing more was read.
    pub claims: Vec<NetState>,
}

/// How much is read of a pod with a table of more entries than are read where many pods are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookDepth {
    /// All of it.
    Whole,
    /// Its links and addresses, if they are those of its record, which is large too: that record stays.
    Recorded,
}

impl Look {
    /// Reads the checkpoints, finds the selected pods with all names that are known of them, and reads each.
    pub(crate) fn take(
        selection: &Selection,
        runtimes: &RuntimeConfig,
        store: &Store,
        depth: LookDepth,
        progress: &mut dyn Listener,
    ) -> Result<Self, Refusal> {
        let (stored, known) = read(store, depth)?;
        let records: Vec<_> = stored.iter().filter_map(record).collect();
        let inventory = Inventory::named(selection, runtimes, &records)?;
        let pods = inventory.pods.len();
        progress.notice(Progress::Phase(Stage::ReadingNamespaces, pods));
        Ok(Self::at(inventory, stored, &known))
    }

    /// Reads the checkpoints, and each pod of an inventory.
    pub(crate) fn of(inventory: Inventory, store: &Store) -> Result<Self, Refusal> {
        let (stored, known) = read(store, LookDepth::Whole)?;
        Ok(Self::at(inventory, stored, &known))
    }

    fn at(inventory: Inventory, stored: Vec<Loaded<Light>>, known: &KnownPackets) -> Self {
        let mut look = Self {
            at: stamp(),
            stored: Vec::new(),
            inventory,
            observed: Vec::new(),
            claims: Vec::new(),
        };
        let Inventory { pods, host, .. } = &mut look.inventory;
        look.observed = observe_pods_twice(pods, host, known);
        let recorded = look.read_long(&stored, known);
        // Of all others the whole record is needed.
        let whole = stored.into_iter().map(|(id, loaded)| {
            let is_part = recorded.contains(&id);
            let loaded = loaded.and_then(|(checkpoint, whole)| match whole {
                Some(whole) if !is_part => whole.load(),
                _ => Ok(checkpoint),
            });
            (id, loaded)
        });
        look.stored = whole.collect();
        look
    }

    /// Reads the pods with a table that was not read whole, but for those that are as their large record has them. Returns the names
    /// of these records.
    fn read_long(&mut self, stored: &[Loaded<Light>], known: &KnownPackets) -> BTreeSet<PodId> {
        let Inventory {
            pods, host, node, ..
        } = &mut self.inventory;
        let both = pods.iter_mut().zip(&mut self.observed);
        let long = both.filter(|(_, observed)| matches!(observed, Err(Error::TooMany(_))));
        let (mut long, mut observed): (Vec<_>, Vec<_>) = long.unzip();
        let mut recorded = BTreeSet::new();
        let mut others = Vec::new();
        let claims = observe_claims(&mut long, host);
        for ((pod, observed), claims) in long.into_iter().zip(observed.drain(..)).zip(claims) {
            let own = stored.iter().find_map(|(id, loaded)| {
                let (checkpoint, whole) = loaded.as_ref().ok()?;
                let own = checkpoint.netfix.as_ref().filter(|_| whole.is_some())?;
                let is_about = own.is_about(node, &pod.identity, &pod.info);
                is_about.then_some((id, &own.state))
            });
            match (own, claims) {
                (Some((id, then)), Ok(now))
                    if now.has_claims_of(then) && then.has_claims_of(&now) =>
                {
                    recorded.insert(id.clone());
                    self.claims.push(now);
                }
                _ => {
                    pod.read_all(true);
                    others.push((pod, observed));
                }
            }
        }
        let (mut pods, observed): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let read = observe_pods_twice(&mut pods, host, known);
        for (observed, read) in observed.into_iter().zip(read) {
            *observed = read;
        }
        recorded
    }

    /// Keeps the states that could be read in their pods: later reads of these pods return them.
    pub(crate) fn keep(&mut self) {
        for (pod, observed) in self.inventory.pods.iter_mut().zip(&self.observed) {
            pod.seen = observed.as_ref().ok().map(|(state, _)| state.clone());
        }
    }
}

/// The checkpoints, of large ones only a part where that may be enough, and the packets by which it is known what their pods reach.
fn read(store: &Store, depth: LookDepth) -> Result<(Vec<Loaded<Light>>, KnownPackets), Refusal> {
    // One that cannot be read is reported where it is needed.
    let node = store.load_node().ok().flatten();
    let (large, answers) =
        node.map_or_else(Default::default, |node| (node.large, node.answers.by_pod()));
    let large = match depth {
        LookDepth::Whole => BTreeMap::new(),
        LookDepth::Recorded => large,
    };
    let stored = store.load_light(&large)?;
    let mut known = KnownPackets::new();
    for (id, loaded) in &stored {
        let checkpoint = loaded.as_ref().ok();
        let own = checkpoint.and_then(|(checkpoint, _)| checkpoint.netfix.as_ref());
        let Some(own) = own else { continue };
        let answers = answers.get(id).map_or(&[][..], Vec::as_slice);
        let packets = known.entry(own.identity.inode).or_default();
        // Those from its addresses are known once its rules are.
        packets.extend(reach::known_packets(answers, &own.state, &own.state));
    }
    Ok((stored, known))
}

fn record((id, stored): &Loaded<Light>) -> Option<StoredRecord> {
    let (checkpoint, _) = stored.as_ref().ok()?;
    Some(StoredRecord::of_checkpoint(&checkpoint.pod(id), checkpoint))
}
