//! Starts kubelet again, even if the netfix that paused it is gone.

use crate::context::Context;
use crate::kubelet::kubelet_pause;
use crate::model::problem::{KubeletCause, WindowCause};
use crate::model::{Exit, Problem, Window};
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::session::{WindowSession, is_of_other_boot, is_owner_alive};
use crate::window::window_status::WindowStatus;

const COMMAND: &str = "resume";

/// What came of the resume.
pub(crate) struct Resumed {
    /// The window; `None` where none was open.
    pub status: Option<WindowStatus>,
    /// Whether kubelet runs, and a pod of the window is lost or was rebuilt.
    pub has_lost: bool,
    pub problems: Vec<Problem>,
}

pub(crate) fn run(config: &RuntimeConfig, context: &mut Context) -> Result<Resumed, Refusal> {
    let none = || Resumed {
        status: None,
        has_lost: false,
        problems: vec![WindowCause::NothingPaused.info("window")],
    };
    // Without a record nothing is paused, and no folder is created for the lock.
    if !context.store.has_window_file() {
        return Ok(none());
    }
    let guard = context.store.lock(COMMAND)?;
    // Another process may have closed it before this one had the lock.
    let Some(window) = context.store.open_window()? else {
        return Ok(none());
    };
    let (window, problems, has_lost) = if is_owner_alive(&window) {
        let mut session = WindowSession::visit(window, guard);
        let (problems, _) = session.end_pause();
        (session.leave(), problems, false)
    } else {
        let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
        end_abandoned(session, config, context)
    };
    Ok(Resumed {
        status: Some(WindowStatus::new(window, None)),
        has_lost,
        problems,
    })
}

/// Observes the pods, starts kubelet, and closes the window; returns whether kubelet runs and pods are lost.
fn end_abandoned(
    mut session: WindowSession,
    config: &RuntimeConfig,
    context: &mut Context,
) -> (Window, Vec<Problem>, bool) {
    let observed = session.observe_pods(config, &context.store);
    let (mut problems, runs) = session.end_pause();
    let observed = observed.map(|observed| session.note_pods(observed, config, context));
    let of_pods = observed.unwrap_or_default();
    let has_lost = of_pods.iter().any(Problem::is_error);
    problems.extend(of_pods);
    if !runs {
        session.save_if_possible();
        return (session.leave(), problems, false);
    }
    // The end of a pause is this; any other window was to do more.
    let end = match session.window.command.as_str() {
        "pause" => Exit::Done,
        _ if has_lost => Exit::Partly,
        _ => Exit::Failed,
    };
    let (window, failed) = session.close(end, Some(COMMAND));
    problems.extend(failed);
    (window, problems, has_lost)
}

impl WindowSession {
    /// Starts the paused unit again, unless that was done; returns whether it runs.
    fn end_pause(&mut self) -> (Vec<Problem>, bool) {
        if self.window.pause.is_none() || is_of_other_boot(&self.window) {
            return (Vec::new(), true);
        }
        let bus = kubelet_pause::systemd();
        if !self.window.is_paused() {
            // The process that resumed it may have died before it stopped the deadline.
            let bus = bus.ok().flatten();
            let left = bus.and_then(|bus| kubelet_pause::disarm(&bus, &self.window));
            return (left.into_iter().collect(), true);
        }
        let resumed = match bus {
            Ok(Some(bus)) => self.resume(&bus),
            Ok(None) => Err(KubeletCause::NoSystemd.error("")),
            Err(problem) => Err(problem),
        };
        match resumed {
            Ok(left) => (left.into_iter().collect(), true),
            Err(problem) => (vec![problem], false),
        }
    }

    /// Ends a window whose process died: kubelet runs, the record stays.
    pub(crate) fn finish_abandoned(mut self, by: &str) -> Vec<Problem> {
        let (mut problems, _) = self.end_pause();
        problems.extend(self.close(Exit::Failed, Some(by)).1);
        problems
    }

    /// Closes a window in which only a pause was tried.
    pub(crate) fn abandon(self) -> Vec<Problem> {
        // While the unit does not run, the window stays open for the next process.
        if self.window.is_paused() || !self.is_saved {
            self.leave();
            return Vec::new();
        }
        self.close(Exit::Refused, None).1
    }
}
