//! `netfix restore`: restores what is missing.

use std::time::Duration;

use crate::cli::{SourceArgs, Target};
use crate::context::Context;
use crate::report::outcome::{Early, Exit, Outcome};
use crate::{report, restore};

pub(super) fn restore(
    target: &Target,
    source: &SourceArgs,
    wait: Duration,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let request = target.request(source)?;
    let restored = restore::run(request, wait, &context.store, context.progress.as_mut())?;
    let (changed, refused) = (restored.host.is_some(), restored.is_refused);
    let answer = report::restore(restored);
    let exit = match (changed, refused) {
        (true, _) => Outcome::judge(&answer.pods, &answer.problems),
        (false, true) => Exit::Refused,
        (false, false) => Exit::Failed,
    };
    Ok(Outcome { exit, ..answer })
}
