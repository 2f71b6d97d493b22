//! Progress is a stream of events; a bar on a terminal is one listener, silence the other.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What happens while a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A phase begins, with so many pods to go through.
    Phase(&'a str, usize),
    /// So many more pods are through.
    Advance(usize),
    /// The command has nothing more to do.
    Done,
}

/// Somebody who wants to know.
pub trait Listener {
    /// Takes notice of an event.
    fn notice(&mut self, event: Progress<'_>);
}

/// A bar on stderr when that is a terminal and the user wants talk, else nobody.
#[must_use]
pub fn listener(terminal: bool, quiet: bool) -> Box<dyn Listener> {
    if terminal && !quiet { Box::new(Bar::new()) } else { Box::new(Nobody) }
}

struct Nobody;

impl Listener for Nobody {
    fn notice(&mut self, _: Progress<'_>) {}
}

struct Bar(ProgressBar);

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg:<24} [{bar:30}] {pos}/{len} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self(bar)
    }
}

impl Listener for Bar {
    fn notice(&mut self, event: Progress<'_>) {
        match event {
            Progress::Phase(name, length) => {
                // Waiting for the NIC can take a minute; the spinner shows that somebody is still there. Before the
                // first phase other talk may come.
                self.0.enable_steady_tick(TICK);
                self.0.set_message(name.to_owned());
                self.0.set_position(0);
                self.0.set_length(length as u64);
            }
            Progress::Advance(count) => self.0.inc(count as u64),
            Progress::Done => self.0.finish_and_clear(),
        }
    }
}
