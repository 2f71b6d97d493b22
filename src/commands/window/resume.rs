//! `netfix resume`: kubelet runs again, whoever paused it and whatever became of them.

use super::{Keeper, is_kept, is_of_other_boot, systemd};
use crate::commands::session::node_view;
use crate::commands::{Context, Early, Exit, Outcome};
use crate::model::{Code, Problem, Window};
use crate::observe;

const COMMAND: &str = "resume";

pub(in crate::commands) fn run(context: &mut Context) -> Result<Outcome, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let none = || {
        let message = "no window is open: netfix has paused nothing";
        Outcome {
            problems: vec![Problem::info(Code::NotFound, "window", message)],
            node: node_view(),
            ..Outcome::default()
        }
    };
    // Who has never written anything down has paused nothing either, and no folder is made for that.
    if !context.store.has_window_file() {
        return Ok(none());
    }
    let guard = context.store.lock(COMMAND).map_err(|error| refuse(error.problem()))?;
    // Somebody may have closed it before the lock was had.
    let open = context.store.open_window().map_err(|error| refuse(error.problem()))?;
    let Some(window) = open else { return Ok(none()) };
    let outcome = if is_kept(&window) {
        let mut keeper = Keeper::visit(window, &context.store, guard);
        let (problem, _) = keeper.end_hold();
        answer(&keeper.window, problem.into_iter().collect())
    } else {
        finish(Keeper::take_over(window, &context.store, guard, false))
    };
    Ok(Outcome { node: node_view(), ..outcome })
}

/// Ends what a window still holds, and the window too.
fn finish(mut keeper: Keeper) -> Outcome {
    let (problem, is_ended) = keeper.end_hold();
    let mut problems: Vec<Problem> = problem.into_iter().collect();
    if !is_ended {
        let window = keeper.window.clone();
        keeper.forget();
        return answer(&window, problems);
    }
    // A pause has no other end than this; anything else was to do more.
    let exit = if keeper.window.command == "pause" { Exit::Done } else { Exit::Failed };
    let (window, trouble) = keeper.close(exit.code(), Some(COMMAND));
    problems.extend(trouble);
    answer(&window, problems)
}

fn answer(window: &Window, problems: Vec<Problem>) -> Outcome {
    let exit = if problems.iter().any(Problem::is_error) { Exit::Failed } else { Exit::Done };
    Outcome { exit, problems, extra: Some(super::view(window, None)), ..Outcome::default() }
}

impl Keeper {
    /// Lets the unit run again that the window holds, unless that was done; whether it runs as it did before.
    fn end_hold(&mut self) -> (Option<Problem>, bool) {
        if self.window.hold.is_none() || is_of_other_boot(&self.window, &observe::node_identity()) {
            return (None, true);
        }
        if !self.window.is_holding() {
            // Whoever has resumed it may have died before the deadline was ended.
            let bus = systemd().ok().flatten();
            return (bus.and_then(|bus| self.disarm(&bus).err()), true);
        }
        let bus = match systemd() {
            Ok(Some(bus)) => bus,
            Ok(None) => {
                let message = "this machine is not run by systemd";
                return (Some(Problem::error(Code::SystemdUnreachable, "", message)), false);
            }
            Err(problem) => return (Some(problem), false),
        };
        match self.resume(&bus) {
            Ok(()) => (None, true),
            Err(problem) => {
                let runs = !problem.is_error();
                (Some(problem), runs)
            }
        }
    }

    /// Ends a window whose process died: kubelet runs, the record stays.
    pub(in crate::commands) fn finish_abandoned(mut self, by: &str) -> Vec<Problem> {
        let (problem, _) = self.end_hold();
        let mut problems: Vec<Problem> = problem.into_iter().collect();
        problems.extend(self.close(Exit::Failed.code(), Some(by)).1);
        problems
    }

    /// Closes a window in which nothing was done but trying to pause.
    pub(in crate::commands) fn abandon(self) -> Vec<Problem> {
        if self.window.is_holding() {
            // It could not be resumed: the next process is to know.
            return Vec::new();
        }
        self.close(Exit::Refused.code(), None).1
    }
}
