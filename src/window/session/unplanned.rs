//! What the record of a window has that began with a loss.

use crate::clock;
use crate::model::window::{Phase, PhaseName, WindowKind};
use crate::runtime::Sandbox;
use crate::window::event::{Event, TARGET};
use crate::window::session::WindowSession;

impl WindowSession {
    /// The window begins with this loss (`CLOCK_BOOTTIME`, milliseconds).
    pub(crate) fn note_loss(&mut self, since: u64, event: &Event) {
        log::warn!(target: TARGET, PHASE = PhaseName::Loss.to_string().as_str(); "{event}");
        let window = &mut self.window;
        window.kind = Some(WindowKind::Unplanned);
        let ago = window.started_boottime.saturating_sub(since);
        window.started = clock::wall_before(ago);
        window.started_boottime -= ago;
        self.log_file.begin(PhaseName::Loss, event);
        self.window.phases.push(Phase {
            to: Some(self.now()),
            ok: Some(true),
            ..Phase::begun(PhaseName::Loss, 0)
        });
    }

    /// The sandboxes of the pods before kubelet could rebuild one in this window.
    pub(crate) fn note_fingerprints(&mut self, sandboxes: &[Sandbox]) {
        for pod in &mut self.window.pods {
            let sandbox = pod.info.sandbox.as_ref();
            let own = sandboxes.iter().find(|one| sandbox == Some(&one.id));
            pod.fingerprint_before = own.map(Sandbox::fingerprint);
        }
    }
}
