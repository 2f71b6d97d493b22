//! `netfix snapshot`: writes a checkpoint of every pod, and the host's state.

use crate::cli::SnapshotArgs;
use crate::context::Context;
use crate::kubelet::deadline;
use crate::model::Bytes;
use crate::refusal::Refusal;
use crate::report::Document;
use crate::{report, snapshot};

pub(super) fn run(args: &SnapshotArgs, context: &mut Context) -> Result<Document, Refusal> {
    let names = args.accept.iter().map(|name| Bytes::from(name.as_os_str()));
    let accept: Vec<Bytes> = names.collect();
    let request = snapshot::SnapshotRequest {
        selection: &args.selectors.selection()?,
        runtimes: &args.runtimes.config(),
        keep: args.keep,
        accept: &accept,
    };
    let taken = snapshot::run(&request, &context.store, context.progress.as_mut());
    // Afterwards: the restore at the deadline needs the lock.
    let repeated = deadline::repeat_deadline(&context.store);
    match taken {
        Ok(mut taken) => {
            taken.problems.extend(repeated);
            Ok(report::snapshot(taken))
        }
        Err(mut refusal) => {
            refusal.problems.extend(repeated);
            Err(refusal)
        }
    }
}
