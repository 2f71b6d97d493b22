//! The log of what netfix does: to journald where it runs, with fields to search by, and with `-v` to stderr.
//!
//! The log never delays a command's work: a thread of its own writes to journald. The end of netfix waits for it as long as
//! journald takes entries, and reports on stderr how many it did not take. Problems, steps and phases never go to stderr
//! from here: results and messages have them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use systemd_journal_logger::JournalLog;

use crate::kernel::trace;
use crate::model::manager::Manager;
use crate::model::text::{count, duration, escape};
use crate::model::{Bytes, IfName, PodId, PodInfo, Problem, Severity};
use crate::plan::Step;

/// journald's socket (systemd's "Native Journal Protocol").
const SOCKET: &str = "/run/systemd/journal/socket";
/// Targets of what the answer has already.
const PROBLEM: &str = "netfix::problem";
const STEP: &str = "netfix::step";
/// Target of a command's begin and end.
const COMMAND: &str = "netfix::command";

/// So many steps at once are logged; a pod with tens of thousands would leave journald no time for the others.
const MOST_STEPS: usize = 1000;
/// More entries are not kept for a journald that is slow: each is some hundred bytes.
const BACKLOG: usize = 1 << 16;
/// How long the end of netfix waits for a journald that takes no entry at all.
const STALLED: Duration = Duration::from_secs(1);
/// How long it waits for one that takes entries slowly.
const SLOW: Duration = Duration::from_secs(10);

/// Entries that the thread has yet to write.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Entries that journald, which runs, did not take.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Where records go.
struct Outlets {
    journal: Option<Sender<Letter>>,
    verbose: u8,
}

/// What the thread that writes to journald is given.
enum Letter {
    Entry(Entry),
    /// Everything before this is written.
    Flush(Sender<()>),
}

/// A record that outlives its making.
struct Entry {
    level: Level,
    target: String,
    message: String,
    fields: Vec<(String, String)>,
}

/// Opens the log; from level 1 on (`-v`) a command's begin and end are on stderr too, from level 2 on (`-vv`) netlink
/// messages.
pub fn start(verbose: u8) {
    let journal = Path::new(SOCKET).exists().then(start_writer).flatten();
    let most = match (&journal, verbose) {
        (_, 2..) => LevelFilter::Trace,
        (Some(_), _) => LevelFilter::Debug,
        (None, 1) => LevelFilter::Info,
        (None, 0) => LevelFilter::Off,
    };
    if log::set_boxed_logger(Box::new(Outlets { journal, verbose })).is_ok() {
        log::set_max_level(most);
    }
}

fn start_writer() -> Option<Sender<Letter>> {
    let (sender, letters) = channel();
    let writer = thread::Builder::new().name("journal".to_owned());
    writer
        .spawn(move || write(&letters))
        .is_ok()
        .then_some(sender)
}

/// Writes to journald, which may be slow, stopped, or started again at any time.
fn write(letters: &Receiver<Letter>) {
    let mut journal = None;
    for letter in letters {
        match letter {
            Letter::Entry(entry) => {
                journal = journal.or_else(|| JournalLog::empty().ok());
                journal = journal
                    .take()
                    .map(|log: JournalLog| log.with_syslog_identifier("netfix".to_owned()));
                if journal.as_ref().is_some_and(|log| entry.send(log).is_err()) {
                    LOST.fetch_add(1, Ordering::Relaxed);
                }
                WAITING.fetch_sub(1, Ordering::Relaxed);
            }
            Letter::Flush(done) => drop(done.send(())),
        }
    }
}

impl Entry {
    fn of(record: &Record<'_>) -> Self {
        let mut fields = Fields(Vec::new());
        // Collecting cannot fail.
        let _ = record.key_values().visit(&mut fields);
        Self {
            level: record.level(),
            target: record.target().to_owned(),
            message: record.args().to_string(),
            fields: fields.0,
        }
    }

    fn send(&self, journal: &JournalLog) -> io::Result<()> {
        let mut record = Record::builder();
        record
            .level(self.level)
            .target(&self.target)
            .key_values(&self.fields);
        journal.journal_send(&record.args(format_args!("{}", self.message)).build())
    }

    /// One line, whatever is in it.
    fn line(&self) -> String {
        let who = if self.target == trace::TARGET {
            "netlink"
        } else {
            "netfix:"
        };
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        escape(&format!("{who} {}{}", self.message, fields.concat())) + "\n"
    }
}

struct Fields(Vec<(String, String)>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push((key.to_string(), value.to_string()));
        Ok(())
    }
}

impl Outlets {
    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let least = match metadata.target() {
            COMMAND => 1,
            trace::TARGET => 2,
            _ => return false,
        };
        self.verbose >= least
    }

    fn keeps(&self, metadata: &Metadata<'_>) -> bool {
        self.journal.is_some() && metadata.level() <= Level::Debug
    }
}

impl Log for Outlets {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries have logs of their own, which are of no use to an administrator.
        let target = metadata.target();
        let is_ours =
            target == trace::TARGET || target == "netfix" || target.starts_with("netfix::");
        is_ours && (self.shows(metadata) || self.keeps(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let entry = Entry::of(record);
        if self.shows(record.metadata()) {
            let _ = io::stderr().write_all(entry.line().as_bytes());
        }
        if self.keeps(record.metadata()) {
            self.hand_over(entry);
        }
    }

    fn flush(&self) {
        let Some(journal) = &self.journal else { return };
        let (done, all_written) = channel();
        if journal.send(Letter::Flush(done)).is_ok() {
            wait_for_journald(&all_written);
        }
        let lost = LOST.swap(0, Ordering::Relaxed) + WAITING.load(Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(
                io::stderr(),
                "netfix: log entries lost: {lost}. journald did not take them. Run `systemctl status systemd-journald`"
            );
        }
    }
}

impl Outlets {
    fn hand_over(&self, entry: Entry) {
        let Some(journal) = &self.journal else { return };
        if WAITING.load(Ordering::Relaxed) >= BACKLOG {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        }
        WAITING.fetch_add(1, Ordering::Relaxed);
        // The thread ends with the process only.
        let _ = journal.send(Letter::Entry(entry));
    }
}

/// Until all is written, or journald does not get on.
fn wait_for_journald(all_written: &Receiver<()>) {
    let end = Instant::now() + SLOW;
    let mut before = WAITING.load(Ordering::Relaxed);
    while all_written.recv_timeout(STALLED).is_err() {
        let now = WAITING.load(Ordering::Relaxed);
        if now == before || Instant::now() >= end {
            return;
        }
        before = now;
    }
}

/// A record with fields that are known only when it is made.
fn record(level: Level, target: &str, fields: &[(&str, &str)], message: &dyn std::fmt::Display) {
    let mut record = Record::builder();
    record.level(level).target(target).key_values(&fields);
    log::logger().log(&record.args(format_args!("{message}")).build());
}

/// A command begins that changes something.
pub fn begins(command: &str) {
    log::info!(target: COMMAND, COMMAND = command; "{command} begins");
}

/// A command continues the window of a process that is gone.
pub(crate) fn continues(command: &str, window: &str) {
    log::info!(target: COMMAND, COMMAND = command; "{command} continues the interrupted window {window}");
}

/// netfix waits until a network manager has brought a link back.
pub(crate) fn waits(link: &IfName, manager: Manager, limit: Duration) {
    let (link, limit) = (link.to_string(), duration(limit));
    let manager = manager.to_string();
    log::info!(
        target: COMMAND, LINK = link, MANAGER = manager;
        "waiting up to {limit} for {manager} to bring back {link}"
    );
}

/// A restore is done, and netfix watches whether anything is lost again.
pub(crate) fn watches(length: Duration) {
    let length = duration(length);
    log::info!(target: COMMAND, "watching {length} for another loss");
}

/// How a command ended.
pub struct Ended<'a> {
    /// The command's name.
    pub command: &'a str,
    /// Its exit code.
    pub exit: u8,
    /// The pods of its answer, and a path to the namespace of each.
    pub pods: BTreeMap<&'a PodId, (&'a PodInfo, Option<&'a Bytes>)>,
    /// What went wrong.
    pub problems: &'a [Problem],
    /// Whether the command changes something. The notes of a command that only reads are left out: cron runs it often.
    pub changes: bool,
    /// How long it took.
    pub took: Duration,
}

/// A command has ended.
pub fn ends(ended: &Ended<'_>) {
    if !log::log_enabled!(target: COMMAND, Level::Info) {
        return;
    }
    let least = if ended.changes {
        Severity::Info
    } else {
        Severity::Warning
    };
    let problems = ended.problems.iter();
    problems
        .filter(|problem| problem.severity >= least)
        .for_each(|problem| log_problem(problem, ended));
    let Ended {
        command,
        exit,
        pods,
        problems,
        ..
    } = ended;
    let (pods, problems) = (count(pods.len(), "pod"), count(problems.len(), "problem"));
    let took = ended.took.as_millis();
    log::info!(
        target: COMMAND, COMMAND = command, EXIT = exit;
        "{command} ends with exit code {exit} after {took} ms: {pods}, {problems}"
    );
}

fn log_problem(problem: &Problem, ended: &Ended<'_>) {
    let level = match problem.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warn,
        Severity::Info => Level::Info,
    };
    let code = problem.code().to_string();
    let mut fields = vec![("COMMAND", ended.command), ("CODE", &code)];
    let known = problem.pod.as_ref().and_then(|id| ended.pods.get(id));
    let title = known.map(|(info, _)| info.title());
    let netns = known.and_then(|(_, netns)| Some(netns.as_ref()?.to_string()));
    if let Some(id) = &problem.pod {
        fields.push(("POD", id.as_str()));
        fields.extend(title.as_deref().map(|title| ("POD_NAME", title)));
        fields.extend(netns.as_deref().map(|netns| ("NETNS", netns)));
    }
    let object = escape(&problem.object.text());
    if !object.is_empty() {
        fields.push(("OBJECT", &object));
    }
    record(level, PROBLEM, &fields, &problem.line(title.as_deref()));
}

/// Steps that were carried out, in a pod or on the host.
pub(crate) fn applied<'a>(
    pod: Option<(&PodInfo, &Bytes)>,
    steps: impl IntoIterator<Item = &'a Step>,
) {
    if !log::log_enabled!(target: STEP, Level::Debug) {
        return;
    }
    let title = pod.map(|(info, _)| info.title()).unwrap_or_default();
    let netns = pod.map(|(_, netns)| netns.to_string()).unwrap_or_default();
    let mut fields = Vec::new();
    if let Some((info, _)) = pod {
        fields.extend([
            ("POD", info.id.as_str()),
            ("POD_NAME", &title),
            ("NETNS", &netns),
        ]);
    }
    let mut steps = steps.into_iter();
    for step in steps.by_ref().take(MOST_STEPS) {
        record(Level::Debug, STEP, &fields, step);
    }
    let rest = steps.count();
    if rest > 0 {
        let rest = format!("{} more, not logged one by one", count(rest, "step"));
        record(Level::Debug, STEP, &fields, &rest);
    }
}
