//! What is stored, what runs, and the open window, at this moment; changes nothing.

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::observe::Pod;
use crate::inventory::private;
use crate::kubelet::kubelet_pause;
use crate::matching::Selection;
use crate::model::{NodeIdentity, NodeState, Problem};
use crate::records::stored::{Stored, load, load_node};
use crate::refusal::Refusal;
use crate::runtime;
use crate::store::Store;
use crate::window::window_status::WindowStatus;

/// The state of everything.
pub(crate) struct Status {
    pub node: NodeIdentity,
    /// The host's state as it was recorded in this boot.
    pub recorded: Option<NodeState>,
    pub stored: Stored,
    /// Kept generations.
    pub generations: usize,
    /// Running pods.
    pub running: usize,
    /// Running pods that have a checkpoint.
    pub covered: usize,
    /// Namespaces that belong to no pod.
    pub private: usize,
    /// The runtimes that answered.
    pub runtimes: Vec<runtime::Queried>,
    pub window: Option<WindowStatus>,
    pub problems: Vec<Problem>,
}

/// Reads all of it. One part that cannot be read must not hide the rest.
pub(crate) fn run(runtimes: &runtime::RuntimeConfig, context: &Context) -> Result<Status, Refusal> {
    let store = &context.store;
    let selection = Selection::everything();
    let mut stored = load(store, &selection)?;
    let mut problems = std::mem::take(&mut stored.problems);
    let mut inventory = Inventory::open(&selection)?;
    if let Err(refusal) = inventory.attribute(runtimes, &selection) {
        problems.extend(refusal.problems);
    }
    let recorded = load_node(store, &mut problems);
    let Inventory {
        node,
        host,
        pods,
        problems: found,
        answer,
        ..
    } = inventory;
    let is_covered = |pod: &Pod| {
        let checkpoints = stored.checkpoints.iter();
        let mut own = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        own.any(|extension| extension.is_about(&node, &pod.identity, &pod.info))
    };
    let covered = pods.iter().filter(|pod| is_covered(pod)).count();
    let (pods, private) = private::split(pods, &host, answer.as_ref(), is_covered);
    let generations = store.generations().map(|generations| generations.len());
    let generations = generations.unwrap_or_else(|error| {
        problems.push(error.problem());
        0
    });
    let window = window(store, &mut problems);
    problems.extend(found);
    Ok(Status {
        node,
        recorded,
        stored,
        generations,
        running: pods.len(),
        covered,
        private: private.len(),
        runtimes: answer.map(|answer| answer.queried).unwrap_or_default(),
        window,
        problems,
    })
}

/// The open window, and the state of kubelet's unit.
pub(crate) fn window(store: &Store, problems: &mut Vec<Problem>) -> Option<WindowStatus> {
    let open = store.open_window().map_err(|error| error.problem());
    let window = open.map_err(|problem| problems.push(problem)).ok()??;
    let bus = kubelet_pause::systemd().map_err(|problem| problems.push(problem.demoted()));
    Some(WindowStatus::new(window, bus.ok().flatten().as_ref()))
}
