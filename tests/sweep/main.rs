//! Every command is killed, and made to fail, at each of its failure points, and run again: it must end with the state
//! of an undisturbed run, and lose nothing meanwhile. Needs root and a build with the feature `failpoints`.
//!
//! `cargo test --features failpoints --test sweep [-- WORD…]`: each point gets `kill` and one errno, the next point the next
//! errno; of `upgrade` and `guard`, which have the points of the others too, and of `pause` and `resume` every other point gets `kill`, the rest an
//! errno, and of the longest, a sixth of the points. A word selects the commands whose names contain it, (`kill` or an errno) the faults of each point, or (a number) a
//! point; `all`, also as `NETFIX_SWEEP=all`, gives each point all of them, but those of the slow commands. Those and variants of
//! a command run only with it, or by name.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]
#![allow(clippy::print_stdout, reason = "the table is for people")]

#[path = "../common/mod.rs"]
mod common;

mod fault;
mod kubelet;
mod picture;
mod stage;
mod stored;
mod table;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::Node;
use common::systemd::{ADMINISTRATOR, PACKAGES};
use fault::{ACTIONS, Fault};
use picture::Picture;
use stage::{Ran, Stage, Start};
use table::Row;

/// A command and its initial state.
pub struct Case {
    /// For the output, and for the selection.
    pub name: &'static str,
    /// netfix's arguments; `RELOAD` and `REMOVAL` are replaced by programs that act like a driver's reload and removal.
    pub words: &'static str,
    /// The initial state.
    pub start: Start,
    /// Whether it is meant to change networks; if not, networks are compared at the end only.
    pub networks: bool,
    /// The exit code of an undisturbed run.
    pub exit: i32,
    /// The allowed exit codes of a run that finds everything done.
    pub again: &'static [i32],
    /// Whether it waits long at each point.
    pub is_slow: bool,
    /// Whether most of its points are those of another case.
    pub is_variant: bool,
}

impl Case {
    /// Whether most of its points are also those of `restore`, of `upgrade` or of the commands that that consists of.
    fn shares_points(&self) -> bool {
        self.start.kubelet().is_some() || self.start == Start::Unplanned
    }
}

const fn case(name: &'static str, words: &'static str, start: Start) -> Case {
    let networks = matches!(
        start,
        Start::Loss | Start::Unplanned | Start::TakenIndex | Start::Upgrade(_)
    );
    Case {
        name,
        words,
        start,
        networks,
        exit: 0,
        again: &[0],
        is_slow: false,
        is_variant: false,
    }
}

/// The first restore has the points of the conflict probe, which reads every namespace of the machine: those of all others
/// that run at the same time.
const UPGRADE: &str =
    "upgrade --foreground --yes --watch 0s --nic-wait 5s --conflict-probe off -- RELOAD";
const ROLLBACK: &str = "upgrade --foreground --yes --watch 0s --nic-wait 1s --conflict-probe off --rollback RELOAD -- REMOVAL";

/// The exit code of a run that finds a pause in force.
const PAUSE: &[i32] = &[0, 4];

const GUARD: &str = "guard --once --watch 0s --backoff 0s --nic-wait 5s --conflict-probe off";

const CASES: [Case; 11] = [
    case("snapshot, the first", "snapshot", Start::Nothing),
    case(
        "snapshot that replaces and removes",
        "snapshot --keep 1",
        Start::Older,
    ),
    case("restore", "restore", Start::Loss),
    Case {
        is_variant: true,
        ..case(
            "restore, an index taken",
            "restore --conflict-probe off",
            Start::TakenIndex,
        )
    },
    case("guard", GUARD, Start::Unplanned),
    Case {
        again: PAUSE,
        ..case("pause", "pause", Start::Running(PACKAGES))
    },
    Case {
        again: PAUSE,
        is_variant: true,
        ..case(
            "pause, unit in /etc",
            "pause",
            Start::Running(ADMINISTRATOR),
        )
    },
    case("resume", "resume", Start::Paused(PACKAGES)),
    Case {
        is_variant: true,
        ..case(
            "resume, unit in /etc",
            "resume",
            Start::Paused(ADMINISTRATOR),
        )
    },
    case("upgrade", UPGRADE, Start::Upgrade(PACKAGES)),
    // A window that was rolled back is no good one, although every pod is back. A rollback never runs twice in a window.
    Case {
        exit: 1,
        again: &[1, 5],
        is_slow: true,
        ..case("upgrade, rolled back", ROLLBACK, Start::Upgrade(PACKAGES))
    },
];

/// What went wrong in a run with a fault, or in the run after it.
pub struct Finding {
    fault: Fault,
    /// The name of the point.
    point: String,
    what: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .chain(std::env::var("NETFIX_SWEEP"))
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_action = |word: &String| word == "all" || ACTIONS.contains(&word.as_str());
    let (chosen, others): (Vec<_>, Vec<_>) = words.iter().partition(|word| is_action(word));
    let is_number = |word: &&String| word.parse::<usize>().is_ok();
    let (numbers, names): (Vec<&String>, Vec<&String>) = others.into_iter().partition(is_number);
    let points: Vec<usize> = numbers.iter().flat_map(|word| word.parse()).collect();
    let is_all = chosen.iter().any(|word| *word == "all");
    let is_wanted = |case: &&Case| match &names[..] {
        [] => is_all || !(case.is_slow || case.is_variant),
        names => names.iter().any(|name| case.name.contains(*name)),
    };
    let actions: Vec<_> = ACTIONS
        .into_iter()
        .filter(|action| chosen.iter().any(|word| word == action || *word == "all"))
        .collect();
    let rows: Vec<Row> = CASES
        .iter()
        .filter(is_wanted)
        .map(|case| {
            let few = case.is_slow && is_all;
            let is_part = !is_all && names.is_empty();
            sweep(case, if few { &[] } else { &actions }, &points, is_part)
        })
        .collect();
    table::print(&rows);
    if !rows.is_empty() && rows.iter().all(Row::is_good) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A prime that divides no number of runs, so that each run comes once.
const STRIDE: usize = 7919;
/// So many runs, or a sixth of more, are what a run without words has time for.
const MANY: usize = 400;
/// A worker's stage and its undisturbed run take as long as several runs.
const RUNS_OF_A_WORKER: usize = 10;

/// Shared by the workers of one case.
struct Work<'a> {
    case: &'a Case,
    faults: Vec<Fault>,
    /// How many of the faults are tried.
    runs: usize,
    next: AtomicUsize,
    row: Mutex<Row>,
}

/// With all points, or some.
fn sweep(case: &Case, actions: &[&'static str], some: &[usize], is_part: bool) -> Row {
    let since = Instant::now();
    let points = points_of(case);
    let in_turn = case.shares_points() && some.is_empty();
    let mut faults = fault::faults(points.len(), actions, in_turn);
    faults.retain(|fault| some.is_empty() || some.contains(&fault.point));
    let runs = match faults.len() {
        many if is_part && many > MANY => many.div_ceil(6),
        all => all,
    };
    println!("{}: {} points, {runs} runs", case.name, points.len());
    let row = Mutex::new(Row::new(case.name, &points));
    let work = Work {
        case,
        faults,
        runs,
        next: AtomicUsize::new(0),
        row,
    };
    // Most of the time is spent waiting: for answers to probes, for the second announcement, and for systemd.
    let share = if case.start.kubelet().is_some() { 8 } else { 5 };
    let workers = share * std::thread::available_parallelism().map_or(2, usize::from);
    let workers = workers.min(runs.div_ceil(RUNS_OF_A_WORKER));
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(|| work.carry_out()))));
    let mut row = work.row.into_inner().expect("no worker has failed");
    row.finish(since.elapsed());
    row
}

/// The points of an undisturbed run: the longest of several runs, because a wait makes a varying number of queries.
fn points_of(case: &Case) -> Vec<String> {
    const RUNS: usize = 3;
    let node = Node::new();
    let stage = Stage::new(&node, case.start);
    let undisturbed = |_| {
        stage.prepare();
        let run = stage.run(case.words, None);
        assert_eq!(run.code, Some(case.exit), "{}", run.transcript);
        assert!(
            !run.points.is_empty(),
            "netfix has no failure points: build it with --features failpoints"
        );
        run.points
    };
    (0..RUNS)
        .map(undisturbed)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

impl Work<'_> {
    fn next(&self) -> Option<Fault> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Spread over the points, so that errors at many neighbouring points show early.
        let spread = number * STRIDE % self.faults.len();
        (number < self.runs).then(|| self.faults[spread])
    }

    /// Takes one fault after the other until none is left; a stage on which something went wrong is not used again.
    fn carry_out(&self) {
        let mut next = self.next();
        while next.is_some() {
            let node = Node::new();
            let stage = Stage::new(&node, self.case.start);
            stage.prepare();
            let run = stage.run(self.case.words, None);
            assert_eq!(run.code, Some(self.case.exit), "{}", run.transcript);
            let reference = Picture::of(&stage);
            while let Some(fault) = next {
                let (run, mut what) = self.disturb(&stage, fault, &reference);
                next = self.next();
                if next.is_none() && what.is_empty() {
                    what = reference.missed_by(&stage, true);
                }
                let is_spoiled = !what.is_empty();
                self.note(fault, &run, what);
                if is_spoiled {
                    break;
                }
            }
        }
    }

    fn note(&self, fault: Fault, run: &Ran, what: Vec<String>) {
        let mut row = self.row.lock().expect("no worker has failed");
        row.runs += 1;
        if row.runs.is_multiple_of(500) {
            println!("{}: {} runs", self.case.name, row.runs);
        }
        row.missed += usize::from(!run.was_hit);
        if !what.is_empty() {
            let point = run.points.get(fault.point - 1).cloned().unwrap_or_default();
            row.find(Finding { fault, point, what });
        }
    }

    /// The run with the fault and, unless that one is complete, another one. Returns every difference from the goal.
    fn disturb(&self, stage: &Stage<'_>, fault: Fault, reference: &Picture) -> (Ran, Vec<String>) {
        stage.prepare();
        let before = stored::checkpoints(stage);
        let run = stage.run(self.case.words, Some(fault));
        let mut what = fault.must_not_end_like(&run, self.case.exit);
        what.extend(stored::lost(stage, &before));
        if run.code != Some(self.case.exit) {
            what.extend(kubelet::unguarded(stage));
            stage.wait_for_reload();
            let again = stage.run(self.case.words, None);
            if again
                .code
                .is_none_or(|code| !self.case.again.contains(&code))
            {
                what.push(format!(
                    "the second run ends with {:?}: {}",
                    again.code, again.transcript
                ));
            }
            if again
                .transcript
                .contains("neither COMMAND nor the rollback runs again")
            {
                what.extend(stage.repair_by_hand());
            }
        }
        let mut missed = reference.missed_by(stage, self.case.networks);
        if !missed.is_empty() && missed.iter().all(|one| is_of_record(one)) {
            // The next command with the lock completes the record of a window, and the next window removes its log in memory.
            for word in ["pause", "resume"] {
                stage.run(word, None);
            }
            missed = reference.missed_by(stage, self.case.networks);
        }
        what.extend(missed);
        if !what.is_empty() {
            what.push(format!("the disturbed run: {}", run.transcript));
        }
        (run, what)
    }
}

/// Whether a difference is what the end of a window may leave to the next command: its record in memory, and space for it.
fn is_of_record(difference: &str) -> bool {
    let lines = difference.lines().map(str::trim_start);
    let mut of_it = lines.map(|line| {
        line.contains("kubelet.window: ")
            || line.contains("kubelet.logs of no window: ")
            || line.ends_with("left: \".window.json.spare\"")
    });
    of_it.all(|is_of_it| is_of_it)
}
