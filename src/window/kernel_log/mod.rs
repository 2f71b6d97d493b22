//! Reads the kernel's log while a window or a restore is at work.

#[cfg(test)]
mod cases;
pub(crate) mod explain;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::boottime;
use crate::kernel::kmsg::KernelLogReader;
use crate::kernel::words;
use crate::model::window::{KernelLog, KernelNames};
use crate::window::background::Background;
use crate::window::event::{Event, TARGET};
use crate::window::window_log::WindowLog;

/// How often the log is read.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reads the log of the kernel beside the work of a window.
#[derive(Debug)]
pub(crate) struct KernelWatch {
    log: Arc<Mutex<KernelLog>>,
    /// Has read to the end when this is dropped.
    thread: Background,
}

impl KernelWatch {
    /// Continues what is `known`, in a window that began then (`CLOCK_BOOTTIME`, milliseconds), and logs each new line.
    pub(crate) fn start(
        reader: io::Result<KernelLogReader>,
        names: KernelNames,
        known: KernelLog,
        began: u64,
        to: WindowLog,
    ) -> Self {
        let unread = reader.as_ref().err().map(words);
        let log = Arc::new(Mutex::new(KernelLog { unread, ..known }));
        let shared = log.clone();
        let thread = Background::start(move |stop| {
            let Ok(mut reader) = reader else { return };
            loop {
                let is_last = stop.load(Ordering::SeqCst);
                reader.read(|text| {
                    let at = boottime().saturating_sub(began);
                    let mut log = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(line) = log.take(at, text, &names) {
                        let event = Event::KernelLogged(line);
                        log::info!(target: TARGET, "{event}");
                        to.line(&event);
                    }
                });
                if is_last {
                    return;
                }
                thread::park_timeout(INTERVAL);
            }
        });
        Self { log, thread }
    }

    /// What was read so far; `None` where that is nothing.
    pub(crate) fn seen(&self) -> Option<KernelLog> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        Some(log.clone()).filter(|log| !log.is_empty())
    }

    /// Reads to the end.
    pub(crate) fn end(self) -> Option<KernelLog> {
        let Self { log, thread } = self;
        drop(thread);
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(log).filter(|log| !log.is_empty())
    }
}

/// All that the kernel has logged since a reader was opened, as read at this time. Most often that is nothing, and needs no `names`.
pub(crate) fn read(
    reader: &mut KernelLogReader,
    at: u64,
    names: impl FnOnce() -> KernelNames,
) -> KernelLog {
    let (mut log, mut texts) = (KernelLog::default(), Vec::new());
    reader.read(|text| texts.push(text.to_owned()));
    if texts.is_empty() {
        return log;
    }
    let names = names();
    for text in texts {
        log.take(at, &text, &names);
    }
    log
}
