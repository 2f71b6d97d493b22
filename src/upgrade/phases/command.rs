//! Commands of the user: COMMAND, the rollback, and those around the window.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::inventory::procfs;
use crate::model::problem::{CommandCause, HookCause};
use crate::model::window::Run;
use crate::model::{Exit, Problem};
use crate::upgrade::phases::watch;
use crate::upgrade::phases::watch::{LinkLosses, Losses};
use crate::upgrade::signals::Signals;
use crate::window::event::Event;
use crate::window::session::WindowSession;
use crate::window::window_log::WindowLog;

/// How often netfix checks whether COMMAND has ended.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long `--after` may take: kubelet runs again, and the window is still open.
const LIMIT: Duration = Duration::from_secs(300);

/// What happens while COMMAND runs, and must be on disk before netfix may die.
pub(crate) enum CommandProgress<'a> {
    Started(&'a Run),
    /// More links of the host are lost.
    Lost(&'a LinkLosses),
}

/// Runs COMMAND or the rollback; returns it with its end, and all links of the host that were lost meanwhile.
pub(crate) fn run(
    argv: &[String],
    id: &str,
    log: &WindowLog,
    signals: &Signals,
    report: &mut dyn FnMut(CommandProgress<'_>),
) -> (Run, LinkLosses) {
    let losses = watch::losses();
    let mut seen = 0;
    let started = Started::start(argv, &[("NETFIX_WINDOW", id)], log);
    report(CommandProgress::Started(&started.run));
    let run = started.wait(signals, &mut || {
        log.trim();
        let lost = losses.as_ref().map(Losses::seen).unwrap_or_default();
        if lost.len() > std::mem::replace(&mut seen, lost.len()) {
            report(CommandProgress::Lost(&lost));
        }
        true
    });
    (run, losses.map(Losses::end).unwrap_or_default())
}

/// A command of the user while it runs.
struct Started {
    run: Run,
    child: Option<Child>,
}

impl Started {
    /// Starts COMMAND without input and with these variables in its environment, in a new process group: a terminal's Ctrl-C
    /// reaches it through netfix only.
    fn start(argv: &[String], variables: &[(&str, &str)], log: &WindowLog) -> Self {
        let mut run = Run::new(argv);
        let Some((program, arguments)) = argv.split_first() else {
            return Self { run, child: None };
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(variables.iter().copied())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.output())
            .stderr(log.output());
        let child = match command.spawn() {
            Ok(child) => {
                run.process = procfs::process(child.id());
                Some(child)
            }
            Err(error) => {
                run.error = Some(error.to_string());
                None
            }
        };
        Self { run, child }
    }

    /// Waits for its end and passes signals on to it; calls `meanwhile` often, and kills it once that returns false.
    fn wait(mut self, signals: &Signals, meanwhile: &mut dyn FnMut() -> bool) -> Run {
        if let Some(child) = &mut self.child {
            signals.pass_on_to(Some(child.id()));
            match wait(child, meanwhile) {
                Ok(status) => (self.run.exit, self.run.signal) = (status.code(), status.signal()),
                Err(error) => self.run.error = Some(error.to_string()),
            }
            signals.pass_on_to(None);
        }
        self.run
    }
}

fn wait(child: &mut Child, meanwhile: &mut dyn FnMut() -> bool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !meanwhile() {
            // With its own children, which would keep the log open.
            let group = Pid::from_raw(child.id().cast_signed());
            let _ = killpg(group, Signal::SIGKILL);
        }
        thread::sleep(INTERVAL);
    }
}

/// Why COMMAND failed; `None` when it succeeded.
pub(crate) fn failure(run: &Run) -> Option<CommandCause> {
    Some(match (run.exit, run.signal, &run.error) {
        (Some(0), ..) => return None,
        (Some(code), ..) => CommandCause::Exited { code },
        (None, Some(signal), _) => CommandCause::Killed { signal },
        (None, None, Some(error)) => CommandCause::NotStarted {
            error: error.clone(),
        },
        (None, None, None) => CommandCause::EndUnknown,
    })
}

/// Runs `--before`; if it fails, nothing is changed.
pub(crate) fn before(
    hook: Option<&str>,
    session: &WindowSession,
    signals: &Signals,
) -> Result<(), Problem> {
    let Some(hook) = hook else { return Ok(()) };
    match run_hook(hook, &[], session, signals, &mut || true) {
        None => Ok(()),
        Some(cause) => Err(HookCause::BeforeFailed { cause }.error(hook)),
    }
}

/// Runs `--after`, with the window's exit code; its failure changes nothing about the pods.
pub(crate) fn after(
    hook: Option<&str>,
    end: Exit,
    session: &WindowSession,
    signals: &Signals,
) -> Option<Problem> {
    let (hook, end) = (hook?, (end as u8).to_string());
    let variables = [("NETFIX_VERDICT", end.as_str())];
    let begin = Instant::now();
    let in_time = &mut || begin.elapsed() < LIMIT;
    let cause = run_hook(hook, &variables, session, signals, in_time)?;
    Some(HookCause::AfterFailed { cause }.warning(hook))
}

/// Runs a command of the user around a window, such as for a load balancer; returns why it failed.
fn run_hook(
    hook: &str,
    variables: &[(&str, &str)],
    session: &WindowSession,
    signals: &Signals,
    meanwhile: &mut dyn FnMut() -> bool,
) -> Option<CommandCause> {
    let command = hook.to_owned();
    session.log(&Event::RunningHook { command });
    let argv = ["sh", "-c", hook].map(str::to_owned);
    let mut all = vec![("NETFIX_WINDOW", session.window().id.as_str())];
    all.extend(variables);
    let started = Started::start(&argv, &all, &session.log_file);
    failure(&started.wait(signals, meanwhile))
}
