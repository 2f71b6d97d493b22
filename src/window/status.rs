//! What is stored, what runs, and the open window, at this moment or until it is closed; changes nothing.

use std::io::{ErrorKind, SeekFrom, Write};
use std::path::Path;

use crate::clock;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::observe::Pod;
use crate::inventory::private;
use crate::inventory::procfs;
use crate::matching::Selection;
use crate::model::{NodeIdentity, NodeState, Problem, Window};
use crate::records::stored::{Stored, load, load_node};
use crate::refusal::Refusal;
use crate::runtime;
use crate::store::Store;
use crate::systemd::{Bus, UnitState};
use crate::window::records::{is_of_other_boot, is_owner_alive};
use crate::window::{bus, window_log};

/// The state of everything.
pub(crate) struct Status {
    pub node: NodeIdentity,
    /// The host's state as it was recorded in this boot.
    pub recorded: Option<NodeState>,
    pub stored: Stored,
    /// Kept generations.
    pub generations: usize,
    /// Running pods.
    pub running: usize,
    /// Running pods that have a checkpoint.
    pub covered: usize,
    /// Namespaces that belong to no pod.
    pub private: usize,
    /// The runtimes that answered.
    pub runtimes: Vec<runtime::Queried>,
    pub window: Option<WindowStatus>,
    pub problems: Vec<Problem>,
}

/// Reads all of it. One part that cannot be read must not hide the rest.
pub(crate) fn run(runtimes: &runtime::RuntimeConfig, context: &Context) -> Result<Status, Refusal> {
    let store = &context.store;
    let selection = Selection::everything();
    let mut stored = load(store, &selection)?;
    let mut problems = std::mem::take(&mut stored.problems);
    let mut inventory = Inventory::open(&selection)?;
    if let Err(refusal) = inventory.attribute(runtimes, &selection) {
        problems.extend(refusal.problems);
    }
    let recorded = load_node(store, &mut problems);
    let is_covered = |pod: &Pod| {
        let checkpoints = stored.checkpoints.iter();
        let mut own = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        own.any(|extension| extension.is_about(&inventory.node, &pod.identity, &pod.info))
    };
    let covered = inventory.pods.iter().filter(|pod| is_covered(pod)).count();
    let answer = inventory.answer.as_ref();
    let (pods, private) = private::split(inventory.pods, &inventory.host, answer, is_covered);
    let generations = store.generations().map(|generations| generations.len());
    let generations = generations.unwrap_or_else(|error| {
        problems.push(error.problem());
        0
    });
    let window = of_open(store, &mut problems);
    problems.extend(inventory.problems);
    let answer = inventory.answer;
    Ok(Status {
        node: inventory.node,
        recorded,
        stored,
        generations,
        running: pods.len(),
        covered,
        private: private.len(),
        runtimes: answer.map(|answer| answer.queried).unwrap_or_default(),
        window,
        problems,
    })
}

/// The open window, and the state of kubelet's unit.
pub(crate) fn of_open(store: &Store, problems: &mut Vec<Problem>) -> Option<WindowStatus> {
    let open = store.open_window().map_err(|error| error.problem());
    let window = open.map_err(|problem| problems.push(problem)).ok()??;
    let bus = bus::connect().map_err(|problem| problems.push(problem.demoted()));
    Some(WindowStatus::new(window, bus.ok().flatten().as_ref()))
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
            window,
        }
    }
}

/// How following ended.
pub(crate) enum Followed {
    /// No window was open.
    NoWindow,
    /// The reader of the copy is gone.
    ReaderGone,
    /// The window is closed; `None` when its record is gone.
    Closed(Option<Box<WindowStatus>>),
}

/// Copies the log of the open window, from any login, to `to` until the window is closed.
pub(crate) fn follow(store: &Store, to: &mut dyn Write) -> Result<Followed, Refusal> {
    let Some(followed) = store.open_window()? else {
        return Ok(Followed::NoWindow);
    };
    let now = || {
        let open = store.open_window().ok().flatten();
        open.filter(|window| window.id == followed.id)
    };
    let (mut log, mut shown) = (followed.log.clone(), 0);
    while let Some(path) = log {
        let is_over = || now().is_none_or(|window| window.log.as_ref() != Some(&path));
        match window_log::follow(Path::new(&path), SeekFrom::Start(shown), to, is_over) {
            Ok(end) => shown = end,
            // The window's process may move the log to the records at this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return Ok(Followed::ReaderGone),
        }
        // A process that takes the window over continues its log in another file.
        log = now()
            .and_then(|window| window.log)
            .filter(|next| *next != path);
    }
    let record = store.load_window(&followed.id)?;
    let status = record.map(|record| Box::new(WindowStatus::new(record, None)));
    Ok(Followed::Closed(status))
}
