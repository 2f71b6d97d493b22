//! Opens the window of an upgrade: a new one, or the one that an interrupted netfix left.

use crate::context::Context;
use crate::journal;
use crate::kubelet::resume::finish_abandoned;
use crate::model::problem::WindowCause;
use crate::model::window::REBOOT;
use crate::refusal::Refusal;
use crate::store::{Guard, Store};
use crate::systemd::Bus;
use crate::upgrade::ledger::Ledger;
use crate::upgrade::problems::WindowProblems;
use crate::upgrade::signals::Signals;
use crate::window::bus;
use crate::window::records::{EarlierWindow, find_earlier};
use crate::window::session::WindowSession;

const COMMAND: &str = "upgrade";

/// Opens it, under the lock; from here on no signal ends this process. One ends netfix while it waits for the lock.
pub(crate) fn run(
    context: &Context,
    echo: bool,
    log_limit: u64,
) -> Result<(Ledger, Option<Bus>), Refusal> {
    let guard = context.store.lock(COMMAND)?;
    let signals = Signals::catch().map_err(|error| {
        let error = error.to_string();
        WindowCause::Signals { error }.error("signals")
    })?;
    let bus = bus::connect()?;
    let session = open_or_resume(guard, &context.store, echo && !context.quiet, log_limit)?;
    if session.is_saved() {
        journal::continues(COMMAND, &session.window().id);
    } else {
        journal::begins(COMMAND);
    }
    let ledger = Ledger {
        session,
        problems: WindowProblems::default(),
        signals,
    };
    Ok((ledger, bus))
}

fn open_or_resume(
    guard: Guard,
    store: &Store,
    echo: bool,
    log_limit: u64,
) -> Result<WindowSession, Refusal> {
    match find_earlier(store)? {
        EarlierWindow::Nothing => WindowSession::open(store, guard, COMMAND, echo, log_limit),
        EarlierWindow::Finished(window) => {
            let session = WindowSession::take_over(window, guard, false, log_limit);
            finish_abandoned(session, REBOOT);
            let guard = store.lock(COMMAND)?;
            WindowSession::open(store, guard, COMMAND, echo, log_limit)
        }
        EarlierWindow::Interrupted(window) => {
            let mut session = WindowSession::take_over(window, guard, echo, log_limit);
            session.own(COMMAND);
            Ok(session)
        }
    }
}
