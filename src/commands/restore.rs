//! `netfix restore`: restores what is missing.

use std::mem;

use super::plan;
use crate::cli::{NIC_WAIT, RestoreArgs};
use crate::clock;
use crate::context::Context;
use crate::kernel::kmsg::KernelLogReader;
use crate::model::window::{KernelLog, KernelNames};
use crate::records::stored::load_node;
use crate::refusal::Refusal;
use crate::report;
use crate::report::Document;
use crate::restore::{Limits, Restored, session};
use crate::store::Store;
use crate::window::kernel_log::{self, explain::explain};
use crate::window::{abandoned, history};

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
    let log = KernelLogReader::at_end();
    let mut restored = session::run(&request, limits, &context.store, context.progress.as_mut())?;
    let log = log.map(|log| explain_by_log(&mut restored, log, began, &context.store));
    context.pending.add(mem::take(&mut restored.pending));
    abandoned::note_restore(&restored, began, context);
    let record = history::of_restore(&restored, log.ok(), began, &context.store);
    let document = report::restore(restored);
    if let Some(record) = record {
        record.keep(document.exit);
    }
    Ok(document)
}

/// Adds the causes that the kernel has logged since this reader was opened; returns its lines, by the time since the restore `began`.
fn explain_by_log(
    restored: &mut Restored,
    mut log: KernelLogReader,
    began: u64,
    store: &Store,
) -> KernelLog {
    let names = || {
        let node = load_node(store, &mut Vec::new()).ok().flatten();
        let links = node.iter().flat_map(|node| &node.state.links);
        KernelNames::of(links, &restored.devices_lost.clone().unwrap_or_default())
    };
    let at = clock::boottime().saturating_sub(began);
    let log = kernel_log::read(&mut log, at, names);
    let causes = explain(restored.problems.iter_mut(), log.causes(0), |_, _| false);
    restored.problems.extend(causes);
    log
}
