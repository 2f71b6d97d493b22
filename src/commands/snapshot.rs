//! `netfix snapshot`: writes a checkpoint of every pod, and the host's state.

use std::time::Duration;

use crate::cli::SnapshotArgs;
use crate::clock;
use crate::commands::common::answer;
use crate::context::Context;
use crate::gateways::verify_all;
use crate::kubelet::deadline;
use crate::model::problem::WindowCause;
use crate::model::window::WindowPod;
use crate::model::{AnswerRecord, Bytes, Code, PodId, Problem, Window};
use crate::refusal::Refusal;
use crate::report::{Document, Exit};
use crate::snapshot::{Accept, Snapshot};
use crate::store::Store;
use crate::window::{history, records};
use crate::{report, snapshot};

pub(super) fn run(args: &SnapshotArgs, context: &mut Context) -> Result<Document, Refusal> {
    let store = context.store.clone();
    let working = || records::working(&store, args.skip_in_window?);
    if let Some(skipped) = working() {
        return Ok(skip(skipped));
    }
    match take(args, context) {
        // A window may have begun meanwhile.
        Err(refusal) if refusal.has(Code::LockHeld) => working().map(skip).ok_or(refusal),
        taken => taken,
    }
}

/// Another command's window has a snapshot of its own.
fn skip(window: Window) -> Document {
    let cause = WindowCause::SnapshotSkipped {
        command: window.command,
        pid: window.owner.pid,
    };
    answer(Exit::Done, vec![cause.info(window.id)], None)
}

/// Leaves a record of the losses that a person has given up since `began`.
fn note_accepted(taken: &Snapshot, began: u64, store: &Store) {
    if taken.given_up.is_empty() {
        return;
    }
    let is_one = |pod: Option<&PodId>| taken.given_up.iter().any(|one| one.as_ref() == pod);
    let pods = taken.pods.iter().map(|one| &one.pod);
    let pods = pods.filter(|pod| is_one(Some(&pod.info.id)));
    let pods = pods.map(|pod| WindowPod::new(pod.info.clone(), pod.interfaces.clone()));
    let problems = taken.problems.iter();
    let problems: Vec<Problem> = problems
        .filter(|one| is_one(one.pod.as_ref()))
        .cloned()
        .collect();
    if let Some(record) = history::of_accept(pods.collect(), &problems, began, store) {
        record.keep(Exit::Done as u8);
    }
}

/// What answers now. Where nothing can be asked, the neighbour tables alone show it.
fn answered(context: &mut Context) -> Vec<AnswerRecord> {
    const LIMIT: Duration = Duration::from_secs(2);
    let verified = verify_all(&context.store, LIMIT, context.progress.as_mut());
    let found = verified.map_or_else(|_| Vec::new(), |verified| verified.for_record(false));
    found
        .into_iter()
        .filter(AnswerRecord::has_answered)
        .collect()
}

fn take(args: &SnapshotArgs, context: &mut Context) -> Result<Document, Refusal> {
    let names = args.accept.iter().map(|name| Bytes::from(name.as_os_str()));
    let accept: Vec<Bytes> = names.collect();
    let answered = if accept.is_empty() {
        Vec::new()
    } else {
        answered(context)
    };
    let request = snapshot::SnapshotRequest {
        selection: &args.selectors.selection()?,
        runtimes: &args.runtimes.config(),
        keep: args.keep,
        accept: Accept {
            names: &accept,
            answers: &answered,
        },
        index: args.index.nic_index,
    };
    let began = clock::boottime();
    let taken = snapshot::run(&request, &context.store, context.progress.as_mut());
    if let Ok(taken) = &taken {
        note_accepted(taken, began, &context.store);
    }
    // Afterwards: the restore at the deadline needs the lock.
    let repeated = deadline::repeat_deadline(&context.store);
    match taken {
        Ok(mut taken) => {
            taken.problems.extend(repeated);
            Ok(report::snapshot(taken, args.selectors.is_used()))
        }
        Err(mut refusal) => {
            refusal.problems.extend(repeated);
            Err(refusal)
        }
    }
}
