//! Commands of the user: COMMAND, the rollback, and those around the window.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::inventory::Inventory;
use crate::inventory::procfs;
use crate::inventory::sockets::connections::Translated;
use crate::model::problem::{CommandCause, HookCause};
use crate::model::window::Run;
use crate::model::{Exit, LinkGraph, Problem};
use crate::refusal::Refusal;
use crate::upgrade::baseline::Baseline;
use crate::upgrade::limit::TimeLimit;
use crate::upgrade::phases::termination::{Termination, Terms};
use crate::upgrade::phases::watch;
use crate::upgrade::phases::watch::{LinkLosses, Losses};
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals::Signals;
use crate::window::event::{Event, UserCommand};
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
    terms: &Terms<'_>,
    report: &mut dyn FnMut(CommandProgress<'_>),
) -> (Run, LinkLosses) {
    let losses = watch::losses();
    let mut seen = 0;
    let started = Started::start(argv, &[("NETFIX_WINDOW", id)], terms.log);
    report(CommandProgress::Started(&started.run));
    let run = started.wait(terms, &mut || {
        terms.log.trim();
        let lost = losses.as_ref().map(Losses::seen).unwrap_or_default();
        if lost.len() > std::mem::replace(&mut seen, lost.len()) {
            report(CommandProgress::Lost(&lost));
        }
    });
    (run, losses.map(Losses::end).unwrap_or_default())
}

/// The connections of the host and of pods that COMMAND may end: those over every device of the host, and over the links that the snapshot
/// has of the pods.
pub(crate) fn translated(
    request: &UpgradeRequest<'_>,
    baseline: &Baseline,
) -> Result<Translated, Refusal> {
    let inventory = Inventory::open(&request.selection)?;
    let host = &inventory.host.state;
    let devices = &LinkGraph::new(&host.links).devices() | &baseline.devices();
    let pods = inventory.pods.iter().filter_map(|pod| {
        let record = baseline
            .stored
            .record_of(&inventory.node, &pod.identity, &pod.info)?;
        Some((pod, &record.state))
    });
    Ok(Translated::read(host, &devices, pods))
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

    /// Waits for its end, passes signals on to it and ends it after its limit; calls `meanwhile` often.
    fn wait(mut self, terms: &Terms<'_>, meanwhile: &mut dyn FnMut()) -> Run {
        let Some(mut child) = self.child else {
            return self.run;
        };
        terms.signals.pass_on_to(terms.program, child.id());
        let mut termination = Termination::new(child.id(), terms);
        let mut status = None;
        while !termination.is_over(status.is_some()) {
            meanwhile();
            thread::sleep(INTERVAL);
            match child.try_wait() {
                Ok(ended) => status = ended,
                Err(error) => {
                    self.run.error = Some(error.to_string());
                    break;
                }
            }
        }
        terms.signals.pass_on_to_none();
        self.run.exit = status.and_then(|status| status.code());
        self.run.signal = status.and_then(|status| status.signal());
        self.run.timed_out = termination.timed_out();
        self.run
    }
}

/// Why COMMAND failed; `None` when it succeeded.
pub(crate) fn failure(run: &Run) -> Option<CommandCause> {
    let limit = run.timed_out.map(Duration::from_millis);
    Some(match (limit, run.exit, run.signal, &run.error) {
        (Some(limit), None, None, _) => CommandCause::NotEnded { limit },
        (Some(limit), ..) => CommandCause::TimedOut { limit },
        (None, Some(0), ..) => return None,
        (None, Some(code), ..) => CommandCause::Exited { code },
        (None, None, Some(signal), _) => CommandCause::Killed { signal },
        (None, None, None, Some(error)) => CommandCause::NotStarted {
            error: error.clone(),
        },
        (None, None, None, None) => CommandCause::EndUnknown,
    })
}

/// Runs `--before`; if it fails, nothing is changed.
pub(crate) fn before(
    hook: Option<&str>,
    session: &WindowSession,
    signals: &Signals,
) -> Result<(), Problem> {
    let Some(hook) = hook else { return Ok(()) };
    match run_hook(hook, &[], session, UserCommand::Before, signals) {
        None => Ok(()),
        Some(cause) => Err(HookCause::BeforeFailed { cause }.error(hook)),
    }
}

/// Runs `--after`, with the window's exit code, and the devices that another number names now; its failure changes nothing about the
/// pods.
pub(crate) fn after(
    hook: Option<&str>,
    end: Exit,
    baseline: Option<&Baseline>,
    (session, signals): (&WindowSession, &Signals),
) -> Option<Problem> {
    let (hook, end) = (hook?, (end as u8).to_string());
    let renumbered = baseline.map(Baseline::renumbered).unwrap_or_default();
    let variables = [
        ("NETFIX_VERDICT", end.as_str()),
        ("NETFIX_RENUMBERED", renumbered.as_str()),
    ];
    let cause = run_hook(hook, &variables, session, UserCommand::After, signals)?;
    let cause = match cause {
        CommandCause::TimedOut { limit } | CommandCause::NotEnded { limit } => {
            HookCause::AfterTimedOut { limit }
        }
        cause => HookCause::AfterFailed { cause },
    };
    Some(cause.warning(hook))
}

/// Runs a command of the user around a window, such as for a load balancer; returns why it failed. While `--before` runs nothing is
/// changed yet: a load balancer may take its time.
fn run_hook(
    hook: &str,
    variables: &[(&str, &str)],
    session: &WindowSession,
    program: UserCommand,
    signals: &Signals,
) -> Option<CommandCause> {
    let command = hook.to_owned();
    session.log(&Event::RunningHook { command });
    let argv = ["sh", "-c", hook].map(str::to_owned);
    let mut all = vec![("NETFIX_WINDOW", session.window().id.as_str())];
    all.extend(variables);
    let log = &session.log_file;
    let terms = Terms {
        program,
        limit: (program == UserCommand::After).then(|| TimeLimit::of(LIMIT)),
        log,
        signals,
    };
    let run = Started::start(&argv, &all, log).wait(&terms, &mut || {});
    failure(&run)
}
