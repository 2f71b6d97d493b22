//! `netfix upgrade`: a driver upgrade as one window, from the check to the proof that no pod was rebuilt.

mod after;
mod before;
mod command;
mod course;
mod follow;
mod front;
mod proof;
mod prospect;

pub(super) use follow::run as follow;

use super::{Context, Early, Outcome, window};
use crate::cli::UpgradeArgs;
use crate::kubelet;

pub(super) fn run(args: &UpgradeArgs, context: &mut Context) -> Result<Outcome, Early> {
    if args.dry_run {
        return prospect::dry_run(args, context);
    }
    prospect::confirm(args, context)?;
    let bus =
        if args.foreground { None } else { window::systemd().map_err(|p| Box::new(Outcome::refused(p)))? };
    match bus {
        // A unit would run in another namespace than the one that this was called in.
        Some(bus) if kubelet::is_at_home() => {
            // Who holds the lock is known here; it is the unit that takes it.
            let free = context.store.lock("upgrade").map(drop);
            free.map_err(|error| Box::new(Outcome::refused(error.problem())))?;
            Ok(front::run(bus, &context.store))
        }
        _ => course::run(args, context),
    }
}
