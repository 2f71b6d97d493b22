//! `netfix check`: could every running pod be restored now? For cron and monitoring, so it always ends with a verdict.

use crate::check::{self, Check};
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::model::{Code, Problem, Severity};
use crate::refusal::Refusal;
use crate::report::{self, Document, Extra, Verdict};
use crate::store;

/// Checks, and writes the metrics where they are wanted.
pub(super) fn run(args: &CheckArgs, context: &mut Context) -> Document {
    let checked = checked(args, context);
    let (mut answer, mut view) = report::check(checked);
    view.status = verdict(&answer.problems);
    view.max_age = args.max_age;
    if let Some(path) = &args.textfile {
        let metrics = report::metrics(&view, &answer.problems);
        if let Err(error) = store::replace(path, metrics.as_bytes(), 0o644) {
            answer.problems.push(error.problem());
            // Monitoring does not get the metrics.
            if view.status != Verdict::Critical {
                view.status = Verdict::Unknown;
            }
        }
    }
    Document {
        exit: view.status as u8,
        extra: Some(Extra::Check(view)),
        ..answer
    }
}

fn checked(args: &CheckArgs, context: &mut Context) -> Result<check::Checked, Refusal> {
    super::prepare()?;
    let check = Check {
        selection: &args.selectors.selection()?,
        runtimes: &args.runtimes.config(),
        max_age: args.max_age,
        devices: &args.devices,
    };
    check::run(&check, &context.store, context.progress.as_mut())
}

/// The worst of the findings. What could not be read is unknown, unless something is known to be lost.
fn verdict(problems: &[Problem]) -> Verdict {
    let is_unknown = |problem: &Problem| {
        matches!(
            problem.code(),
            Code::RuntimeUnreachable | Code::Unreadable | Code::PermissionDenied | Code::NotFound
        )
    };
    let errors = || problems.iter().filter(|problem| problem.is_error());
    let mut warnings = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Warning);
    if errors().any(|problem| !is_unknown(problem)) {
        Verdict::Critical
    } else if errors().next().is_some() {
        Verdict::Unknown
    } else if warnings.next().is_some() {
        Verdict::Warning
    } else {
        Verdict::Ok
    }
}
