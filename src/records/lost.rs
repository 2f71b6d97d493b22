//! Of the pods without a usable record: which are gone, and which run and cannot be restored.

use crate::model::problem::MatchingCause;
use crate::model::{PodInfo, PodSummary, Problem, Severity};
use crate::records::rejected::{GoneRule, Rejected};
use crate::records::survey::{Finding, Surveyed, Unmatched};

/// Why nothing of a pod can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrestorable {
    Unusable,
    NoCheckpoint,
    /// It reaches nothing, and no record shows what it lacks.
    CutOff,
}

impl Unmatched {
    /// Whether it has links beside the loopback device, as far as they could be read.
    pub(crate) fn has_interfaces(&self) -> bool {
        self.state.links_but_loopback().next().is_some()
    }

    /// Whether it was read and has no such link.
    pub(crate) fn is_bare(&self) -> bool {
        !self.state.links.is_empty() && !self.has_interfaces()
    }

    pub(crate) fn problem(&self) -> Option<Problem> {
        let path = self.pod.netns.shown();
        let problem = match &self.finding {
            Finding::Private | Finding::Nothing => return None,
            Finding::Bare => MatchingCause::BareWithoutCheckpoint.error(path),
            Finding::HasInterfaces => MatchingCause::WithoutCheckpoint.warning(path),
            Finding::CutOff(what) => what.problem(),
        };
        Some(problem.of(&self.pod.info.id))
    }
}

impl Surveyed {
    /// Whether the pod of a record is known to be gone, and may be.
    pub(crate) fn is_gone(&self, one: &Rejected) -> bool {
        let GoneRule {
            was_queried,
            missed,
        } = &self.gone;
        one.is_gone(*was_queried) && !missed.contains(&one.pod.info.id)
    }

    /// The pods of records that are known to be gone, and may be.
    pub(crate) fn gone_pods(&self) -> impl Iterator<Item = &PodInfo> {
        let gone = self.rejected.iter().filter(|one| self.is_gone(one));
        gone.map(|one| &one.pod.info)
    }

    /// Whether there is something to compare and to restore: pods that run, the whole host, or the host under pods that are gone.
    pub(crate) fn has_work(&self) -> bool {
        !self.matched.is_empty() || self.baseline.is_whole || self.has_only_gone()
    }

    /// Whether every record is about a pod that is gone. Then the host is restored, and nothing else is missing.
    pub(crate) fn has_only_gone(&self) -> bool {
        let is_readable = self.damaged.is_empty() && self.damaged_files == 0;
        self.matched.is_empty()
            && is_readable
            && !self.rejected.is_empty()
            && self.rejected.iter().all(|one| self.is_gone(one))
    }

    /// Why it is unknown whose pod some records are about.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = Problem> {
        let rejected = self.rejected.iter().filter(|one| !self.is_gone(one));
        rejected.flat_map(Rejected::problems)
    }

    /// The problems of the pods that reach nothing, and of which no record shows what they lack.
    pub(crate) fn cut_off(&self) -> impl Iterator<Item = Problem> {
        let young = self.unmatched.iter();
        let young = young.filter(|one| matches!(one.finding, Finding::CutOff(_)));
        young.filter_map(Unmatched::problem)
    }

    /// The pods of which nothing can be restored, each once.
    pub(crate) fn lost_pods(&self) -> Vec<(PodSummary, Unrestorable)> {
        let mut rejected: Vec<&Rejected> = self.rejected.iter().collect();
        rejected.retain(|one| !self.is_gone(one) && one.is_first_of_its_pod());
        let mut lost = Vec::new();
        for one in &rejected {
            lost.push((one.pod.clone(), Unrestorable::Unusable));
        }
        // A file that cannot be read is of a running pod only if one has its id; any other is a problem alone.
        for info in &self.damaged {
            if self.unmatched.iter().any(|one| one.pod.info.id == info.id) {
                lost.push((PodSummary::bare(info, None), Unrestorable::Unusable));
            }
        }
        for Unmatched { pod, finding, .. } in &self.unmatched {
            let is_listed = rejected.iter().any(|one| one.is_of(pod))
                || self.damaged.iter().any(|info| info.id == pod.info.id);
            let why = match finding {
                _ if is_listed => continue,
                Finding::Bare => Unrestorable::NoCheckpoint,
                Finding::CutOff(_) => Unrestorable::CutOff,
                Finding::Private | Finding::Nothing | Finding::HasInterfaces => continue,
            };
            let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
            lost.push((summary, why));
        }
        lost
    }

    /// Everything to report beside the pods that have a record.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let mut all = self.problems.clone();
        for one in &self.rejected {
            let is_gone = self.is_gone(one);
            all.extend(one.problems().into_iter().map(|problem| Problem {
                severity: if is_gone {
                    Severity::Info
                } else {
                    problem.severity
                },
                ..problem
            }));
        }
        all.extend(self.contested.iter().cloned());
        all.extend(self.unmatched.iter().filter_map(Unmatched::problem));
        all
    }
}
