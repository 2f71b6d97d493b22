//! `netfix import PATH`: takes over the checkpoints of `i40e_net_fix` for pods that run. Its folder is only read.

use crate::cli::ImportArgs;
use crate::context::Context;
use crate::records::import::{Imported, import};
use crate::refusal::Refusal;
use crate::report::{Document, NodeView, PodView, State};

pub(super) fn run(args: &ImportArgs, context: &mut Context) -> Result<Document, Refusal> {
    let import = import(&args.path, &args.runtimes.config(), &context.store)?;
    let mut pods = Vec::with_capacity(import.files.len());
    for (pod, imported) in import.files {
        let state = match imported {
            Imported::New => State::Imported,
            Imported::Unchanged => State::Unchanged,
            Imported::OwnKept => State::Kept,
            Imported::Gone => State::Gone,
            Imported::Failed => State::Failed,
        };
        pods.push(PodView::new(pod, state));
    }
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let node = NodeView::of(&import.node);
    Ok(Document::of(node, pods, import.problems).judged())
}
