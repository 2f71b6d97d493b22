//! `netfix check`: could every running pod be restored now? For cron and monitoring, so it always ends with a verdict.

use std::collections::BTreeSet;

use crate::check::{self, Check};
use crate::cli::CheckArgs;
use crate::clock;
use crate::context::Context;
use crate::inventory::nics;
use crate::model::Window;
use crate::records::stored::shown;
use crate::refusal::Refusal;
use crate::report::{
    self, CheckStatus, Document, Extra, HoldView, PartRead, ReportView, Standing, Surroundings,
};
use crate::situation::guard_now::GuardNow;
use crate::store::{self, Store};
use crate::window::observed::lost_in_time;
use crate::window::records::is_owner_alive;
use crate::window::status::{self, WindowStatus};

/// Checks, and writes the metrics where they are wanted.
pub(super) fn run(args: &CheckArgs, context: &mut Context) -> Document {
    let was_working = is_working(&context.store);
    let mut checked = checked(args, context);
    // A window that has ended meanwhile has brought back what it took.
    if was_working && checked.is_ok() && !is_working(&context.store) {
        checked = self::checked(args, context);
    }
    let mut unread = Vec::new();
    let (store, was_checked) = (&context.store, checked.is_ok());
    let window = status::of_open(store, &mut unread, || lost_in_time(store));
    if let Ok(readiness) = &mut checked {
        let window = window.as_ref();
        let excuses = window.is_some_and(WindowStatus::excuses_losses);
        let lost = if excuses {
            readiness.excuse_window()
        } else {
            0
        };
        let found = window.and_then(|window| window.finding(lost));
        readiness.problems.splice(0..0, found);
        // Without a bus the window is known all the same.
        readiness
            .problems
            .extend(unread.iter().filter(|one| one.is_error()).cloned());
    }
    let (mut answer, mut view) = report::check(checked);
    view.at = clock::wall();
    view.status = CheckStatus::of_all(&answer.problems);
    view.max_age = args.max_age;
    view.is_selection = args.selectors.is_used();
    if let Some(path) = &args.textfile {
        let open = match &window {
            Some(status) if status.is_of_other_boot => PartRead::Nothing,
            Some(status) => PartRead::This(HoldView::new(status)),
            None if unread.is_empty() => PartRead::Nothing,
            None => PartRead::Unknown,
        };
        let around = surroundings(open, was_checked, &context.store);
        let metrics = report::metrics(&view, &answer.problems, &around);
        if let Err(error) = store::publish(path, metrics.as_bytes()) {
            answer.problems.push(error.problem());
            // Monitoring does not get the metrics.
            if view.status != CheckStatus::Critical {
                view.status = CheckStatus::Unknown;
            }
        }
    }
    Document {
        exit: view.status as u8,
        extra: Some(Extra::Check(view)),
        ..answer
    }
}

/// Whether a netfix works on an open window.
fn is_working(store: &Store) -> bool {
    let open = store.open_window().ok().flatten();
    open.is_some_and(|window| is_owner_alive(&window))
}

/// Windows and NICs, for the metrics. Without a check, the NICs may be those of another namespace than the host's.
fn surroundings(open: PartRead<HoldView>, was_checked: bool, store: &Store) -> Surroundings {
    let last = store.last_window().map(|last| {
        last.map(|window| {
            // Monitoring compares times with the clock as it is set now.
            let started = shown(&window.opened());
            ReportView::new(Window { started, ..window }, Standing::Closed)
        })
    });
    Surroundings {
        open,
        last: last.into(),
        nics: if was_checked {
            nics::read(&BTreeSet::new()).map(Some).into()
        } else {
            PartRead::Unknown
        },
        guard: GuardNow::read_if_ran(store).into(),
    }
}

fn checked(args: &CheckArgs, context: &mut Context) -> Result<check::Readiness, Refusal> {
    super::common::prepare()?;
    let check = Check {
        selection: &args.selectors.selection()?,
        runtimes: &args.runtimes.config(),
        max_age: args.max_age,
        max_new: args.max_new,
        devices: &args.nics,
        // A window restores, or is about to.
        rehearse: args.rehearse && !is_working(&context.store),
        index: args.index.nic_index,
    };
    check::run(&check, &context.store, context.progress.as_mut())
}
