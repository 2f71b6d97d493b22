//! Queries the runtimes and the kernel for the rebuild check: before the pause, and once kubelet has run for a while.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::inventory::{Inventory, kubelet_endpoint};
use crate::matching::Selection;
use crate::model::Problem;
use crate::model::problem::{InventoryCause, RebuildCause};
use crate::model::window::WindowPod;
use crate::runtime::{RuntimeAnswer, RuntimeConfig, Sandbox};
use crate::window::rebuild_check::{After, NetnsNow};

/// The time between two queries of a runtime that does not answer yet.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long to query a runtime that does not answer, and whether something ended that.
type Limit<'a> = (Duration, &'a dyn Fn() -> bool);

/// The runtimes before the pause.
pub(crate) fn before(config: &RuntimeConfig) -> Result<RuntimeAnswer, Vec<Problem>> {
    kubelet_endpoint::query(&config.with_containers(BTreeSet::new()))
}

/// The answer of the runtimes before a restore that does not wait for them.
pub(crate) struct RuntimeQuery {
    asked: Receiver<RuntimeAnswer>,
    answer: Option<RuntimeAnswer>,
}

impl RuntimeQuery {
    /// Queries them in a thread. Without an answer where that fails.
    pub(crate) fn ask(config: &RuntimeConfig) -> Self {
        let (sender, asked) = channel();
        let config = config.clone();
        // Without the thread or an answer the sender is dropped, which ends the wait.
        let _ = thread::Builder::new().spawn(move || {
            let _ = before(&config).map(|answer| sender.send(answer));
        });
        Self {
            asked,
            answer: None,
        }
    }

    /// The answer, as soon as it is there, but no later than this.
    pub(crate) fn within(&mut self, limit: Duration) -> Option<&RuntimeAnswer> {
        if self.answer.is_none() {
            self.answer = self.asked.recv_timeout(limit).ok();
        }
        self.answer.as_ref()
    }
}

/// The containers that ran before the window.
fn ran(pods: &[WindowPod]) -> BTreeSet<String> {
    let fingerprints = pods
        .iter()
        .filter_map(|pod| pod.fingerprint_before.as_ref());
    let containers = fingerprints.flat_map(|one| &one.containers);
    let ran = containers.filter(|one| !one.ended);
    ran.map(|one| one.id.clone()).collect()
}

/// The sockets of the runtimes that list their pods.
pub(crate) fn answered(answer: &RuntimeAnswer) -> impl Iterator<Item = &PathBuf> {
    answer
        .queried
        .iter()
        .filter(|one| one.kind.is_some())
        .map(|one| &one.endpoint)
}

/// The runtimes and the namespaces after the window; `pods` are those of the window, `runtimes` the sockets that answered
/// before it.
pub(crate) fn after(
    pods: &[WindowPod],
    config: &RuntimeConfig,
    runtimes: &[PathBuf],
    limit: Limit<'_>,
    selection: &Selection,
) -> (After, Vec<Problem>) {
    let is_needed = pods.iter().any(|pod| pod.fingerprint_before.is_some());
    let config = config.with_containers(ran(pods));
    let (sandboxes, problems) = match sandboxes(is_needed, &config, runtimes, limit) {
        Ok(sandboxes) => (Some(sandboxes), Vec::new()),
        Err(problems) => (None, problems),
    };
    let after = After {
        sandboxes,
        namespaces: Inventory::open(selection).ok().map(namespaces),
        resumed: None,
        observed: clock::boottime(),
    };
    (after, problems)
}

fn namespaces(now: Inventory) -> Vec<NetnsNow> {
    let closed = now.closed.into_iter().map(|identity| (identity, None));
    let open = now
        .pods
        .into_iter()
        .map(|pod| (pod.identity, Some(pod.info)));
    let all = open.chain(closed);
    all.map(|(identity, pod)| NetnsNow { identity, pod })
        .collect()
}

/// The sandboxes. A runtime that does not answer yet gets more time.
fn sandboxes(
    is_needed: bool,
    config: &RuntimeConfig,
    runtimes: &[PathBuf],
    (limit, is_interrupted): Limit<'_>,
) -> Result<Vec<Sandbox>, Vec<Problem>> {
    if !is_needed {
        return Ok(Vec::new());
    }
    let until = Instant::now() + limit;
    loop {
        let last = query_again(config, runtimes);
        if last.is_ok() || is_interrupted() || Instant::now() >= until {
            return last;
        }
        thread::sleep(INTERVAL);
    }
}

/// Queries the runtimes again. The pods of a runtime that answered before and has no socket now are not gone.
fn query_again(config: &RuntimeConfig, before: &[PathBuf]) -> Result<Vec<Sandbox>, Vec<Problem>> {
    let answer = kubelet_endpoint::query(config)
        .map_err(|problems| problems.into_iter().map(not_checked).collect::<Vec<_>>())?;
    let mut gone = Vec::new();
    for endpoint in before {
        if answered(&answer).any(|now| now == endpoint) {
            continue;
        }
        let mut refused = answer.refused.iter();
        let cause = match refused.find(|(socket, _)| socket == endpoint) {
            Some((_, error)) => {
                let error = error.clone();
                let cause = Box::new(InventoryCause::RuntimeFailed { error }.into());
                RebuildCause::NotChecked { cause }
            }
            None => RebuildCause::RuntimeGone,
        };
        gone.push(cause.error(endpoint.display()));
    }
    // A window that was interrupted does not know which runtimes answered before.
    if before.is_empty() && answered(&answer).next().is_none() {
        return Err(vec![RebuildCause::NoRuntime.error("")]);
    }
    if gone.is_empty() {
        Ok(answer.sandboxes)
    } else {
        Err(gone)
    }
}

/// A runtime that failed leaves unknown whether its pods were rebuilt.
fn not_checked(Problem { object, cause, .. }: Problem) -> Problem {
    RebuildCause::NotChecked { cause }.error(object)
}
