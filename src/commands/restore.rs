//! `netfix restore`: restores what is missing.

use std::mem;

use super::plan;
use crate::cli::{NIC_WAIT, RestoreArgs};
use crate::clock;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::report;
use crate::report::Document;
use crate::restore::{Limits, session};
use crate::window::abandoned;

pub(super) fn run(args: &RestoreArgs, context: &mut Context) -> Result<Document, Refusal> {
    let request = args.target.request(&args.source)?;
    if args.dry_run {
        return plan::of(&request, false, context);
    }
    let began = clock::boottime();
    let limits = Limits {
        wait: args.nic_wait.unwrap_or(NIC_WAIT),
        awaits_carrier: args.nic_wait.is_some(),
        manager_grace: args.pace.manager_wait,
        settle: args.watch,
        reads_long: true,
        pod_budget: args.pace.pod_budget,
        conflict_probe: args.probe.mode(),
        probe_rate: args.probe.rate.probe_rate,
    };
    let mut restored = session::run(&request, limits, &context.store, context.progress.as_mut())?;
    context.pending.add(mem::take(&mut restored.pending));
    abandoned::note_restore(&restored, began, context);
    Ok(report::restore(restored))
}
