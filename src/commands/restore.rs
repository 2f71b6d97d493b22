//! `netfix restore`: restores what is missing.

use std::time::Duration;

use crate::context::Context;
use crate::inventory::prepare::Request;
use crate::refusal::Refusal;
use crate::report::{Document, Exit};
use crate::{report, restore};

pub(super) fn run(
    request: Request,
    wait: Duration,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let restored = restore::run(request, wait, &context.store, context.progress.as_mut())?;
    let (changed, refused) = (restored.host.is_some(), restored.is_refused);
    let document = report::restore(restored);
    Ok(match (changed, refused) {
        (true, _) => document.judged(),
        (false, true) => document.exits(Exit::Refused),
        (false, false) => document.exits(Exit::Failed),
    })
}
