//! The course of a window, phase by phase. From the pause on every way out leads through the resume.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::command::{BudgetWatch, LossWatch, Started};
use super::{after, before};
use crate::cli::UpgradeArgs;
use crate::commands::select::Selection;
use crate::commands::session::{self, Stored};
use crate::commands::window::{self, Keeper, Signals};
use crate::commands::{Context, Early, Exit, Outcome};
use crate::kubelet::Bus;
use crate::model::window::PhaseName;
use crate::model::{Code, NodeState, PodId, Problem, Window};
use crate::report::{Extra, NodeView, PodView, ReportView, Standing};
use crate::runtime::Config;

/// Everything that a window is made of.
pub(super) struct Course<'a> {
    pub args: &'a UpgradeArgs,
    pub context: &'a mut Context,
    pub selection: Selection,
    pub config: Config,
    pub keeper: Keeper,
    pub bus: Option<Bus>,
    pub signals: Signals,
    /// What was known before anything was done, in memory, should the disk fail.
    pub memory: Memory,
    pub node: NodeView,
    pub views: Vec<PodView>,
    pub problems: Vec<Problem>,
    /// Whether a window goes on in which COMMAND was begun, and whose process died.
    pub resumes_old: bool,
    /// Whether kubelet was found paused.
    found_held: bool,
    budget: Option<BudgetWatch>,
    /// When each of the host's links was lost, by the clock that counts from boot.
    lost: BTreeMap<String, u64>,
}

/// The checkpoints and the host's state.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub stored: Stored,
    pub node: Option<NodeState>,
    /// Gateways that did not answer before either: of which pod, and which.
    pub silent: Vec<(PodId, String)>,
    /// The runtimes that told of their pods.
    pub runtimes: Vec<PathBuf>,
}

pub(super) fn run(args: &UpgradeArgs, context: &mut Context) -> Result<Outcome, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let selection = session::selection(&args.selectors)?;
    // As long as it is waited for, a signal ends netfix.
    let guard = context.store.lock("upgrade").map_err(|error| refuse(error.problem()))?;
    let signals = Signals::catch()
        .map_err(|error| refuse(Problem::error(Code::Failed, "signals", error.to_string())))?;
    let bus = window::systemd().map_err(refuse)?;
    let open = context.store.open_window().map_err(|error| refuse(error.problem()))?;
    let echo = !context.quiet;
    let (keeper, resumes_old) = match open {
        None => (Keeper::open(&context.store, guard, "upgrade", echo)?, false),
        Some(open) => window::go_on(open, guard, &context.store, echo)?,
    };
    let found_held = keeper.window.is_holding();
    let config = Config { containers: true, ..args.runtimes.config() };
    let mut course = Course {
        args,
        context,
        selection,
        config,
        keeper,
        bus,
        signals,
        memory: Memory::default(),
        node: NodeView::default(),
        views: Vec::new(),
        problems: Vec::new(),
        resumes_old,
        found_held,
        budget: None,
        lost: BTreeMap::new(),
    };
    // Whatever happens from here on, even in netfix itself, kubelet comes back.
    let prepared = catch_unwind(AssertUnwindSafe(|| course.prepare()));
    if let Err(problem) = prepared.unwrap_or_else(|_| Err(own_failure())) {
        return Ok(course.refuse(problem));
    }
    if catch_unwind(AssertUnwindSafe(|| course.work())).is_err() {
        course.problems.push(own_failure());
    }
    course.resume();
    course.prove();
    Ok(course.close())
}

impl Course<'_> {
    /// Everything before the first change; what it returns stops the window.
    fn prepare(&mut self) -> Result<(), Problem> {
        before::look(self)?;
        if self.signals.interrupted() {
            return Err(interrupted("nothing was changed"));
        }
        self.pause()?;
        self.check_held()?;
        if self.signals.interrupted() {
            return Err(interrupted("COMMAND was not run"));
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Problem> {
        let held = self.keeper.window.is_holding() && window::is_held(&self.keeper, self.bus.as_ref())?;
        if held {
            let text = "kubelet is paused since the earlier window";
            self.keeper.begin(PhaseName::Pause, text);
            let armed =
                self.bus.as_ref().map_or(Ok(()), |bus| self.keeper.rearm(bus, self.args.hold.deadline));
            self.keeper.end(armed.is_ok());
            armed?;
        } else {
            let unit = self.unit()?;
            let (Some(bus), Some(unit)) = (&self.bus, unit) else {
                self.keeper.talk.say("there is no running kubelet to pause");
                return self.keeper.save().map_err(|error| error.problem());
            };
            self.keeper.pause(bus, &unit, self.args.hold.deadline)?;
        }
        if let Some((hold, paused)) = self.keeper.window.hold.as_ref().and_then(|h| Some((h, h.paused?))) {
            let since = self.keeper.window.started_boottime + paused;
            self.budget = Some(BudgetWatch::start(self.keeper.talk.clone_hand(), since, hold.deadline));
        }
        Ok(())
    }

    /// What is to be paused: what an earlier window may have died stopping or starting, or the kubelet that runs.
    fn unit(&mut self) -> Result<Option<String>, Problem> {
        let window = &self.keeper.window;
        if let Some(hold) = window.hold.as_ref().filter(|_| window.is_holding()) {
            return Ok(Some(hold.unit.clone()));
        }
        let (unit, note) = window::find(self.bus.as_ref(), self.args.hold.unit.as_deref())?;
        self.problems.extend(note);
        Ok(unit)
    }

    /// Something else may have started it: then nothing is done that it would answer by rebuilding pods.
    fn check_held(&self) -> Result<(), Problem> {
        if window::is_held(&self.keeper, self.bus.as_ref())? {
            return Ok(());
        }
        Err(self.not_held("something has started it; COMMAND was not run"))
    }

    fn not_held(&self, what: &str) -> Problem {
        let unit = self.keeper.window.hold.as_ref().map(|hold| hold.unit.clone()).unwrap_or_default();
        Problem::error(Code::KubeletNotPaused, unit, what)
    }

    /// From the user's command to the last try to bring the pods back.
    fn work(&mut self) {
        self.command();
        self.restore(self.args.wait);
        self.mind_the_hold();
        self.verify();
        self.mind_the_broken();
    }

    fn command(&mut self) {
        let argv = self.args.command.clone();
        self.keeper.begin(PhaseName::Command, &format!("running {}", words(&argv)));
        let watch = LossWatch::start();
        let mut started = Started::start(&argv, &self.keeper.window.id, &self.keeper.talk);
        // The next process is not to run it beside this one.
        self.keeper.window.run = Some(started.run.clone());
        self.keeper.save_as_possible();
        let run = started.wait(&self.signals);
        self.lost = watch.map(LossWatch::end).unwrap_or_default();
        let problem = after::command_problem(&run);
        self.keeper.window.run = Some(run);
        self.keeper.end(problem.is_none());
        match problem {
            Some(problem) => {
                self.keeper.talk.say(&format!("{problem}; the pods are restored all the same"));
                self.problems.push(problem);
            }
            None => self.keeper.talk.say("the command has ended well"),
        }
        self.heed("the pods are restored all the same");
        after::note_losses(&mut self.keeper.window, &self.lost, &self.memory);
    }

    fn restore(&mut self, wait: Duration) {
        self.keeper.begin(PhaseName::Restore, "waiting for the NIC, and restoring");
        let mut outcome = after::restore(self, wait);
        if outcome.exit != Exit::Done && !self.signals.interrupted() {
            // It may have been the moment, and after a window that ends like this the next one writes the loss down.
            self.keeper.talk.say("not everything is restored: trying once more");
            outcome = after::both(outcome, after::restore(self, Duration::ZERO));
        }
        let ok = outcome.exit == Exit::Done;
        self.node = outcome.node;
        self.views = outcome.pods;
        after::note_states(&mut self.keeper.window, &self.views);
        let summary = after::summary(&self.views);
        self.problems.extend(outcome.problems);
        self.keeper.end(ok);
        self.keeper.talk.say(&summary);
        self.heed("it was not waited longer for the NIC");
    }

    /// The pods' network comes first, and then it is told who has started kubelet in the meantime.
    fn mind_the_hold(&mut self) {
        match window::is_held(&self.keeper, self.bus.as_ref()) {
            Ok(true) => {}
            Ok(false) => {
                let problem = self.not_held(
                    "was started before the pods had their network back, by the deadline or by somebody",
                );
                self.problems.push(problem);
            }
            Err(problem) => self.problems.push(problem),
        }
    }

    fn verify(&mut self) {
        self.keeper.begin(PhaseName::Verify, "asking the gateways");
        let problems = after::verify(self);
        let ok = !problems.iter().any(Problem::is_error);
        self.problems.extend(problems);
        self.keeper.end(ok);
    }

    /// kubelet's next start is what rebuilds a pod without an address: the last moment to say so, and to wait for a person.
    fn mind_the_broken(&mut self) {
        let broken = after::broken(&self.views);
        if broken.is_empty() {
            return;
        }
        for line in &broken {
            self.keeper.talk.say(line);
        }
        if !self.args.keep_paused || !self.keeper.window.is_holding() {
            return;
        }
        let text = "kubelet stays paused for you: repair, `netfix restore`, then `netfix resume`";
        self.keeper.begin(PhaseName::Hold, text);
        let waited = self.wait_for_a_person();
        self.keeper.end(waited.is_ok());
        match waited {
            Ok(resumed) => self.keeper.note_resume_of(resumed),
            Err(problem) => self.problems.push(problem),
        }
        self.heed("kubelet is resumed");
        // What the person did is looked at, not believed; what was wrong before may be right now.
        self.problems.retain(|problem| !after::is_about_network(problem));
        self.restore(Duration::ZERO);
        self.verify();
    }

    /// Until somebody resumes, the deadline has come, or a signal; what the one who resumed has written.
    fn wait_for_a_person(&mut self) -> Result<Option<Window>, Problem> {
        const PAUSE: Duration = Duration::from_millis(250);
        self.keeper.let_go();
        let until = Instant::now() + self.keeper.until_deadline();
        let mut resumed = None;
        while resumed.is_none() && Instant::now() < until && !self.signals.interrupted() {
            std::thread::sleep(PAUSE);
            resumed = self.keeper.as_stored().ok().flatten().filter(|stored| !stored.is_holding());
        }
        // A restore of that person's may be at work in this very moment.
        let store = self.context.store.clone().patient(Duration::from_secs(60), |_| {});
        let guard = store.lock("upgrade").map_err(|error| error.problem())?;
        self.keeper.take_back(guard);
        Ok(resumed)
    }

    fn resume(&mut self) {
        if let Some(bus) = self.bus.as_ref().filter(|_| self.keeper.window.is_holding()) {
            let result = self.keeper.resume(bus);
            self.problems.extend(result.err());
        }
        self.budget = None;
    }

    fn prove(&mut self) {
        if self.keeper.window.is_holding() {
            return;
        }
        let settle = humantime::format_duration(self.args.settle);
        self.keeper.begin(PhaseName::Proof, &format!("watching for {settle} that no pod is rebuilt"));
        let problems = after::prove(self);
        let pods = &self.keeper.window.pods;
        let same = pods.iter().filter(|pod| pod.rebuilt == Some(false)).count();
        let ok = same == pods.len() && !self.signals.interrupted();
        self.keeper.talk.say(&format!("{same} of {} pods are proven to be the ones from before", pods.len()));
        self.problems.extend(problems);
        self.keeper.end(ok);
        self.heed("it was not watched longer whether a pod is rebuilt");
    }

    /// Somebody wanted an end of what has just been done.
    fn heed(&mut self, what: &str) {
        if self.signals.interrupted() {
            self.signals.heed();
            self.problems.push(interrupted(what));
        }
    }

    /// Nothing was changed, or it was changed back.
    fn refuse(mut self, problem: Problem) -> Outcome {
        self.problems.push(problem);
        // What was found paused stays paused, its deadline with it.
        if self.keeper.window.is_holding() && !self.found_held {
            self.resume();
        }
        self.keeper.window.problems.clone_from(&self.problems);
        let paused = self.keeper.window.hold.is_some();
        if self.keeper.window.is_holding() || !paused {
            self.keeper.forget();
        } else {
            self.problems.extend(self.keeper.close(Exit::Refused.code(), None).1);
        }
        let Self { node, problems, .. } = self;
        Outcome { exit: Exit::Refused, node, problems, ..Outcome::default() }
    }

    fn close(mut self) -> Outcome {
        let mut exit = after::exit(&self.problems);
        self.keeper.window.problems.extend(self.problems.iter().cloned());
        let open = self.keeper.window.is_holding();
        let record = if open {
            // kubelet does not run: the window stays open for the next process.
            self.keeper.save_as_possible();
            let window = self.keeper.window.clone();
            self.keeper.forget();
            window
        } else {
            let (window, trouble) = self.keeper.close(exit.code(), None);
            if exit == Exit::Done && trouble.iter().any(Problem::is_error) {
                // All is well but the window, which is open still.
                exit = Exit::Failed;
            }
            self.problems.extend(trouble);
            window
        };
        let standing = if open { Standing::Left } else { Standing::Closed };
        let extra = Some(Extra::Report(Box::new(ReportView::new(record, standing))));
        Outcome { exit, node: self.node, pods: self.views, problems: self.problems, extra }
    }
}

fn own_failure() -> Problem {
    let message =
        "netfix itself failed in this window; kubelet is resumed. Run `netfix restore`, and tell us";
    Problem::error(Code::Failed, "netfix", message)
}

fn interrupted(what: &str) -> Problem {
    Problem::error(Code::Interrupted, "signal", format!("somebody wanted an end; {what}"))
}

/// A command's words as one would type them, as far as people need that.
pub(super) fn words(argv: &[String]) -> String {
    argv.iter().map(|word| word.escape_debug().to_string()).collect::<Vec<_>>().join(" ")
}
