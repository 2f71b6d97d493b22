//! Waits for events of the host's links and of the state directory, in poll(2) without a limit: while nothing happens, nothing runs.
//! A look is a process of its own, so this one stays small.

use std::collections::BTreeMap;
use std::env;
use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::clock::boottime;
use crate::context::ConfigSetting;
use crate::inventory::procfs;
use crate::kernel::Error;
use crate::kernel::events::{LinkChange, LinkEvents};
use crate::kernel::kmsg::KernelLogReader;
use crate::model::pod::identity::Holder;
use crate::model::window::GuardRecord;
use crate::model::{Exit, IfName};
use crate::store::HOLD;

/// This program, also after its file was replaced.
const OWN: &str = "/proc/self/exe";
/// The option of a look: it reads a [`LookInput`] and prints a [`LookOutput`].
pub(crate) const STEP: &str = "--step";
/// A driver makes several links, and a network manager follows it: so long without an event is quiet.
const QUIET: Duration = Duration::from_millis(300);
/// A look takes place even where events do not end.
const BURST: Duration = Duration::from_secs(5);
/// After a look that failed or could not observe every pod, the next one follows after so long, then after twice that, up to the most.
const RETRY: Duration = Duration::from_secs(1);
const MOST_RETRY: Duration = Duration::from_secs(300);
/// So many looks of `--once` may fail.
const MOST_FAILURES: u32 = 3;

/// What a look needs to know.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LookInput {
    /// What the configuration file sets.
    pub config: Vec<ConfigSetting>,
    /// The process that watches.
    pub watcher: Option<Holder>,
    /// What the last look left.
    pub record: Option<GuardRecord>,
    /// When links of the host were lost (`CLOCK_BOOTTIME`, milliseconds).
    pub losses: BTreeMap<IfName, u64>,
    /// The kernel's last record when nothing was lost.
    pub logged: Option<u64>,
}

/// What a look leaves.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LookOutput {
    /// For the next look.
    pub record: GuardRecord,
    /// The exit code of `--once`.
    pub exit: u8,
}

/// What the guard listens to.
struct Watch {
    links: LinkEvents,
    folder: OwnedFd,
    signals: UnixStream,
    /// `None` where the kernel's log cannot be read.
    kernel: Option<KernelLogReader>,
    input: LookInput,
    /// The looks in a row that failed, or could not observe every pod.
    failures: u32,
    /// When to look without an event.
    again: Option<Instant>,
    /// The exit code of `--once`.
    exit: u8,
}

/// Why the guard wakes up.
enum Woken {
    Look,
    End,
}

/// Watches until SIGTERM or SIGINT; before each look it asks for what the configuration file sets.
pub(crate) fn watch(
    folder: &Path,
    config: &mut dyn FnMut() -> Vec<ConfigSetting>,
) -> Result<(), Error> {
    let mut watch = Watch::start(folder)?;
    watch.input.watcher = Some(procfs::own());
    loop {
        watch.input.config = config();
        if watch.look()? {
            return Ok(());
        }
        if let Woken::End = watch.wait()? {
            return Ok(());
        }
    }
}

/// Watches until the watch after a restore is over, or a signal ends it; returns how it ends.
pub(crate) fn watch_restored(
    folder: &Path,
    config: &mut dyn FnMut() -> Vec<ConfigSetting>,
    restored: LookOutput,
) -> Result<u8, Error> {
    let mut watch = Watch::start(folder)?;
    watch.take(restored);
    while watch.is_watching() && watch.failures < MOST_FAILURES {
        if let Woken::End = watch.wait()? {
            break;
        }
        watch.input.config = config();
        if watch.look()? {
            break;
        }
    }
    let has_failed = watch.failures >= MOST_FAILURES;
    Ok(if has_failed {
        Exit::Failed as u8
    } else {
        watch.exit
    })
}

impl Watch {
    fn start(folder: &Path) -> Result<Self, Error> {
        let (signals, writer) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
            pipe::register(signal, writer.try_clone()?)?;
        }
        signals.set_nonblocking(true)?;
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let state = inotify::init(flags).map_err(io::Error::from)?;
        let wanted = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        inotify::add_watch(&state, folder, wanted).map_err(io::Error::from)?;
        Ok(Self {
            links: LinkEvents::subscribe()?,
            folder: state,
            signals,
            // Only the records before show the number of the last one.
            kernel: KernelLogReader::behind(0).ok(),
            input: LookInput::default(),
            failures: 0,
            again: None,
            exit: 0,
        })
    }

    /// Looks; returns whether a signal is to end the guard.
    fn look(&mut self) -> Result<bool, Error> {
        let (looked, is_over) = self.step()?;
        self.again = None;
        let is_sure = looked
            .as_ref()
            .is_some_and(|looked| !looked.record.is_unsure);
        if is_sure {
            self.failures = 0;
        } else {
            self.failures += 1;
        }
        if let Some(looked) = looked {
            self.take(looked);
        } else if let Some(record) = &mut self.input.record {
            record.is_waiting = true;
        }
        if !is_sure {
            let pause = RETRY * 2_u32.saturating_pow(self.failures.min(16) - 1);
            let retry = Instant::now() + pause.min(MOST_RETRY);
            self.again = Some(self.again.map_or(retry, |again| again.min(retry)));
        }
        Ok(is_over)
    }

    fn take(&mut self, LookOutput { record, exit }: LookOutput) {
        if !record.is_waiting {
            self.input.losses.clear();
            self.input.logged = self.kernel.as_mut().and_then(KernelLogReader::last);
        }
        let after = record.next_look().map(|at| at.saturating_sub(boottime()));
        self.again = after.map(|after| Instant::now() + Duration::from_millis(after));
        self.input.record = Some(record);
        self.exit = exit;
    }

    fn is_watching(&self) -> bool {
        let record = self.input.record.as_ref();
        record.is_some_and(|record| record.watch.is_some())
    }

    /// Runs a look in a process of its own. A signal is passed on, and the look ends as a restore does then.
    fn step(&mut self) -> Result<(Option<LookOutput>, bool), Error> {
        let mut child = Command::new(OWN)
            .args(env::args_os().skip(1))
            .arg(STEP)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = serde_json::to_vec(&self.input).unwrap_or_default();
        if let Some(mut stdin) = child.stdin.take() {
            // One that has died at once has no reader.
            let _ = stdin.write_all(&input);
        }
        let (output, is_over) = self.output(&mut child)?;
        let _ = child.wait();
        Ok((serde_json::from_slice(&output).ok(), is_over))
    }

    /// All that a look prints, until it has ended.
    fn output(&mut self, child: &mut Child) -> Result<(Vec<u8>, bool), Error> {
        let (mut output, mut is_over) = (Vec::new(), false);
        let Some(mut stdout) = child.stdout.take() else {
            return Ok((output, is_over));
        };
        loop {
            let ready = wait_for(&[stdout.as_fd(), self.signals.as_fd()], None)?;
            if ready[1] {
                is_over = true;
                self.take_signal();
                let pid = Pid::from_raw(child.id().cast_signed());
                let _ = kill(pid, Signal::SIGTERM);
            }
            if ready[0] {
                let mut chunk = [0; 4096];
                match stdout.read(&mut chunk)? {
                    0 => return Ok((output, is_over)),
                    length => output.extend_from_slice(&chunk[..length]),
                }
            }
        }
    }

    fn take_signal(&mut self) {
        let _ = self.signals.read(&mut [0; 16]);
    }

    /// Waits for something that may be a loss, or its end.
    fn wait(&mut self) -> Result<Woken, Error> {
        loop {
            let limit = self.again;
            let fds = [
                self.signals.as_fd(),
                self.links.as_fd(),
                self.folder.as_fd(),
            ];
            let ready = wait_for(&fds, limit)?;
            if ready[0] {
                return Ok(Woken::End);
            }
            let has_passed = limit.is_some_and(|limit| Instant::now() >= limit);
            if has_passed && !ready[1] && !ready[2] {
                return Ok(Woken::Look);
            }
            let is_about_pods = ready[1] && self.links_matter()?;
            let is_about_state = ready[2] && self.state_matters();
            if is_about_pods || is_about_state {
                self.join_burst()?;
                return Ok(Woken::Look);
            }
        }
    }

    /// Waits until no event under pods has come for a moment: those of other links do not end on a host where pods come and go.
    fn join_burst(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let (most, mut limit) = (begin + BURST, begin + QUIET);
        loop {
            let ready = wait_for(&[self.links.as_fd(), self.signals.as_fd()], Some(limit))?;
            if ready[1] || Instant::now() >= limit {
                return Ok(());
            }
            if ready[0] && self.links_matter()? {
                limit = most.min(Instant::now() + QUIET);
            }
        }
    }

    /// Takes the events of links; returns whether one may matter to pods.
    fn links_matter(&mut self) -> Result<bool, Error> {
        let changes = match self.links.changes() {
            Ok(changes) => changes,
            // Some were lost.
            Err(Error::Kernel(Errno::ENOBUFS)) => return Ok(true),
            Err(error) => return Err(error),
        };
        let now = boottime();
        let record = self.input.record.as_ref();
        let is_under_pods = |name| record.is_none_or(|record| record.settled.contains_key(name));
        let gone = changes.iter().filter(|change| change.index.is_none());
        for change in gone.filter(|change| is_under_pods(&change.name)) {
            self.input.losses.entry(change.name.clone()).or_insert(now);
        }
        Ok(changes.iter().any(|change| matters(record, change)))
    }

    /// Takes the events of the state directory; returns whether a snapshot came or a window ended.
    fn state_matters(&mut self) -> bool {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.folder, &mut space);
        let mut matter = false;
        while let Ok(event) = events.next() {
            let name = event.file_name().map(CStr::to_bytes);
            let is_new = event.events().contains(ReadFlags::MOVED_TO);
            let wanted = if is_new { "node.json" } else { "window.json" };
            let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let is_wanted = |name: &[u8]| name == wanted.as_bytes() || name == HOLD.as_bytes();
            matter |= is_lost || name.is_some_and(is_wanted);
        }
        matter
    }
}

/// Whether an event may be a loss under pods, or the end of one.
fn matters(record: Option<&GuardRecord>, change: &LinkChange) -> bool {
    let Some(record) = record else { return true };
    if record.is_waiting {
        return true;
    }
    match (record.settled.get(&change.name), change.index) {
        (Some(known), Some(now)) => *known != now,
        (Some(_), None) => true,
        (None, now) => record.has_devices_inside && now.is_some(),
    }
}

/// Which of these can be read; none where the limit has passed.
fn wait_for(fds: &[BorrowedFd<'_>], limit: Option<Instant>) -> Result<Vec<bool>, Error> {
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        let left = limit.saturating_duration_since(Instant::now());
        // poll(2) counts whole milliseconds: a limit that is not over yet must not make it return at once.
        let left = left.as_micros().div_ceil(1000);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    });
    let mut polled: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    match poll(&mut polled, timeout) {
        // The signal is in its pipe.
        Err(Errno::EINTR) => {}
        ready => {
            ready?;
        }
    }
    let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
    Ok(polled.iter().map(is_ready).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_links_under_pods_matter_while_all_is_well() {
        let name = |text: &str| -> IfName { text.parse().unwrap() };
        let of = |text: &str, index| LinkChange {
            name: name(text),
            index,
        };
        let mut record = GuardRecord {
            settled: [(name("eth0"), 2)].into(),
            ..GuardRecord::default()
        };
        let matter = |record: &GuardRecord, change| matters(Some(record), &change);
        for (change, expected) in [
            (of("eth0", Some(2)), false),
            (of("eth0", Some(7)), true),
            (of("eth0", None), true),
            (of("veth1", Some(8)), false),
            (of("veth1", None), false),
        ] {
            assert_eq!(matter(&record, change.clone()), expected, "{change:?}");
        }
        record.has_devices_inside = true;
        assert!(matter(&record, of("eth7", Some(8))));
        record.is_waiting = true;
        assert!(matter(&record, of("veth1", None)));
    }
}
