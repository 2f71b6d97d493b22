//! What the record of a window has that began with a loss.

use std::collections::BTreeSet;

use crate::clock;
use crate::model::window::{Phase, PhaseName, WindowKind};
use crate::model::{Exit, PodId, Problem};
use crate::records::stored::Stored;
use crate::runtime::Sandbox;
use crate::window::event::{Event, TARGET};
use crate::window::fates;
use crate::window::rebuild_check::After;
use crate::window::session::WindowSession;

impl WindowSession {
    /// The window begins with this loss (`CLOCK_BOOTTIME`, milliseconds).
    pub(crate) fn note_loss(&mut self, since: u64, event: &Event) {
        log::warn!(target: TARGET, PHASE = PhaseName::Loss.to_string().as_str(); "{event}");
        self.note_begin(WindowKind::Unplanned, since);
        self.log_file.begin(PhaseName::Loss, event);
        self.window.phases.push(Phase {
            to: Some(self.now()),
            ok: Some(true),
            ..Phase::begun(PhaseName::Loss, 0)
        });
    }

    /// A window of this kind began at this moment (`CLOCK_BOOTTIME`, milliseconds).
    pub(crate) fn note_begin(&mut self, kind: WindowKind, since: u64) {
        let window = &mut self.window;
        window.kind = Some(kind);
        let ago = window.started_boottime.saturating_sub(since);
        window.started = clock::wall_before(ago);
        window.started_boottime -= ago;
    }

    /// The pods that their runtime was tearing down.
    pub(crate) fn note_torn(&mut self, torn: &BTreeSet<PodId>) {
        let now = self.now();
        fates::note_gone(&mut self.window, |id| torn.contains(id), now);
    }

    /// The watch after the restore is over: what happened to each pod, beside the problems of asking that; returns all problems.
    pub(crate) fn note_watched(
        &mut self,
        (after, mut problems): (After, Vec<Problem>),
        stored: &Stored,
    ) -> Vec<Problem> {
        let pods = self.window.pods.iter();
        let torn = pods.filter(|pod| pod.gone.is_some());
        let torn = torn.map(|pod| pod.info.id.clone()).collect();
        problems.extend(fates::note(&mut self.window, after, stored, &torn));
        let before = self.window.phases.last().and_then(|phase| phase.to);
        let now = self.now();
        self.window.phases.push(Phase {
            to: Some(now),
            ok: Some(!problems.iter().any(Problem::is_error)),
            ..Phase::begun(PhaseName::RebuildCheck, before.unwrap_or(now))
        });
        self.window.ended = Some(now);
        if problems.iter().any(Problem::is_error) && self.window.exit == Some(Exit::Done as u8) {
            self.window.exit = Some(Exit::Partly as u8);
        }
        self.window.problems.extend_from_slice(&problems);
        problems
    }

    /// The sandboxes of the pods before kubelet could rebuild one in this window, as they were before the loss that began it.
    pub(crate) fn note_fingerprints(&mut self, sandboxes: &[Sandbox]) {
        let began = self.window.started_boottime;
        let is_loss = self.window.is_unplanned();
        for pod in &mut self.window.pods {
            let sandbox = pod.info.sandbox.as_ref();
            let own = sandboxes.iter().find(|one| sandbox == Some(&one.id));
            let lost = pod.lost.filter(|_| is_loss);
            let lost = lost.map(|lost| fates::moment(began + lost).as_millisecond());
            pod.fingerprint_before = own.map(|own| match lost {
                Some(lost) => own.fingerprint_of(lost),
                None => own.fingerprint(),
            });
        }
    }
}
