//! The pods that reach nothing, of those without a good record: judged by their present state.

use crate::inventory::visit::{confirm, visit};
use crate::model::{CutOff, HostSide, NetState};
use crate::plan::cut_off;
use crate::records::matched::Matched;
use crate::records::survey::{Finding, Surveyed, Unmatched};

impl Surveyed {
    /// Finds which of the pods without a record reach nothing.
    pub(crate) fn find_cut_off(&mut self) {
        let Self {
            host, unmatched, ..
        } = self;
        let mut young: Vec<&mut Unmatched> = unmatched.iter_mut().collect();
        young.retain(|one| matches!(one.finding, Finding::HasInterfaces | Finding::CutOff(_)));
        let states = visit(&mut young, |one| one.pod.observe_inside(host));
        let side = HostSide::new(&host.state);
        for (one, state) in young.into_iter().zip(states) {
            // Of one that cannot be read, or not whole, nothing is known.
            let found = state.ok().and_then(Result::ok);
            let found = found.and_then(|state| cut_off(&state, &side));
            one.finding = found.map_or(Finding::HasInterfaces, Finding::CutOff);
        }
    }

    /// Looks again at those that were found.
    pub(crate) fn confirm_cut_off(&mut self) {
        // What was kept for several purposes is not read again.
        let is_kept = self.unmatched.iter().any(|one| one.pod.kept().is_some());
        if self.cut_off().next().is_some() && !is_kept {
            confirm(|| {
                let refreshed = self.host.refresh();
                self.find_cut_off();
                refreshed.is_ok() && self.cut_off().next().is_some()
            });
        }
    }
}

impl Matched {
    /// Why the pod reaches nothing, if it did so already when it was recorded.
    pub(crate) fn cut_off(&self, now: &NetState, host: &HostSide<'_>) -> Option<CutOff> {
        let own = self.checkpoint.netfix.as_ref()?;
        own.cut_off.then(|| cut_off(now, host))?
    }
}
