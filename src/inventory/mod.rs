//! What runs on this machine now: the host, network namespaces with their processes, and the pods that container runtimes
//! report.

mod attribution;
mod cgroup;
pub mod discover;
pub(crate) mod kubelet_endpoint;
pub(crate) mod kubelets;
pub(crate) mod look;
pub(crate) mod nics;
pub mod observe;
mod pod_ids;
pub(crate) mod private;
pub mod procfs;
pub mod sandbox_match;
pub(crate) mod selectors;
pub(crate) mod visit;

use crate::inventory::observe::{Host, Pod};
use crate::kernel::Netns;
use crate::matching::{Machine, Selection, StoredRecord, Verdict, match_records};
use crate::model::problem::{Cause, InventoryCause};
use crate::model::{NetnsIdentity, NodeIdentity, Problem};
use crate::refusal::Refusal;
use crate::runtime::{self, Answer};

/// The machine as a command found it.
#[derive(Debug)]
pub(crate) struct Inventory {
    pub node: NodeIdentity,
    pub host: Host,
    pub pods: Vec<Pod>,
    /// Namespaces that cannot be entered.
    pub closed: Vec<NetnsIdentity>,
    pub problems: Vec<Problem>,
    /// What the container runtimes reported; `None` when they were not queried.
    pub answer: Option<Answer>,
}

impl Inventory {
    /// Observes the host and opens every selected namespace. Only the kernel is queried, so names may be missing.
    ///
    /// Ends the command when the host or the list of processes cannot be read: then nothing is known.
    pub(crate) fn open(selection: &Selection) -> Result<Self, Refusal> {
        let host = Host::observe().map_err(|error| cannot_observe("host", &error))?;
        let (found, mut problems) =
            discover::discover(selection).map_err(|error| cannot_observe("/proc", &error))?;
        let (pods, closed) = observe::open_pods(found, &mut problems);
        Ok(Self {
            node: observe::node_identity(),
            host,
            pods,
            closed,
            problems,
            answer: None,
        })
    }

    /// Opens every selected namespace, with the names that runtimes and records know.
    pub(crate) fn named(
        selection: &Selection,
        runtimes: &runtime::Config,
        records: &[StoredRecord],
    ) -> Result<Self, Refusal> {
        let mut inventory = Self::open(selection)?;
        inventory.attribute(runtimes, selection)?;
        inventory.learn_names(records);
        inventory.select(selection)?;
        Ok(inventory)
    }

    /// Gives pods the id and the names under which they are stored, unless a runtime reports others.
    pub(crate) fn learn_names(&mut self, records: &[StoredRecord]) {
        let machine = machine(&self.node, &self.pods, &self.closed, records);
        let matching = match_records(records, &machine, &Selection::everything());
        for (record, verdict) in records.iter().zip(matching.verdicts) {
            if let Verdict::Matched(at) = verdict {
                self.pods[at].info.learn(record.info.clone());
            }
        }
    }

    /// Whether every namespace was found and opened.
    pub(crate) fn is_complete(&self) -> bool {
        let is_unread = |problem: &Problem| match &*problem.cause {
            Cause::Inventory(cause) => matches!(
                cause,
                InventoryCause::CannotObserve { .. }
                    | InventoryCause::NetnsHidden
                    | InventoryCause::CannotOpenNetns { .. }
                    | InventoryCause::CannotEnterNetns { .. }
                    | InventoryCause::SandboxNotFound { .. }
            ),
            _ => false,
        };
        !self.problems.iter().any(is_unread)
    }

    /// Keeps the selected pods. Refuses when the user selected pods and none of them runs.
    pub(crate) fn select(&mut self, selection: &Selection) -> Result<(), Refusal> {
        self.pods.retain(|pod| selection.wants_pod(&pod.info));
        match no_match(selection) {
            Some(problem) if self.pods.is_empty() && self.problems.is_empty() => {
                Err(problem.into())
            }
            _ => Ok(()),
        }
    }
}

/// The problem when no running pod is among those that the user selected; `None` if the user selected none.
pub(crate) fn no_match(selection: &Selection) -> Option<Problem> {
    (!selection.is_everything()).then(|| InventoryCause::NoSuchPod.error(selection.to_string()))
}

/// The facts from which records are matched with the running pods.
pub(crate) fn machine(
    node: &NodeIdentity,
    pods: &[Pod],
    closed: &[NetnsIdentity],
    records: &[StoredRecord],
) -> Machine {
    let unproven = records.iter().filter(|record| record.proof.is_none());
    let leads_to = unproven
        .flat_map(|record| &record.paths)
        .filter_map(|path| Some((path.clone(), Netns::open(path).ok()?.key())));
    Machine {
        node: node.clone(),
        pods: pods.iter().map(Pod::facts).collect(),
        closed: closed.to_vec(),
        leads_to: leads_to.collect(),
    }
}

/// An object that cannot be read.
pub(crate) fn cannot_observe(object: &str, error: &dyn std::fmt::Display) -> Problem {
    let error = error.to_string();
    InventoryCause::CannotObserve { error }.error(object)
}
