//! The query of the container runtimes on which only messages depend.

use crate::inventory::kubelet_endpoint;
use crate::model::{PodInfo, Problem};
use crate::records::rejected::Rejected;
use crate::records::survey::{Finding, Surveyed, mark_private};
use crate::runtime::RuntimeConfig;

impl Surveyed {
    /// Finds what only a runtime knows: the pods that have the names of rejected records now, and the namespaces without an
    /// interface that belong to no pod. To be called when all other work is done: pods must not wait for a runtime.
    ///
    /// Uses the answer by which the pods were named; only if no runtime was needed for that, they are queried now.
    /// `restored` are the pods with a record that are no longer among the matched ones. Returns the warnings.
    pub(crate) fn learn_from_runtimes(
        &mut self,
        restored: &[&PodInfo],
        runtimes: &RuntimeConfig,
    ) -> Vec<Problem> {
        let has_gone = self.rejected.iter().any(Rejected::may_have_successor);
        let mut unmatched = self.unmatched.iter();
        let has_bare = unmatched.any(|one| one.finding == Finding::Bare);
        let answer = match self.answer.take() {
            // It has shown already which namespaces belong to no pod.
            Some(answer) => answer,
            None if !has_gone && !has_bare => return Vec::new(),
            None => match kubelet_endpoint::query(runtimes) {
                Ok(answer) => {
                    if has_bare {
                        let matched = self.matched.iter().map(|one| &one.info);
                        let known: Vec<_> = matched.chain(restored.iter().copied()).collect();
                        answer.introduce(self.unmatched.iter_mut().map(|one| &mut one.pod));
                        mark_private(&mut self.unmatched, &known, Some(&answer));
                    }
                    answer
                }
                // Without an answer the findings stay; only the names of the records are missed.
                Err(problems) if has_gone => {
                    return problems.into_iter().map(Problem::demoted).collect();
                }
                Err(_) => return Vec::new(),
            },
        };
        for one in &mut self.rejected {
            if one.may_have_successor() {
                one.find_successor(&answer);
            }
        }
        Vec::new()
    }
}
