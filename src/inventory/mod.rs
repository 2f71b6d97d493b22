//! What runs on this machine now: the host, network namespaces with their processes, and the pods that container runtimes
//! report.

mod cgroup;
pub mod discover;
pub(crate) mod drivers;
pub(crate) mod functions;
pub(crate) mod kubelet_endpoint;
pub(crate) mod kubelets;
pub(crate) mod look;
mod naming;
pub(crate) mod nics;
pub(crate) mod node;
pub mod observe;
pub(crate) mod pods;
pub(crate) mod private;
pub mod procfs;
pub(crate) mod selectors;
pub(crate) mod sockets;
pub(crate) mod visit;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::mem;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::inventory::naming::attribution::{Attribution, contradicted, left_over};
use crate::inventory::naming::sandbox_match::Unfound;
use crate::inventory::observe::{Host, Pod};
use crate::kernel::netns::nsid;
use crate::kernel::{Error, Netns};
use crate::matching::{Machine, NetnsKey, Selection, StoredRecord, Verdict, match_records};
use crate::model::problem::InventoryCause;
use crate::model::{NetnsIdentity, NodeIdentity, Problem};
use crate::refusal::Refusal;
use crate::runtime::{RuntimeAnswer, RuntimeConfig};

/// How often, and after which pause, the machine is observed and the runtimes are queried again when the two do not
/// agree: pods come and go meanwhile, and a runtime that is starting may not have its pods yet.
const RETRIES: usize = 2;
const PAUSE: Duration = Duration::from_millis(400);

/// The machine as a command found it.
#[derive(Debug)]
pub(crate) struct Inventory {
    pub node: NodeIdentity,
    pub host: Host,
    pub pods: Vec<Pod>,
    /// Namespaces that cannot be entered.
    pub closed: Vec<NetnsIdentity>,
    /// Whether every namespace was found and opened, and every reported sandbox has one of them.
    pub is_complete: bool,
    pub problems: Vec<Problem>,
    /// What the container runtimes reported; `None` when they were not queried.
    pub answer: Option<RuntimeAnswer>,
}

impl Inventory {
    /// Observes the host and opens every selected namespace. Only the kernel is queried, so names may be missing.
    ///
    /// Ends the command when the host or the list of processes cannot be read: then nothing is known.
    pub(crate) fn open(selection: &Selection) -> Result<Self, Refusal> {
        let mut host = Host::observe().map_err(|error| cannot_observe("host", &error))?;
        // Before the namespaces are listed: one that is made afterwards is not unseen.
        let ids = nsid::all(&mut host.socket);
        let ids = ids.map_err(|error| cannot_observe("host", &error))?;
        let (found, mut problems) =
            discover::discover(selection).map_err(|error| cannot_observe("/proc", &error))?;
        let (pods, closed) = pods::open_pods(found, &mut problems);
        if selection.wants_every_netns() && closed.is_empty() {
            let unseen = pods::unseen(ids, &pods, &mut host);
            problems.extend(unseen.map_err(|error| cannot_observe("host", &error))?);
        }
        Ok(Self {
            node: node::node_identity(),
            host,
            pods,
            closed,
            // Each error is a namespace that was not opened; where only a pod can say what is there, it is a warning.
            is_complete: !problems.iter().any(Problem::is_error),
            problems,
            answer: None,
        })
    }

    /// Opens every selected namespace, with the names that runtimes and records know.
    pub(crate) fn named(
        selection: &Selection,
        runtimes: &RuntimeConfig,
        records: &[StoredRecord],
    ) -> Result<Self, Refusal> {
        let mut inventory = Self::open(selection)?;
        inventory.attribute(runtimes, selection)?;
        inventory.learn_names(records);
        inventory.select(selection)?;
        Ok(inventory)
    }

    /// Queries the container runtimes for the pods' names. One that cannot be queried ends the command, and so does an
    /// answer that cannot be true; before that, machine and runtimes are queried again.
    pub(crate) fn attribute(
        &mut self,
        runtimes: &RuntimeConfig,
        selection: &Selection,
    ) -> Result<(), Refusal> {
        let mut last = self.query_names(runtimes, selection)?;
        let mut unfound_before: Option<Vec<Unfound>> = None;
        for _ in 0..RETRIES {
            if last.is_consistent() {
                break;
            }
            thread::sleep(PAUSE);
            *self = Self::open(selection)?;
            let next = self.query_names(runtimes, selection)?;
            unfound_before = Some(mem::replace(&mut last, next).unfound);
        }
        let Attribution {
            answer,
            mut unfound,
            suspects,
            problems,
        } = last;
        if !suspects.is_empty() {
            return Err(contradicted(&answer, &suspects).into());
        }
        let left_over = left_over(&answer, &mut self.pods, &self.host, selection)?;
        // One that was found or not reported at the query before may be starting or ending.
        if let Some(before) = unfound_before {
            unfound.retain(|now| before.iter().any(|then| then.is_same(now)));
        }
        self.problems.extend(problems);
        self.problems.extend(left_over);
        self.is_complete &= unfound.is_empty();
        self.problems.extend(unfound.iter().map(Unfound::problem));
        self.answer = Some(answer);
        Ok(())
    }

    /// Queries the runtimes once, and gives the pods the names that they report.
    fn query_names(
        &mut self,
        runtimes: &RuntimeConfig,
        selection: &Selection,
    ) -> Result<Attribution, Refusal> {
        let answer = kubelet_endpoint::query(runtimes)?;
        Ok(Attribution::new(
            answer,
            &mut self.pods,
            &self.host,
            selection,
        ))
    }

    /// Gives pods the id and the names under which they are stored, unless a runtime reports others.
    pub(crate) fn learn_names(&mut self, records: &[StoredRecord]) {
        let machine = self.machine(records);
        let matching = match_records(records, &machine, &Selection::everything());
        for (record, verdict) in records.iter().zip(matching.verdicts) {
            if let Verdict::Matched(at) = verdict {
                self.pods[at].info.learn(record.info.clone());
            }
        }
    }

    /// The facts from which these records are matched with the running pods.
    pub(crate) fn machine(&self, records: &[StoredRecord]) -> Machine {
        Machine {
            node: self.node.clone(),
            pods: self.pods.iter().map(Pod::facts).collect(),
            closed: self.closed.clone(),
            leads_to: leads_to(records),
        }
    }

    /// Keeps the selected pods. Refuses when the user selected pods and none of them runs.
    pub(crate) fn select(&mut self, selection: &Selection) -> Result<(), Refusal> {
        self.pods.retain(|pod| selection.wants_pod(&pod.info));
        match no_match(selection) {
            Some(problem) if self.pods.is_empty() && self.problems.is_empty() => {
                Err(problem.into())
            }
            _ => {
                self.problems.extend(selection.unmatched());
                Ok(())
            }
        }
    }

    /// A copy in which no pod is open, with a socket of its own on the host.
    pub(crate) fn closed_copy(&self) -> Result<Self, Refusal> {
        let Self {
            node,
            host,
            pods,
            closed,
            is_complete,
            problems,
            answer,
        } = self;
        Ok(Self {
            node: node.clone(),
            host: host
                .copy()
                .map_err(|error| cannot_observe("host", &error))?,
            pods: pods.iter().map(Pod::closed_copy).collect(),
            closed: closed.clone(),
            is_complete: *is_complete,
            problems: problems.clone(),
            answer: answer.clone(),
        })
    }
}

/// The namespaces to which the paths of those records lead that have no proof.
pub(crate) fn leads_to(records: &[StoredRecord]) -> BTreeMap<PathBuf, NetnsKey> {
    let unproven = records.iter().filter(|record| record.proof.is_none());
    unproven
        .flat_map(|record| &record.paths)
        .filter_map(|path| Some((path.clone(), Netns::open(path).ok()?.key())))
        .collect()
}

/// The problem of an object that cannot be read.
pub(crate) fn cannot_observe(object: &str, error: &dyn Display) -> Problem {
    let error = error.to_string();
    InventoryCause::CannotObserve { error }.error(object)
}

/// The problem of a pod that cannot be read, or has more than is read of a pod.
pub(crate) fn unread(object: &str, error: &Error) -> Problem {
    match error {
        Error::TooMany(most) => InventoryCause::TooMany { most: *most }.warning("netns"),
        error => cannot_observe(object, error),
    }
}

/// The problem when no running pod is among those that the user selected; `None` if the user selected none.
pub(crate) fn no_match(selection: &Selection) -> Option<Problem> {
    (!selection.is_everything()).then(|| InventoryCause::NoSuchPod.error(selection.to_string()))
}
