//! Queries the runtimes and the kernel for the rebuild check: before the pause, and once kubelet has run for a while.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::{Inventory, kubelet_endpoint};
use crate::matching::Selection;
use crate::model::Problem;
use crate::model::problem::{InventoryCause, RebuildCause};
use crate::model::window::WindowPod;
use crate::runtime::{RuntimeAnswer, RuntimeConfig, Sandbox};
use crate::window::rebuild_check::After;

/// The time between two queries of a runtime that does not answer yet.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long a runtime that stops with kubelet, as k3s's containerd does, may take to answer again.
pub(crate) const BACK_AGAIN: Duration = Duration::from_secs(90);

/// How long to query a runtime that does not answer, and whether something ended that.
type Limit<'a> = (Duration, &'a dyn Fn() -> bool);

/// Queries the runtimes before the pause and notes each pod's fingerprint; returns the sockets of those that answered.
pub(crate) fn before(
    pods: &mut [WindowPod],
    config: &RuntimeConfig,
) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let answer = kubelet_endpoint::query(config)?;
    for pod in pods {
        let is_own = |sandbox: &&Sandbox| pod.info.sandbox.as_ref() == Some(&sandbox.id);
        let own = answer.sandboxes.iter().find(is_own);
        pod.fingerprint_before = own.map(Sandbox::fingerprint);
    }
    Ok(answered(&answer).cloned().collect())
}

/// The sockets of the runtimes that list their pods.
fn answered(answer: &RuntimeAnswer) -> impl Iterator<Item = &PathBuf> {
    answer
        .queried
        .iter()
        .filter(|one| one.kind.is_some())
        .map(|one| &one.endpoint)
}

/// Queries both; `pods` are those of the window.
pub(crate) fn after(
    pods: &[WindowPod],
    config: &RuntimeConfig,
    runtimes: &[PathBuf],
    limit: Limit<'_>,
    selection: &Selection,
) -> (After, Vec<Problem>) {
    let is_needed = pods.iter().any(|pod| pod.fingerprint_before.is_some());
    let (sandboxes, problems) = match sandboxes(is_needed, config, runtimes, limit) {
        Ok(sandboxes) => (Some(sandboxes), Vec::new()),
        Err(problems) => (None, problems),
    };
    let session = Inventory::open(selection).ok();
    let namespaces = session.map(|session| session.pods.into_iter().map(|pod| pod.identity));
    let after = After {
        sandboxes,
        namespaces: namespaces.map(Iterator::collect),
    };
    (after, problems)
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
    let not_checked = |problem: Problem| {
        let cause = problem.cause;
        RebuildCause::NotChecked { cause }.error(problem.object)
    };
    let answer = kubelet_endpoint::query(config)
        .map_err(|problems| problems.into_iter().map(not_checked).collect::<Vec<_>>())?;
    let is_there = |endpoint: &&PathBuf| answered(&answer).any(|now| now == *endpoint);
    let gone = before.iter().filter(|endpoint| !is_there(endpoint));
    let cause = |endpoint: &PathBuf| {
        let mut refused = answer.refused.iter();
        let refused = refused.find(|(socket, _)| socket == endpoint);
        let failed = |error| InventoryCause::RuntimeFailed { error }.into();
        match refused.map(|(_, error)| Box::new(failed(error.clone()))) {
            Some(cause) => RebuildCause::NotChecked { cause },
            None => RebuildCause::RuntimeGone,
        }
    };
    let gone: Vec<Problem> = gone
        .map(|endpoint| cause(endpoint).error(endpoint.display().to_string()))
        .collect();
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
