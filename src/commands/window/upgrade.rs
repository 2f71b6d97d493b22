//! `netfix upgrade`.

use crate::cli::UpgradeArgs;
use crate::commands::common::Reply;
use crate::commands::window::confirm;
use crate::context::Context;
use crate::kubelet::kubelet_pause;
use crate::model::Window;
use crate::model::problem::WindowCause;
use crate::refusal::Refusal;
use crate::report::{self, Document, Exit, Extra};
use crate::systemd;
use crate::upgrade::condition::Conditions;
use crate::upgrade::launch::Launched;
use crate::upgrade::preview;
use crate::upgrade::run;
use crate::upgrade::{Request, Rollback, launch};
use crate::window::window_status::WindowStatus;

pub(crate) fn run(args: &UpgradeArgs, context: &mut Context) -> Result<Reply, Refusal> {
    if args.dry_run {
        let answer = dry_run(args, context);
        return Ok(Reply::Document(Document {
            extra: Some(Extra::DryRun(true)),
            ..answer.unwrap_or_else(Document::from)
        }));
    }
    let request = request(args)?;
    if let Some(done) = already_done(args, context)? {
        return Ok(Reply::Document(done));
    }
    if !args.yes {
        confirm::opening(&request, context)?;
    }
    let bus = if args.foreground {
        None
    } else {
        kubelet_pause::systemd()?
    };
    match bus {
        // A unit runs in the machine's namespaces, which may not be those of this process.
        Some(bus) if systemd::is_at_home() => {
            // The unit takes the lock. A lock that another command holds is reported here.
            drop(context.store.lock("upgrade")?);
            match launch::run(bus, &context.store, args.detach)? {
                Launched::Ended(code) => Ok(Reply::Printed(code)),
                Launched::Opened(window) => Ok(Reply::Document(opened(*window))),
            }
        }
        _ if args.detach => Err(WindowCause::NoUnit.error("upgrade --detach").into()),
        _ => Ok(Reply::Document(report::upgrade(run::run(
            &request, context,
        )?))),
    }
}

/// The answer if no window is needed. One that is open must be completed in any case.
fn already_done(args: &UpgradeArgs, context: &Context) -> Result<Option<Document>, Refusal> {
    if args.needed || context.store.has_window_file() {
        return Ok(None);
    }
    let conditions = Conditions {
        unless: args.unless.as_deref(),
        drivers: &args.drivers,
    };
    let done = conditions.already_done()?;
    Ok(done.map(|problem| crate::commands::common::answer(Exit::Done, vec![problem], None)))
}

/// The window that a unit has opened.
fn opened(window: Window) -> Document {
    let status = WindowStatus::new(window, None);
    crate::commands::common::answer(
        Exit::Done,
        Vec::new(),
        crate::commands::window::pause::window(Some(status)),
    )
}

/// What the window would do, or why it would be refused.
fn dry_run(args: &UpgradeArgs, context: &mut Context) -> Result<Document, Refusal> {
    let request = request(args)?;
    if let Some(done) = already_done(args, context)? {
        return Ok(done);
    }
    let preview = preview::rehearse(&request, context)?;
    Ok(report::preview(&request, preview))
}

fn request(args: &UpgradeArgs) -> Result<Request<'_>, Refusal> {
    Ok(Request {
        selection: args.selectors.selection()?,
        runtimes: args.runtimes.config(),
        devices: args.devices.clone(),
        unit: args.hold.unit.as_deref(),
        no_pause: args.no_pause,
        deadline: args.hold.deadline,
        wait: args.wait,
        manager_grace: args.manager_grace,
        pod_budget: args.pod_budget,
        conflict_probe: args.probe.mode(),
        timeout: args.timeout,
        targets: args.targets.all(),
        settle: args.settle,
        keep: args.keep,
        keep_paused: args.keep_paused,
        force: args.force,
        log_limit: args.log_limit,
        command: &args.command,
        before: args.before.as_deref(),
        after: args.after.as_deref(),
        drivers: &args.drivers,
        echo: !args.no_echo,
        rollback: args.rollback.as_deref().map(|command| Rollback {
            command,
            max_lost: args.max_lost,
        }),
    })
}
