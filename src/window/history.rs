//! The record of a restore, and of a loss that was given up, outside of a window: the history of a node has everything that changed it.

use crate::clock;
use crate::model::Problem;
use crate::model::window::{KernelLog, Phase, PhaseName, WindowKind, WindowPod};
use crate::restore::{Restored, RestoredPod};
use crate::store::Store;
use crate::window::facts;
use crate::window::session::WindowSession;

/// The record of what a `netfix restore` did since `began` (milliseconds since the machine's boot), with the kernel's log; `None` where
/// it changed nothing, an open window has it, or it cannot be recorded, which is no failure of the restore.
pub(crate) fn of_restore(
    restored: &Restored,
    log: Option<KernelLog>,
    began: u64,
    store: &Store,
) -> Option<WindowSession> {
    if restored.is_unchanged() || !store.exists() {
        return None;
    }
    let mut session = open("restore", store)?;
    session.note_bare_restore(restored, began);
    session.note_problems(&restored.problems);
    session.note_kernel_log(log);
    Some(session)
}

/// The record of the losses of these pods, and with `problems` of no pod those of the host, that a person gave up since `began`.
pub(crate) fn of_accept(
    pods: Vec<WindowPod>,
    problems: &[Problem],
    began: u64,
    store: &Store,
) -> Option<WindowSession> {
    let mut session = open("snapshot", store)?;
    session.note_pods(pods);
    session.note_begin(WindowKind::Accept, began);
    session.note_phase(Phase {
        to: Some(clock::boottime().saturating_sub(began)),
        ok: Some(true),
        ..Phase::begun(PhaseName::Snapshot, 0)
    });
    session.note_problems(problems);
    Some(session)
}

/// A record that is closed with its end, where no window is open.
fn open(command: &str, store: &Store) -> Option<WindowSession> {
    let guard = store.lock(command).ok()?;
    store.unclosed_window().ok()?.is_none().then_some(())?;
    let id = store.free_window_id(&clock::id()).ok()?;
    let number = store.next_window_number().ok()?;
    Some(WindowSession::visit(
        facts::opened(id, number, command),
        guard,
    ))
}

impl WindowSession {
    fn note_bare_restore(&mut self, restored: &Restored, began: u64) {
        let is_part = |pod: &&RestoredPod| !pod.done.is_empty() || !pod.state.is_good();
        let pods = restored.pods.iter().filter(is_part);
        let pods = pods.map(|pod| {
            let before = pod.pod.interfaces.clone();
            WindowPod::new(pod.pod.info.clone(), before)
        });
        self.note_pods(pods.collect());
        self.note_begin(WindowKind::Restore, began);
        self.note_phase(Phase {
            to: Some(clock::boottime().saturating_sub(began)),
            ok: Some(restored.is_complete()),
            ..Phase::begun(PhaseName::Restore, 0)
        });
        self.note_restored(restored);
    }
}
