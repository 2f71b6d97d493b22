//! Records that are not used, and why.

use crate::model::problem::{Cause, MatchingCause};
use crate::model::{Bytes, PodInfo, PodSummary, Problem, Severity};
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
