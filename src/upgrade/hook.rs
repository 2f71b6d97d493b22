//! Commands of the user around a window, such as for a load balancer: `--before` and `--after`.

use std::time::{Duration, Instant};

use crate::model::Exit;
use crate::model::problem::HookCause;
use crate::refusal::Refusal;
use crate::upgrade::command;
use crate::upgrade::command::Started;
use crate::upgrade::driver::Driver;
use crate::window::event::Event;
use crate::window::findings::Area;

/// How long `--after` may take: kubelet runs again, and the window is still open.
const LIMIT: Duration = Duration::from_secs(300);

impl Driver<'_> {
    /// Runs `--before`; if it fails, nothing is changed.
    pub(crate) fn before(&mut self) -> Result<(), Refusal> {
        let Some(hook) = self.request.before else {
            return Ok(());
        };
        self.session.log(&Event::RunningHook {
            command: hook.to_owned(),
        });
        let argv = ["sh", "-c", hook].map(str::to_owned);
        let (id, log) = (&self.session.window.id, &self.session.log_file);
        let run = Started::start(&argv, &[("NETFIX_WINDOW", id)], log);
        let run = run.wait(&self.signals, &mut || true);
        match command::failure(&run) {
            None => Ok(()),
            Some(cause) => Err(HookCause::BeforeFailed { cause }.error(hook).into()),
        }
    }

    /// Runs `--after`, with the window's exit code; its failure changes nothing about the pods.
    pub(crate) fn after(&mut self, end: Exit) {
        let Some(hook) = self.request.after else {
            return;
        };
        self.session.log(&Event::RunningHook {
            command: hook.to_owned(),
        });
        let argv = ["sh", "-c", hook].map(str::to_owned);
        let end = (end as u8).to_string();
        let (id, log) = (&self.session.window.id, &self.session.log_file);
        let variables = [("NETFIX_WINDOW", id.as_str()), ("NETFIX_VERDICT", &end)];
        let begin = Instant::now();
        let run = Started::start(&argv, &variables, log);
        let run = run.wait(&self.signals, &mut || begin.elapsed() < LIMIT);
        if let Some(cause) = command::failure(&run) {
            let problem = HookCause::AfterFailed { cause }.warning(hook);
            self.session.log(&Event::Failed(problem.clone()));
            self.findings.add(Area::Command, [problem]);
        }
    }
}
