//! One file per command: gather, decide, act, answer.

mod check;
mod common;
mod every;
mod guard;
mod host;
mod import;
mod list;
mod plan;
mod restore;
mod show;
mod snapshot;
mod text;
mod verify;
mod window;

use crate::cli::{Command, PlanArgs, ReportArgs};
use crate::context::Context;
use crate::inventory::node::node_identity;
use crate::model::problem::UsageCause;
use crate::refusal::Refusal;
use crate::report::Document;
use crate::window::session::close::settle;

use common::{prepare, prepare_reading};

pub use common::Reply;
pub use every::repeat;
pub use host::on_host;

/// Carries out a command that observes the machine.
pub fn run(command: &Command, context: &mut Context) -> Reply {
    crate::kernel::netns::raise_file_limit();
    let store = context.store.clone();
    context.store = store.settled(node_identity, settle);
    let result = match command {
        Command::Upgrade(args) => prepare().and_then(|()| window::upgrade::run(args, context)),
        Command::Guard(args) => Ok(guard::run(args, context)),
        command => document(command, context).map(Reply::Document),
    };
    let mut reply = result.unwrap_or_else(|refusal| Reply::Document(refusal.into()));
    if let (Reply::Document(document), Some(verb)) = (&mut reply, command.verb()) {
        document.command = verb;
    }
    reply
}

fn document(command: &Command, context: &mut Context) -> Result<Document, Refusal> {
    match command {
        Command::Report(args) if !args.merge.is_empty() => {
            return Ok(window::fleet::reports(&args.merge, args.html.as_deref()));
        }
        Command::Check(args) if !args.merge.is_empty() => {
            return Ok(window::fleet::checks(
                &args.merge,
                args.html.as_deref(),
                args.max_age,
            ));
        }
        _ => {}
    }
    match command {
        // It always ends with a verdict.
        Command::Check(_) => {}
        Command::List { .. } | Command::Report(_) => prepare_reading()?,
        _ => prepare()?,
    }
    match command {
        Command::Snapshot(args) => snapshot::run(args, context),
        Command::List {
            generations: true, ..
        } => list::generations(context),
        Command::List { pods, .. } => list::list(pods, context),
        Command::Show(args) => show::run(args, context),
        Command::Diff(planned) => plan::plan(planned, true, context),
        Command::Plan(PlanArgs { planned, exit_code }) => plan::plan(planned, *exit_code, context),
        Command::Restore(args) => restore::run(args, context),
        Command::Verify(args) => verify::run(args, context),
        Command::Check(args) => Ok(check::run(args, context)),
        Command::Status { follow: true, .. } => window::status::follow(context),
        Command::Status { runtimes, .. } => window::status::run(runtimes, context),
        Command::Pause { hold, rate } => window::pause::pause(hold, *rate, context),
        Command::Resume { runtimes, force } => window::pause::resume(runtimes, *force, context),
        Command::Wait(args) => window::wait::run(args, context),
        Command::Report(ReportArgs { list: true, .. }) => window::report::list(context),
        Command::Report(args) => window::report::run(args, context),
        Command::Import(args) => import::run(args, context),
        Command::Prune { keep } => list::prune(*keep, context),
        Command::Upgrade(_)
        | Command::Guard(_)
        | Command::Host { .. }
        | Command::Explain { .. }
        | Command::Schema { .. }
        | Command::Completions { .. }
        | Command::Man { .. } => Err(UsageCause::TextOnly.error("").into()),
    }
}
