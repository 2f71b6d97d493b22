//! Records that are not used, and why.

use std::collections::BTreeSet;

use crate::inventory::observe::Pod;
use crate::model::problem::{Cause, MatchingCause};
use crate::model::{Bytes, PodId, PodInfo, PodSummary, Problem, Severity};
use crate::runtime::RuntimeAnswer;

/// A record that is not used.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub pod: PodSummary,
    pub reason: Reason,
}

/// Why a record is not used.
#[derive(Debug)]
pub(crate) enum Reason {
    OtherMachine,
    /// It is from before the last boot.
    OtherBoot,
    /// By this cause its namespace is gone, or may be another one.
    NetnsGone(Cause),
    /// Another namespace is at its path.
    NetnsReplaced,
    /// Its namespace cannot be entered, which is reported with the namespaces.
    NetnsClosed,
    /// This pod has its namespace.
    PodReplaced(PodInfo),
    /// Its namespace is gone, and this pod has its name.
    PodRecreated(PodInfo),
    /// It names no interface that netfix can use; with the problems of its entries.
    Unusable(Vec<Problem>),
}

/// Which pods that are gone are no failure: pods are deleted every day.
#[derive(Debug)]
pub(super) struct GoneRule {
    /// Whether a container runtime was queried for the pods that run.
    pub was_queried: bool,
    /// Pods that must not be gone: the user named them.
    pub missed: BTreeSet<PodId>,
}

impl GoneRule {
    pub(super) fn new(answer: Option<&RuntimeAnswer>) -> Self {
        Self {
            was_queried: answer.is_some_and(|answer| !answer.queried.is_empty()),
            missed: BTreeSet::new(),
        }
    }
}

impl Rejected {
    /// The problems that it is.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let then = self.pod.info.clone();
        let cause = match &self.reason {
            Reason::OtherMachine => MatchingCause::OtherMachine.into(),
            Reason::OtherBoot => MatchingCause::OtherBoot.into(),
            Reason::NetnsGone(cause) => cause.clone(),
            Reason::NetnsReplaced => MatchingCause::NetnsReplaced.into(),
            Reason::NetnsClosed => return Vec::new(),
            Reason::PodReplaced(now) => {
                let now = now.clone();
                MatchingCause::PodReplaced { now, then }.into()
            }
            Reason::PodRecreated(now) => {
                let now = now.clone();
                MatchingCause::PodRecreated { now, then }.into()
            }
            Reason::Unusable(problems) => return problems.clone(),
        };
        let netns = self.pod.netns.as_ref().map(Bytes::to_string);
        let problem = Problem::new(Severity::Error, netns.unwrap_or_default(), cause);
        vec![problem.of(&self.pod.info.id)]
    }

    /// Whether its namespace, and with it its pod, is known not to exist any more. Where only a path is known, that takes a
    /// runtime that `was_queried`.
    pub(super) fn is_gone(&self, was_queried: bool) -> bool {
        match &self.reason {
            Reason::NetnsReplaced | Reason::PodReplaced(_) | Reason::PodRecreated(_) => true,
            Reason::NetnsGone(Cause::Matching(cause)) => match cause {
                MatchingCause::NetnsGone => true,
                MatchingCause::NoPodAtPath => was_queried,
                _ => false,
            },
            Reason::NetnsGone(_)
            | Reason::OtherMachine
            | Reason::OtherBoot
            | Reason::NetnsClosed
            | Reason::Unusable(_) => false,
        }
    }

    /// Whether it is the first of the records that may all be of one pod.
    pub(super) fn is_first_of_its_pod(&self) -> bool {
        match &self.reason {
            Reason::NetnsGone(Cause::Matching(MatchingCause::AmbiguousCheckpoints { ids })) => {
                ids.first() == Some(&self.pod.info.id)
            }
            _ => true,
        }
    }

    /// Whether this running pod has its id, its name or its path.
    pub(super) fn is_of(&self, pod: &Pod) -> bool {
        let (then, now) = (&self.pod.info, &pod.info);
        let has_name = then.name.is_some() && then.namespace.is_some();
        let mut paths = pod.paths.iter();
        then.id == now.id
            || has_name && (&then.name, &then.namespace) == (&now.name, &now.namespace)
            || paths.any(|path| self.pod.netns == Some(path.clone().into()))
    }

    /// Whether a pod that was recreated may have its name now.
    pub(super) fn may_have_successor(&self) -> bool {
        let is_gone = matches!(self.reason, Reason::NetnsGone(_) | Reason::NetnsReplaced);
        is_gone && self.pod.info.sandbox.is_some()
    }

    /// Finds the pod that has the record's name now, as a `StatefulSet`'s has when it is recreated.
    pub(super) fn find_successor(&mut self, answer: &RuntimeAnswer) {
        let then = &self.pod.info;
        let successor = answer.sandboxes.iter().find(|now| {
            then.name.is_some()
                && now.name.as_deref().map(Bytes::from) == then.name
                && now.namespace == then.namespace
                && then.sandbox.as_ref() != Some(&now.id)
        });
        if let Some(now) = successor {
            self.reason = Reason::PodRecreated(now.info(then.id.clone()));
        }
    }
}
