//! `netfix verify`: do the host and the pods reach their gateways, and the pods what they need?

use crate::cli::VerifyArgs;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::sockets::named;
use crate::records::stored::{load_in_part, load_node};
use crate::refusal::Refusal;
use crate::report::Document;
use crate::restore::answering;
use crate::window::abandoned;
use crate::{gateways, report};

pub(super) fn run(args: &VerifyArgs, context: &mut Context) -> Result<Document, Refusal> {
    let selection = args.selectors.selection()?;
    let mut stored = load_in_part(&context.store, &selection)?;
    let node = load_node(&context.store, &mut stored.problems)?;
    let progress = context.progress.as_mut();
    let targets = args.targets.all();
    let inventory = Inventory::open(&selection)?;
    let mut verified = gateways::verify(
        inventory,
        stored,
        node.as_ref(),
        &selection,
        &targets,
        gateways::ProbeLimits {
            names_cut_off: true,
            ..gateways::ProbeLimits::new(args.answer_wait)
        },
        progress,
    )?;
    abandoned::note_verify(&verified, &context.store);
    let pods = verified.pods.iter().map(|pod| &pod.observed);
    let (host, answers) = (&verified.observed, verified.for_record(false));
    let answering = answering::record(pods, host, node.as_ref(), answers, &context.store);
    verified.problems.extend(answering);
    verified.problems.extend(named::dead(node.as_ref()));
    Ok(report::verify(verified, args.selectors.is_used()))
}
