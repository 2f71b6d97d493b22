//! Records that are not used, and the pods that have their names now.

use crate::inventory::kubelet_endpoint;
use crate::model::problem::MatchingCause;
use crate::model::{Bytes, PodSummary, Problem};
use crate::runtime::{self, Sandbox};

/// A record that is not used.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub pod: PodSummary,
    pub reason: Reason,
    /// The same for people.
    pub problems: Vec<Problem>,
}

/// Why a record is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    OtherMachine,
    /// It is from before the last boot.
    OtherBoot,
    /// Its namespace is gone, or may be another one.
    NetnsGone,
    /// Its namespace cannot be entered.
    NetnsClosed,
    /// Another pod has its namespace.
    PodReplaced,
    /// It names no interface that netfix can use.
    Unusable,
}

/// Names the pods that have the names of rejected records now, as a `StatefulSet`'s do when they are recreated. Only a
/// runtime knows them. To be called when all other work is done: only messages depend on it.
pub(crate) fn name_successors(
    rejected: &mut [Rejected],
    runtimes: &runtime::Config,
) -> Vec<Problem> {
    let is_gone =
        |one: &&mut Rejected| one.reason == Reason::NetnsGone && one.pod.info.sandbox.is_some();
    let mut gone: Vec<_> = rejected.iter_mut().filter(is_gone).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let answer = match kubelet_endpoint::query(runtimes) {
        Ok(answer) => answer,
        Err(unreachable) => return unreachable.into_iter().map(Problem::demoted).collect(),
    };
    for one in &mut gone {
        let then = &one.pod.info;
        let is_successor = |now: &&Sandbox| {
            then.name.is_some()
                && now.name.as_deref().map(Bytes::from) == then.name
                && now.namespace == then.namespace
                && then.sandbox.as_ref() != Some(&now.id)
        };
        let Some(now) = answer.sandboxes.iter().find(is_successor) else {
            continue;
        };
        let now = now.info(then.id.clone());
        one.reason = Reason::PodReplaced;
        for problem in &mut one.problems {
            let (now, then) = (now.clone(), then.clone());
            *problem.cause = MatchingCause::PodRecreated { now, then }.into();
        }
    }
    Vec::new()
}
