//! `netfix verify`: do the pods reach their gateways?

use std::time::Duration;

use crate::cli::Selectors;
use crate::context::Context;
use crate::inventory::stored::{load, load_node};
use crate::refusal::Refusal;
use crate::report::Document;
use crate::{gateways, report};

pub(super) fn run(
    selectors: &Selectors,
    timeout: Duration,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let selection = selectors.selection()?;
    let mut stored = load(&context.store, &selection)?;
    let node = load_node(&context.store, &mut stored.problems);
    let progress = context.progress.as_mut();
    let verified = gateways::verify(stored, node.as_ref(), &selection, timeout, progress)?;
    Ok(report::verify(verified).judged())
}
