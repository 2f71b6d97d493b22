//! Pods of which nothing is written, or a record that is not known to be a good one.

use super::{Decider, summary};
use crate::model::checkpoint::Extension;
use crate::model::problem::SnapshotCause;
use crate::model::{
    Bytes, Loss, NetState, NetnsIdentity, PodId, PodInfo, PodSummary, Problem, interfaces,
};
use crate::plan::cut_off;
use crate::snapshot::changes::{PodChange, PodDecision};
use crate::snapshot::facts::GoodRecord;

impl Decider<'_> {
    /// A pod that could not be read: what is stored stays.
    pub(super) fn unread(
        &self,
        info: &PodInfo,
        path: &Bytes,
        identity: &NetnsIdentity,
    ) -> PodDecision {
        let good = self.stored.good(&self.moment.node, identity, info);
        let own = good.map(|good| good.own);
        PodDecision {
            pod: PodSummary {
                interfaces: own.map_or_else(Vec::new, |own| interfaces(&own.state)),
                created: own.map(|own| own.created.clone()),
                ..summary(info, path)
            },
            change: PodChange::Unread,
        }
    }

    /// A pod of which nothing is written, because something is missing that no record describes.
    pub(super) fn unrecorded(
        &mut self,
        info: &PodInfo,
        path: &Bytes,
        cause: SnapshotCause,
        change: PodChange,
    ) -> PodDecision {
        self.problems.push(cause.error(path.to_string()));
        let pod = summary(info, path);
        PodDecision { pod, change }
    }

    /// A pod whose loss a person accepts: a generation keeps what it had.
    pub(super) fn give_up(&mut self, Loss { link, what }: Loss, good: GoodRecord<'_>) {
        let generation = good.generation;
        self.problems
            .push(SnapshotCause::GivenUp { what, generation }.info(link));
    }

    /// Gives up the earlier answers of silent neighbours, where a person accepts that.
    pub(super) fn give_up_silent(&mut self, pod: &PodId) {
        if self.stored.has_silent(Some(pod), &self.moment.answers) && self.accepted.takes(pod) {
            self.accepted.silent.push(Some(pod.clone()));
            self.problems
                .push(SnapshotCause::AnswersGivenUp.info("gateways"));
        }
    }

    /// A pod that has lost something: its good checkpoint stays.
    pub(super) fn lost(
        &mut self,
        info: &PodInfo,
        path: &Bytes,
        Loss { link, what }: Loss,
        good: GoodRecord<'_>,
    ) -> PodDecision {
        let generation = good.generation;
        let problem = SnapshotCause::Lost { what, generation }.error(link);
        self.kept(info, path, problem, good.own)
    }

    /// A pod whose good checkpoint stays, and why.
    pub(super) fn kept(
        &mut self,
        info: &PodInfo,
        path: &Bytes,
        problem: Problem,
        good: &Extension,
    ) -> PodDecision {
        self.problems.push(problem);
        PodDecision {
            pod: PodSummary {
                interfaces: interfaces(&good.state),
                created: Some(good.created.clone()),
                ..summary(info, path)
            },
            change: PodChange::Lost,
        }
    }

    /// What a pod of which no good record is known lacks of libcni's result for it, unless a person accepts that.
    pub(super) fn lacked(
        &mut self,
        pod: &PodId,
        lacks: Option<Loss>,
        good: Option<&GoodRecord<'_>>,
    ) -> Option<Loss> {
        let is_known = good.is_some_and(|good| !good.own.cut_off);
        lacks.filter(|_| !is_known && !self.accepted.takes(pod))
    }

    /// A pod that is not as libcni's result describes it.
    pub(super) fn incomplete(
        &mut self,
        info: &PodInfo,
        path: &Bytes,
        Loss { link, what }: Loss,
    ) -> PodDecision {
        self.problems
            .push(SnapshotCause::Incomplete { what }.error(link));
        PodDecision {
            pod: summary(info, path),
            change: PodChange::Incomplete,
        }
    }

    /// Whether a pod of which no good record is known is cut off, and no person accepts that.
    pub(super) fn is_cut_off(
        &mut self,
        info: &PodInfo,
        identity: &NetnsIdentity,
        state: &NetState,
    ) -> bool {
        let good = self.stored.good(&self.moment.node, identity, info);
        if good.is_some_and(|good| !good.own.cut_off) {
            return false;
        }
        let Some(what) = cut_off(state, &self.host) else {
            return false;
        };
        let is_accepted = self.accepted.takes(&info.id);
        self.problems.push(if is_accepted {
            SnapshotCause::CutOffAccepted { why: what.why }.info(what.link)
        } else {
            what.problem()
        });
        !is_accepted
    }
}
