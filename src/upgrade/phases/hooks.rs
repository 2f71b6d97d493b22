//! Commands of the user around a window, such as for a load balancer: `--before` and `--after`.

use std::time::{Duration, Instant};

use crate::model::problem::{CommandCause, HookCause};
use crate::model::{Exit, Problem};
use crate::upgrade::ledger::Ledger;
use crate::upgrade::phases::command;
use crate::upgrade::phases::command::Started;
use crate::window::event::Event;

/// How long `--after` may take: kubelet runs again, and the window is still open.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs `--before`; if it fails, nothing is changed.
pub(crate) fn before(hook: Option<&str>, ledger: &Ledger) -> Result<(), Problem> {
    let Some(hook) = hook else { return Ok(()) };
    match run(hook, &[], ledger, &mut || true) {
        None => Ok(()),
        Some(cause) => Err(HookCause::BeforeFailed { cause }.error(hook)),
    }
}

/// Runs `--after`, with the window's exit code; its failure changes nothing about the pods.
pub(crate) fn after(hook: Option<&str>, end: Exit, ledger: &Ledger) -> Option<Problem> {
    let (hook, end) = (hook?, (end as u8).to_string());
    let variables = [("NETFIX_VERDICT", end.as_str())];
    let begin = Instant::now();
    let in_time = &mut || begin.elapsed() < LIMIT;
    let cause = run(hook, &variables, ledger, in_time)?;
    let problem = HookCause::AfterFailed { cause }.warning(hook);
    ledger.session.log(&Event::Failed(problem.clone()));
    Some(problem)
}

/// Returns why it failed.
fn run(
    hook: &str,
    variables: &[(&str, &str)],
    ledger: &Ledger,
    meanwhile: &mut dyn FnMut() -> bool,
) -> Option<CommandCause> {
    let Ledger {
        session, signals, ..
    } = ledger;
    let command = hook.to_owned();
    session.log(&Event::RunningHook { command });
    let argv = ["sh", "-c", hook].map(str::to_owned);
    let mut all = vec![("NETFIX_WINDOW", session.window().id.as_str())];
    all.extend(variables);
    let started = Started::start(&argv, &all, session.log_file());
    command::failure(&started.wait(signals, meanwhile))
}
