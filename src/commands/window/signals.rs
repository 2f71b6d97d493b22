//! Signals during a window: none of them may end netfix where kubelet would stay behind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Arriving};

/// From so many on, the user's command is ended the hard way.
const ENOUGH: usize = 3;

#[derive(Debug, Default)]
struct Seen {
    count: AtomicUsize,
    /// How many of them have been heeded.
    heeded: AtomicUsize,
    /// The one that came last.
    last: AtomicI32,
    /// The process group of the user's command while it runs, otherwise 0.
    group: AtomicI32,
}

/// Takes SIGINT and SIGTERM as a wish to come to an end, and passes them on to the user's command. A lost terminal
/// (SIGHUP) is no reason to do anything.
#[derive(Debug)]
pub(in crate::commands) struct Signals {
    seen: Arc<Seen>,
    handle: Handle,
}

impl Signals {
    pub(in crate::commands) fn catch() -> io::Result<Self> {
        let mut arriving = Arriving::new([SIGINT, SIGTERM, SIGHUP])?;
        let (seen, handle) = (Arc::new(Seen::default()), arriving.handle());
        let noted = seen.clone();
        thread::spawn(move || {
            for number in arriving.forever().filter(|number| *number != SIGHUP) {
                noted.arrived(number);
            }
        });
        Ok(Self { seen, handle })
    }

    /// Whether somebody wants an end of what is being done.
    pub(in crate::commands) fn interrupted(&self) -> bool {
        self.seen.count.load(Ordering::SeqCst) > self.seen.heeded.load(Ordering::SeqCst)
    }

    /// The wish is granted; what comes next is not meant by it.
    pub(in crate::commands) fn heed(&self) {
        self.seen.heeded.store(self.seen.count.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// The process group that signals are passed on to from here on; `None`: nobody.
    pub(in crate::commands) fn pass_on_to(&self, group: Option<u32>) {
        let group = group.and_then(|group| i32::try_from(group).ok()).unwrap_or_default();
        self.seen.group.store(group, Ordering::SeqCst);
        // One that came while nobody was there to be told.
        if self.interrupted() {
            self.seen.pass_on(self.seen.last.load(Ordering::SeqCst), self.seen.count.load(Ordering::SeqCst));
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl Seen {
    fn arrived(&self, number: i32) {
        self.last.store(number, Ordering::SeqCst);
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.pass_on(number, count);
    }

    fn pass_on(&self, number: i32, count: usize) {
        let group = self.group.load(Ordering::SeqCst);
        let signal = if count >= ENOUGH { Ok(Signal::SIGKILL) } else { Signal::try_from(number) };
        if let (1.., Ok(signal)) = (group, signal) {
            // A command that has just ended needs none.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}
