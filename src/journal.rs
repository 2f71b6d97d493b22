//! The log of what netfix does: to journald where it runs, with fields to search by, and with `-v` to stderr.
//!
//! The log never delays a command's work: an entry that journald cannot take at once is sent with a later one. The end of netfix
//! waits for journald as long as it takes entries, and reports on stderr how many it did not take. Problems, steps and phases
//! never go to stderr from here: results and messages have them.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};

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

/// Where records go.
struct Outlets {
    journal: Option<Mutex<Journal>>,
    verbose: u8,
}

/// The way to journald, which may be slow, stopped, or started again at any time.
struct Journal {
    socket: UnixDatagram,
    /// Entries that journald has yet to take: the kernel queues only a few for it.
    waiting: VecDeque<Vec<u8>>,
    /// Entries that journald, which runs, did not take.
    lost: usize,
}

/// Opens the log; from level 1 on (`-v`) a command's begin and end are on stderr too, from level 2 on (`-vv`) netlink
/// messages.
pub fn start(verbose: u8) {
    let journal = Path::new(SOCKET).exists().then(Journal::open);
    let journal = journal.and_then(Result::ok).map(Mutex::new);
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

impl Journal {
    fn open() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            waiting: VecDeque::new(),
            lost: 0,
        })
    }

    fn write(&mut self, entry: Vec<u8>) {
        if self.waiting.len() >= BACKLOG {
            self.lost += 1;
            return;
        }
        self.waiting.push_back(entry);
        while self.send_first() {}
    }

    /// Sends the entry that waits the longest; whether journald took it, or will never take it.
    fn send_first(&mut self) -> bool {
        let Some(entry) = self.waiting.front() else {
            return false;
        };
        match self.socket.send_to(entry, SOCKET) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return false,
                ErrorKind::Interrupted => return true,
                // journald does not run.
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => {}
                _ => self.lost += 1,
            },
        }
        self.waiting.pop_front();
        true
    }

    /// Waits until journald has taken all entries, or takes none. Returns how many are lost.
    fn finish(&mut self) -> usize {
        let end = Instant::now() + SLOW;
        let can_wait = self.socket.set_nonblocking(false).is_ok()
            && self.socket.set_write_timeout(Some(STALLED)).is_ok();
        while can_wait && Instant::now() < end && self.send_first() {}
        std::mem::take(&mut self.lost) + std::mem::take(&mut self.waiting).len()
    }
}

/// The fields of a record.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(record: &Record<'_>) -> Self {
        let mut fields = Self(Vec::new());
        // Collecting cannot fail.
        let _ = record.key_values().visit(&mut fields);
        fields
    }
}

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push((key.to_string(), value.to_string()));
        Ok(())
    }
}

/// An entry in journald's protocol: of each field its name, the length of its value, and the value.
fn entry(record: &Record<'_>) -> Vec<u8> {
    // systemd's priorities: an error has 3.
    let priority = record.level() as usize + 2;
    let own = [
        ("PRIORITY", priority.to_string()),
        ("MESSAGE", record.args().to_string()),
        ("SYSLOG_PID", std::process::id().to_string()),
        ("SYSLOG_IDENTIFIER", "netfix".to_owned()),
        ("TARGET", record.target().to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let mut entry = Vec::new();
    for (name, value) in own.into_iter().chain(Fields::of(record).0) {
        entry.extend_from_slice(name.as_bytes());
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        entry.extend_from_slice(value.as_bytes());
        entry.push(b'\n');
    }
    entry
}

/// The line of a record on stderr. It stays one line, because control characters are escaped.
fn line(record: &Record<'_>) -> String {
    let who = if record.target() == trace::TARGET {
        "netlink"
    } else {
        "netfix:"
    };
    let fields: Vec<String> = Fields::of(record)
        .0
        .iter()
        .map(|(key, value)| format!(" {key}={value}"))
        .collect();
    escape(&format!("{who} {}{}", record.args(), fields.concat())) + "\n"
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

    /// The journal, if such a record goes there.
    fn journal(&self, metadata: &Metadata<'_>) -> Option<&Mutex<Journal>> {
        let journal = self.journal.as_ref();
        journal.filter(|_| metadata.level() <= Level::Debug)
    }
}

impl Log for Outlets {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries have logs of their own, which are of no use to an administrator.
        let target = metadata.target();
        let is_ours =
            target == trace::TARGET || target == "netfix" || target.starts_with("netfix::");
        is_ours && (self.shows(metadata) || self.journal(metadata).is_some())
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        if self.shows(record.metadata()) {
            let _ = io::stderr().write_all(line(record).as_bytes());
        }
        if let Some(journal) = self.journal(record.metadata()) {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.write(entry(record));
        }
    }

    fn flush(&self) {
        let Some(journal) = &self.journal else { return };
        let lost = journal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .finish();
        if lost > 0 {
            let _ = writeln!(
                io::stderr(),
                "netfix: log entries lost: {lost}. journald did not take them. Run `systemctl status systemd-journald`"
            );
        }
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

/// What `netfix guard` has decided.
pub(crate) fn decides(command: &str, text: &str) {
    log::info!(target: COMMAND, COMMAND = command; "{command}: {text}");
}

/// What a command has found before its end.
pub(crate) fn finds(command: &str, problem: &Problem) {
    let ended = CommandEnd {
        command,
        exit: 0,
        pods: BTreeMap::new(),
        problems: &[],
        changes: true,
        took: Duration::ZERO,
    };
    log_problem(problem, &ended);
}

/// How a command ended.
pub struct CommandEnd<'a> {
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
pub fn ends(ended: &CommandEnd<'_>) {
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
    let CommandEnd {
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

fn log_problem(problem: &Problem, ended: &CommandEnd<'_>) {
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
