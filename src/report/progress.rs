//! Lines on stderr while a command works, and the bar on a terminal that shows progress.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::model::IfName;
use crate::progress::{Listener, Progress, Stage, Wait};
use crate::report::text::{duration, join};

/// A bar on stderr, where that is wanted, or silence.
#[must_use]
pub fn listener(shows_bar: bool, ascii: bool) -> Box<dyn Listener> {
    if shows_bar {
        Box::new(Bar::new(ascii))
    } else {
        Box::new(Silent)
    }
}

/// The bar that is on the terminal now: lines of others must not run into it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes a line to stderr, above the bar where there is one.
pub fn line(text: &str) {
    let write = || {
        let _ = writeln!(io::stderr(), "{text}");
    };
    let bar = SHOWN.lock().ok().and_then(|bar| bar.clone());
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Another netfix has the lock.
pub fn waits_for_lock(holder: &str) {
    line(&format!("netfix: waiting for the lock held by {holder}"));
}

/// The configuration file cannot be used, and the command continues without it.
pub fn config_unused(error: &str) {
    line(&format!("netfix: {error}; continuing without this file"));
}

/// A command was not started.
pub fn cannot_start(program: &OsStr, error: &io::Error) {
    line(&format!(
        "netfix: cannot start {}: {error}",
        program.display()
    ));
}

/// The namespaces of process 1 cannot be entered.
pub fn cannot_enter_host(error: &io::Error) {
    line(&format!("netfix: cannot enter the host: {error}"));
}

struct Silent;

impl Listener for Silent {
    fn notice(&mut self, _: Progress) {}
}

struct Bar {
    bar: ProgressBar,
    ascii: bool,
}

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);
const WORKING: &str = "{spinner} {msg:<24} [{bar:30}] {pos}/{len} {time}";
const WAITING: &str = "{spinner} {msg} ({time})";

impl Bar {
    fn new(ascii: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self { bar, ascii }
    }

    fn show(&self, template: &str, message: String, length: usize) {
        let style = ProgressStyle::with_template(template);
        let style = style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key(
                "time",
                |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    let seconds = Duration::from_secs(state.elapsed().as_secs());
                    let _ = write!(out, "{}", duration(seconds));
                },
            )
            .progress_chars("=> ");
        let style = if self.ascii {
            style.tick_chars("-\\|/")
        } else {
            style
        };
        self.bar.set_style(style);
        self.bar.set_message(message);
        self.bar.set_position(0);
        self.bar.set_length(length as u64);
        self.bar.reset_elapsed();
        // Waiting for the NIC can take a minute: the spinner shows that netfix is alive.
        self.bar.enable_steady_tick(TICK);
        if let Ok(mut shown) = SHOWN.lock() {
            *shown = Some(self.bar.clone());
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadingNamespaces => "reading namespaces",
            Self::Comparing => "comparing",
            Self::Rehearsing => "rehearsing",
            Self::WritingCheckpoints => "writing checkpoints",
            Self::RestoringHost => "restoring the host",
            Self::RestoringPods => "restoring pods",
            Self::ProbingGateways => "probing gateways",
        })
    }
}

/// `eth0, eth1`, or `carrier on eth0`.
fn awaited(wait: Wait, devices: &[IfName]) -> String {
    let names = match join(devices, ", ") {
        names if names.is_empty() => "the NIC".to_owned(),
        names => names,
    };
    match wait {
        Wait::Device => names,
        Wait::Carrier => format!("carrier on {names}"),
        Wait::Manager => format!("the network manager of {names}"),
        Wait::Loss => "another loss".to_owned(),
    }
}

impl Listener for Bar {
    fn notice(&mut self, event: Progress) {
        match event {
            Progress::Phase(phase, length) => self.show(WORKING, phase.to_string(), length),
            Progress::Waiting(_, _, limit) if limit.is_zero() => {}
            Progress::Waiting(wait, devices, limit) => {
                let (awaited, limit) = (awaited(wait, &devices), duration(limit));
                let message = format!("waiting for {awaited} (at most {limit})");
                self.show(WAITING, message, 0);
            }
            Progress::Advance(count) => self.bar.inc(count as u64),
            Progress::Done => {
                self.bar.finish_and_clear();
                if let Ok(mut shown) = SHOWN.lock() {
                    *shown = None;
                }
            }
        }
    }
}
