//! `netfix upgrade`.

use crate::cli::UpgradeArgs;
use crate::commands::common::{Reply, answer};
use crate::commands::window::{confirm, pause};
use crate::context::Context;
use crate::inventory::node;
use crate::kubelet::unit::UnitToPause;
use crate::model::problem::WindowCause;
use crate::refusal::Refusal;
use crate::report::{self, Exit};
use crate::systemd::{self, Bus};
use crate::upgrade::condition::already_done;
use crate::upgrade::launch::{self, Launched};
use crate::upgrade::request::{Accepts, RollbackRequest, UpgradeRequest};
use crate::upgrade::{driver, preview};
use crate::window::bus;
use crate::window::status::WindowStatus;

pub(crate) fn run(args: &UpgradeArgs, context: &mut Context) -> Result<Reply, Refusal> {
    match carry_out(args, context) {
        // A dry run shows a refusal as the answer.
        Err(refusal) if args.dry_run => {
            let node = node::node_identity();
            Ok(Reply::Document(report::no_preview(&node, Err(refusal))))
        }
        reply => reply,
    }
}

/// Shows the window (`--dry-run`), or opens it.
fn carry_out(args: &UpgradeArgs, context: &mut Context) -> Result<Reply, Refusal> {
    let request = request(args)?;
    // A window that is open must be completed in any case.
    if !args.needed
        && matches!(context.store.open_window(), Ok(None))
        && let Some(problem) = already_done(args.unless.as_deref(), &args.drivers)?
    {
        return Ok(Reply::Document(if args.dry_run {
            report::no_preview(&node::node_identity(), Ok(problem))
        } else {
            answer(Exit::Done, vec![problem], None)
        }));
    }
    let bus = bus_for_unit(args)?;
    if args.dry_run || !args.yes {
        if !args.dry_run {
            confirm::check_terminal()?;
        }
        let preview = preview::preview(&request, context)?;
        if preview.is_refused && !args.dry_run {
            return Err(preview.problems.into());
        }
        let shown = report::preview(&request, preview);
        if args.dry_run {
            return Ok(Reply::Document(shown));
        }
        confirm::opening(&shown)?;
    }
    let Some(bus) = bus else {
        let upgraded = driver::drive(&request, context)?;
        return Ok(Reply::Document(report::upgrade(upgraded)));
    };
    // The unit takes the lock. A lock that another command holds is reported here.
    drop(context.store.lock("upgrade")?);
    match launch::run(bus, &context.store, args.detach)? {
        Launched::Ended(code) => Ok(Reply::Printed(code)),
        Launched::Opened(window) => {
            let extra = pause::window(Some(WindowStatus::new(*window, None)));
            Ok(Reply::Document(answer(Exit::Done, Vec::new(), extra)))
        }
    }
}

/// The bus of the systemd that can run the window as a unit.
fn bus_for_unit(args: &UpgradeArgs) -> Result<Option<Bus>, Refusal> {
    let bus = if args.foreground {
        None
    } else {
        bus::connect()?
    };
    // A unit runs in the machine's namespaces, which may not be those of this process.
    match bus.filter(|_| systemd::is_at_home()) {
        None if args.detach => Err(WindowCause::NoUnit.error("upgrade --detach").into()),
        bus => Ok(bus),
    }
}

fn request(args: &UpgradeArgs) -> Result<UpgradeRequest<'_>, Refusal> {
    Ok(UpgradeRequest {
        selection: args.selectors.selection()?,
        runtimes: args.runtimes.config(),
        devices: args.nics.clone(),
        pause: match &args.hold.unit {
            _ if args.no_pause => UnitToPause::Nothing,
            Some(unit) => UnitToPause::Named(unit),
            None => UnitToPause::Kubelet,
        },
        deadline: args.hold.deadline,
        command_timeout: args.command_timeout,
        wait: args.nic_wait,
        manager_grace: args.pace.manager_wait,
        pod_budget: args.pace.pod_budget,
        conflict_probe: args.probe.mode(),
        probe_rate: args.probe.rate.probe_rate,
        nic: args.nic.nic_settings,
        index: args.nic.index.nic_index,
        timeout: args.answer_wait,
        targets: args.targets.all(),
        settle: args.watch,
        keep: args.keep,
        keep_paused: args.keep_paused,
        accepts: match (args.force, args.repair) {
            (true, _) => Accepts::Everything,
            (false, true) => Accepts::Lost,
            (false, false) => Accepts::Nothing,
        },
        rehearse: !args.no_rehearsal,
        log_limit: args.log_limit,
        command: &args.command,
        before: args.before.as_deref(),
        after: args.after.as_deref(),
        drivers: &args.drivers,
        echo: !args.no_echo,
        rollback: args.rollback.as_deref().map(|command| RollbackRequest {
            command,
            max_lost: args.max_lost,
        }),
    })
}
