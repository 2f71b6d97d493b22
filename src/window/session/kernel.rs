//! The kernel's log in the record of a window.

use std::io;

use crate::kernel::kmsg::KernelLogReader;
use crate::model::window::{KernelLog, KernelNames};
use crate::window::kernel_log::KernelWatch;
use crate::window::session::WindowSession;

impl WindowSession {
    /// Reads the kernel's log from here on, unless it does.
    pub(crate) fn watch_kernel(
        &mut self,
        names: KernelNames,
        reader: impl FnOnce() -> io::Result<KernelLogReader>,
    ) {
        if self.kernel.is_none() {
            let known = self.window.kernel.clone().unwrap_or_default();
            let (began, log) = (self.window.started_boottime, self.log_file.for_thread());
            let watch = KernelWatch::start(reader(), names, known, began, log);
            self.kernel = Some(watch);
        }
    }

    /// Records what was read without a watch.
    pub(crate) fn note_kernel_log(&mut self, log: Option<KernelLog>) {
        self.window.kernel = log.filter(|log| !log.is_empty());
    }

    /// Records what the kernel has logged until now.
    pub(crate) fn end_kernel_watch(&mut self) {
        if let Some(watch) = self.kernel.take() {
            self.window.kernel = watch.end();
        }
    }

    /// Records what is known while the watch goes on.
    pub(super) fn note_kernel(&mut self) {
        if let Some(watch) = &self.kernel {
            self.window.kernel = watch.seen();
        }
    }
}
