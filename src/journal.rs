//! The log of what netfix does: to journald where it runs, with fields to search by, and with `-v` to stderr.
//!
//! Whatever becomes of the log, the command goes on: journald is written to by a thread of its own, and what it does not
//! take in time is lost. Problems, steps and phases never go to stderr from here: the answer and the talk have them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use systemd_journal_logger::JournalLog;

use crate::kernel::trace;
use crate::model::{PodInfo, Problem, Severity};
use crate::plan::Step;
use crate::report::Document;

/// journald's socket (systemd's "Native Journal Protocol").
const SOCKET: &str = "/run/systemd/journal/socket";
/// Targets of what the answer has already.
const PROBLEM: &str = "netfix::problem";
const STEP: &str = "netfix::step";
/// Target of a command's begin and end.
const COMMAND: &str = "netfix::command";

/// Records that journald has not taken yet; more are not kept for it.
const BACKLOG: usize = 4096;
/// How long the end of netfix waits for journald to take the last records.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where records go.
struct Outlets {
    journal: Option<SyncSender<Letter>>,
    verbose: bool,
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

/// Opens the log; `verbose` shows on stderr what is not in the answer, netlink messages above all.
pub fn start(verbose: bool) {
    let journal = Path::new(SOCKET).exists().then(start_writer).flatten();
    let most = match (&journal, verbose) {
        (_, true) => LevelFilter::Trace,
        (Some(_), false) => LevelFilter::Debug,
        (None, false) => LevelFilter::Off,
    };
    if log::set_boxed_logger(Box::new(Outlets { journal, verbose })).is_ok() {
        log::set_max_level(most);
    }
}

fn start_writer() -> Option<SyncSender<Letter>> {
    let (sender, letters) = sync_channel(BACKLOG);
    let writer = thread::Builder::new().name("journal".to_owned());
    writer.spawn(move || write(&letters)).is_ok().then_some(sender)
}

/// Writes to journald, which may be slow, stopped, or started again at any time.
fn write(letters: &Receiver<Letter>) {
    let mut journal = None;
    for letter in letters {
        match letter {
            Letter::Entry(entry) => {
                journal = journal.or_else(|| JournalLog::empty().ok());
                journal =
                    journal.take().map(|log: JournalLog| log.with_syslog_identifier("netfix".to_owned()));
                if let Some(journal) = &journal {
                    entry.send(journal);
                }
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

    fn send(&self, journal: &JournalLog) {
        let mut record = Record::builder();
        record.level(self.level).target(&self.target).key_values(&self.fields);
        let _ = journal.journal_send(&record.args(format_args!("{}", self.message)).build());
    }

    /// One line, whatever is in it.
    fn line(&self) -> String {
        let who = if self.target == trace::TARGET { "netlink" } else { "netfix:" };
        let fields: Vec<String> = self.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let plain = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
        format!("{who} {}{}", self.message, fields.concat()).chars().map(plain).collect::<String>() + "\n"
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
        self.verbose && [trace::TARGET, COMMAND].contains(&metadata.target())
    }

    fn keeps(&self, metadata: &Metadata<'_>) -> bool {
        self.journal.is_some() && metadata.level() <= Level::Debug
    }
}

impl Log for Outlets {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries have logs of their own, which say nothing to an administrator.
        let target = metadata.target();
        let is_ours = target == trace::TARGET || target == "netfix" || target.starts_with("netfix::");
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
        if let Some(journal) = self.journal.as_ref().filter(|_| self.keeps(record.metadata())) {
            let _ = journal.try_send(Letter::Entry(entry));
        }
    }

    fn flush(&self) {
        let Some(journal) = &self.journal else { return };
        let (done, all_written) = channel();
        if journal.try_send(Letter::Flush(done)).is_ok() {
            let _ = all_written.recv_timeout(PATIENCE);
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

/// A command has ended. Of one that only looked, what is merely worth knowing is left out: cron runs it all the time.
pub fn ends(document: &Document, changes: bool, took: Duration) {
    if !log::log_enabled!(target: COMMAND, Level::Info) {
        return;
    }
    let least = if changes { Severity::Info } else { Severity::Warning };
    for problem in document.problems.iter().filter(|problem| problem.severity >= least) {
        tell(problem, document);
    }
    let Document { command, exit, pods, problems, .. } = document;
    let (pods, problems, took) = (pods.len(), problems.len(), took.as_millis());
    log::info!(
        target: COMMAND, COMMAND = command, EXIT = exit;
        "{command} ends with exit code {exit} after {took} ms: {pods} pods, {problems} problems"
    );
}

fn tell(problem: &Problem, document: &Document) {
    let level = match problem.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warn,
        Severity::Info => Level::Info,
    };
    let code = problem.code.to_string();
    let mut fields = vec![("COMMAND", document.command), ("CODE", &code)];
    if let Some(id) = &problem.pod {
        fields.push(("POD", id.as_str()));
        let view = document.pods.iter().find(|view| view.info.id == *id);
        let netns = view.and_then(|view| view.netns.as_deref());
        fields.extend(netns.map(|netns| ("NETNS", netns)));
    }
    if !problem.object.is_empty() {
        fields.push(("OBJECT", &problem.object));
    }
    record(level, PROBLEM, &fields, problem);
}

/// Steps that were carried out, in a pod or on the host.
pub fn applied<'a>(pod: Option<(&PodInfo, &str)>, steps: impl IntoIterator<Item = &'a Step>) {
    if !log::log_enabled!(target: STEP, Level::Debug) {
        return;
    }
    let fields =
        pod.map(|(info, netns)| vec![("POD", info.id.as_str()), ("NETNS", netns)]).unwrap_or_default();
    for step in steps {
        record(Level::Debug, STEP, &fields, step);
    }
}
