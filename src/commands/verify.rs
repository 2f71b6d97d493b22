//! `netfix verify`: do the pods reach their gateways?

use std::time::Duration;

use crate::cli::Selectors;
use crate::context::Context;
use crate::inventory::stored::load;
use crate::inventory::survey::NodeFile;
use crate::refusal::Refusal;
use crate::report::Document;
use crate::{gateways, report};

pub(super) fn run(
    selectors: &Selectors,
    timeout: Duration,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let selection = selectors.selection()?;
    let stored = load(&context.store, &selection)?;
    let node = NodeFile::In(context.store.clone());
    let progress = context.progress.as_mut();
    let verified = gateways::verify(stored, node, &selection, timeout, progress)?;
    Ok(report::verify(verified).judged())
}
