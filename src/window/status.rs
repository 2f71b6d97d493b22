//! What is stored, what runs, and the open window, at this moment or until it is closed; changes nothing.

use std::io::{ErrorKind, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::clock;
use crate::context::Context;
use crate::inventory::{Inventory, nics, procfs};
use crate::matching::Selection;
use crate::model::next::{LostPods, WindowNow};
use crate::model::problem::{RecordCause, WindowCause};
use crate::model::{Nic, NodeIdentity, NodeState, Problem, Window};
use crate::records::fallback::FallbackRequest;
use crate::records::matched::{Matched, RecordOrigin};
use crate::records::stored::load_in_part;
use crate::records::survey::{Finding, survey};
use crate::refusal::Refusal;
use crate::runtime;
use crate::situation::guard_now::GuardNow;
use crate::situation::{Depth, Situation};
use crate::store::{Store, StoreError};
use crate::systemd::{Bus, UnitState};
use crate::window::network::PodNetworks;
use crate::window::observed::observe_with;
use crate::window::records::{INTERVAL, is_left, is_of_other_boot, is_owner_alive};
use crate::window::{bus, window_log};

/// The state of everything.
#[derive(Default)]
pub(crate) struct Status {
    pub node: NodeIdentity,
    /// The host's state as it was recorded in this boot.
    pub recorded: Option<NodeState>,
    /// Checkpoints that can be read.
    pub checkpoints: usize,
    /// Checkpoints that cannot.
    pub damaged: usize,
    /// Kept generations; `None` where they cannot be read.
    pub generations: Option<usize>,
    /// Running pods.
    pub running: usize,
    /// Running pods that have a checkpoint.
    pub covered: usize,
    pub network: Option<PodNetworks>,
    /// The devices of the host that were recorded and exist.
    pub nics: Vec<Nic>,
    /// Namespaces that belong to no pod.
    pub private: usize,
    /// The runtimes that answered.
    pub runtimes: Vec<runtime::Queried>,
    pub window: Option<WindowStatus>,
    /// `netfix guard`; `None` where that is unknown.
    pub guard: Option<GuardNow>,
    /// The newest window that is closed.
    pub last: Option<Window>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    pub problems: Vec<Problem>,
}

/// A part of the state that could not be read, and why.
pub(crate) struct Unread {
    pub part: StatusPart,
    pub problem: Problem,
}

/// A part of the state that is read by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusPart {
    /// The host's recorded state, with the time of the last complete snapshot.
    Snapshot,
    /// The generations.
    Generations,
    /// Which pods have their network.
    Network,
    /// The open window.
    Window,
    /// `netfix guard`.
    Guard,
    /// The record of the newest closed window.
    Last,
}

/// Reads all of it. One part that cannot be read must not hide the rest.
pub(crate) fn run(runtimes: &runtime::RuntimeConfig, context: &Context) -> Result<Status, Refusal> {
    let store = &context.store;
    let selection = Selection::everything();
    let stored = load_in_part(store, &selection)?;
    let mut inventory = Inventory::open(&selection)?;
    let mut status = Status {
        node: inventory.node.clone(),
        checkpoints: stored.checkpoints.len(),
        damaged: stored.damaged.len(),
        ..Status::default()
    };
    if let Err(refusal) = inventory.attribute(runtimes, &selection) {
        status.problems.extend(refusal.problems);
    }
    status.running = inventory.pods.len();
    let answer = inventory.answer.as_ref();
    status.runtimes = answer.map_or_else(Vec::new, |answer| answer.queried.clone());
    // The survey has them too, unless the pods cannot be compared. It fails where netfix does not see the whole host.
    let damaged = stored.problems.clone();
    let surveyed = survey(inventory, stored, &selection, store, FallbackRequest::ALL)?;
    match Situation::of(surveyed, Depth::Loss) {
        Ok(seen) => status.note(seen),
        Err(refusal) => {
            status.problems.extend(damaged);
            for problem in refusal.problems {
                status.leave(StatusPart::Network, problem);
            }
        }
    }
    let generations = status.read(StatusPart::Generations, store.generations());
    status.generations = generations.map(|generations| generations.len());
    let mut problems = Vec::new();
    let which = status.network.as_ref();
    let which = which.map(|network| network.which.clone());
    status.window = of_open(store, &mut problems, || which);
    for problem in problems {
        // Without a bus the window is known all the same.
        if status.window.is_some() {
            status.problems.push(problem);
        } else {
            status.leave(StatusPart::Window, problem);
        }
    }
    status.guard = status.read(StatusPart::Guard, GuardNow::read(store));
    let last = status.read(StatusPart::Last, store.last_window());
    status.last = last.flatten();
    Ok(status)
}

impl Status {
    /// What runs, beside what is stored.
    fn note(&mut self, mut seen: Situation) {
        let (network, problems) = PodNetworks::of(&mut seen, self.running);
        self.network = Some(network);
        let mut surveyed = seen.surveyed;
        let names = surveyed.baseline.devices.iter();
        let names = names
            .map(|name| seen.compared.links.name_now(name))
            .collect();
        self.nics = nics::among(&surveyed.host.state.links, &names);
        for problem in std::mem::take(&mut surveyed.problems) {
            if problem.hides_host_record() {
                self.leave(StatusPart::Snapshot, problem);
            } else {
                self.problems.push(problem);
            }
        }
        self.problems.extend(problems);
        let unmatched = surveyed.unmatched.iter();
        let private = unmatched.filter(|one| one.finding == Finding::Private);
        self.private = private.count();
        self.running -= self.private;
        let own = |one: &&Matched| one.origin == RecordOrigin::Requested;
        self.covered = surveyed.matched.iter().filter(own).count();
        // A snapshot has recorded that they have nothing.
        let unmatched = surveyed.unmatched.iter();
        let empty =
            unmatched.filter(|one| one.finding == Finding::Nothing && !one.has_interfaces());
        self.covered += empty.count();
        // What a generation has is older than the last complete snapshot.
        let is_hidden = self
            .unread
            .iter()
            .any(|one| one.part == StatusPart::Snapshot);
        self.recorded = surveyed.node_state.filter(|_| !is_hidden);
    }

    /// The part that was read; one that could not be is noted.
    fn read<T>(&mut self, part: StatusPart, read: Result<T, StoreError>) -> Option<T> {
        let read = read.map_err(|error| self.leave(part, error.problem()));
        read.ok()
    }

    fn leave(&mut self, part: StatusPart, problem: Problem) {
        self.unread.push(Unread {
            part,
            problem: problem.clone(),
        });
        self.problems.push(problem);
    }
}

/// The open window, what it leaves, and the state of kubelet's unit.
pub(crate) fn of_open(
    store: &Store,
    problems: &mut Vec<Problem>,
    lost: impl FnOnce() -> Option<LostPods>,
) -> Option<WindowStatus> {
    let unclosed = store.unclosed_window().map_err(|error| error.problem());
    let window = unclosed.map_err(|problem| problems.push(problem)).ok()??;
    let damage = store.window_damage();
    problems.extend(damage.map(|damage| damage.problem().demoted()));
    // Also one that a reboot has ended, until its record is closed.
    let window = (window.ended.is_none() || window.is_ended_by_reboot()).then_some(window)?;
    let bus = bus::connect().map_err(|problem| problems.push(problem.demoted()));
    let bus = bus.ok().flatten();
    let observed = observe_with(&window, bus.as_ref(), lost);
    Some(WindowStatus {
        observed: Some(observed),
        ..WindowStatus::new(window, bus.as_ref())
    })
}

/// A window, its process and its unit at this moment.
#[derive(Debug, Clone)]
pub(crate) struct WindowStatus {
    pub window: Window,
    /// Milliseconds since the window's start.
    pub now: u64,
    /// Whether the process that opened it still runs.
    pub is_at_work: bool,
    /// Whether a reboot has ended it: nothing of it is in force.
    pub is_of_other_boot: bool,
    /// kubelet's unit; `None` where systemd was not queried.
    pub unit: Option<UnitState>,
    /// When a unit that this window stopped was started again, in milliseconds since the window's start; the deadline or
    /// another program did that.
    pub runs_since: Option<u64>,
    /// What it leaves; `None` where that was not observed.
    pub observed: Option<WindowNow>,
}

impl WindowStatus {
    /// Queries systemd where there is a bus.
    pub(crate) fn new(window: Window, bus: Option<&Bus>) -> Self {
        let pause = window.pause.as_ref();
        let unit = pause
            .zip(bus)
            .and_then(|(pause, bus)| bus.unit(&pause.unit).ok());
        let is_of_other_boot = is_of_other_boot(&window);
        let runs_since = pause
            .zip(bus)
            .filter(|_| !is_of_other_boot)
            .and_then(|(pause, bus)| bus.active_since(&pause.unit).ok()?)
            .map(|since| since.saturating_sub(window.started_boottime))
            .filter(|since| *since >= pause.and_then(|pause| pause.paused).unwrap_or_default());
        Self {
            now: clock::boottime().saturating_sub(window.started_boottime),
            is_at_work: is_owner_alive(&window) || window.owner == procfs::own(),
            is_of_other_boot,
            unit,
            runs_since,
            observed: None,
            window,
        }
    }
}

impl WindowStatus {
    /// Whether its netfix runs, and COMMAND may have taken the network of pods.
    pub(crate) fn excuses_losses(&self) -> bool {
        self.is_at_work && self.window.has_begun()
    }

    /// What monitoring has to know of it; `lost` pods have no network.
    pub(crate) fn finding(&self, lost: usize) -> Option<Problem> {
        let Self { window, now, .. } = self;
        if window.ended.is_some() || self.is_of_other_boot {
            return None;
        }
        let (command, started) = (window.command.clone(), window.started.clone());
        let pid = window.owner.pid;
        if self.is_at_work {
            let phase = window.phases.last().filter(|phase| phase.to.is_none());
            let begun = phase.map_or(0, |phase| phase.from);
            let cause = WindowCause::Runs {
                command,
                pid,
                phase: phase.map(|phase| phase.name),
                since: Duration::from_secs(now.saturating_sub(begun) / 1000),
                lost,
            };
            return Some(cause.warning(window.id.clone()));
        }
        let now = self.observed.clone()?;
        // The process of `netfix pause` ends while kubelet stays paused.
        Some(if command == "pause" {
            WindowCause::NotResumed { started, now }.warning(window.id.clone())
        } else {
            let is_harmless = now.is_harmless();
            let cause = WindowCause::Abandoned {
                started,
                command,
                pid,
                now,
            };
            let problem = cause.error(window.id.clone());
            if is_harmless {
                problem.demoted()
            } else {
                problem
            }
        })
    }
}

/// How following ended.
pub(crate) enum Followed {
    /// No window was open.
    NoWindow,
    /// The reader of the copy is gone.
    ReaderGone,
    /// The netfix of the window died; the window is open.
    Left(Box<WindowStatus>),
    /// The window is closed.
    Closed(Box<WindowStatus>),
}

/// Copies the log of the open window, from any login, to `to` until the window is closed or its netfix is gone.
pub(crate) fn follow(
    store: &Store,
    to: &mut dyn Write,
    lost: &dyn Fn() -> Option<LostPods>,
) -> Result<Followed, Refusal> {
    let Some(followed) = store.open_window()? else {
        return Ok(Followed::NoWindow);
    };
    let now = || {
        let open = store.open_window();
        open.map(|open| open.filter(|window| window.id == followed.id))
    };
    let mut shown = 0;
    while let Some(window) = now()? {
        if is_left(&window) {
            // It may have closed the window before it ended, or another netfix has taken it over.
            let open = of_open(store, &mut Vec::new(), lost);
            match open.filter(|open| open.window.id == followed.id && !open.is_at_work) {
                Some(left) => return Ok(Followed::Left(Box::new(left))),
                None => continue,
            }
        }
        let is_over = || {
            let same = |now: &Window| now.log == window.log && !is_left(now);
            !now().is_ok_and(|now| now.as_ref().is_some_and(same))
        };
        let path = window.log.as_deref().map(Path::new);
        match path.map(|path| window_log::follow(path, SeekFrom::Start(shown), to, is_over)) {
            Some(Ok(end)) => shown = end,
            // The window's process may move the log to the records at this moment.
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                return Ok(Followed::ReaderGone);
            }
            Some(Err(_)) | None => thread::sleep(INTERVAL),
        }
    }
    let record = store.load_window(&followed.id)?;
    let record = record.ok_or_else(|| Refusal::from(RecordCause::Gone.error(&followed.id)))?;
    Ok(Followed::Closed(Box::new(WindowStatus::new(record, None))))
}
