//! `netfix list`: what is stored.

use super::session::{self, Stored, load, stored_view};
use super::{Context, Early, Outcome};
use crate::cli::PodArgs;
use crate::observe::node_identity;
use crate::report::{NodeView, PodView, State};

pub(super) fn list(pods: &PodArgs, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(&pods.selectors)?;
    let Stored { checkpoints, damaged, problems } = load(&context.store, &selection)?;
    let chosen = checkpoints.iter().filter(|(info, checkpoint)| selection.wants_checkpoint(info, checkpoint));
    let mut pods: Vec<PodView> =
        chosen.map(|(info, checkpoint)| stored_view(info, checkpoint, State::Stored)).collect();
    pods.extend(damaged);
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let exit = Outcome::judge(&pods, &problems);
    Ok(Outcome { exit, node: node_view(), pods, problems, ..Outcome::default() })
}

pub(super) fn node_view() -> NodeView {
    NodeView { hostname: node_identity().hostname, ..NodeView::default() }
}
