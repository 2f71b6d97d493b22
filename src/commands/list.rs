//! `netfix list`: what is stored.

use super::session::{self, Stored, load, node_view, stored_view};
use super::{Context, Early, Outcome, generations};
use crate::cli::PodArgs;
use crate::model::Problem;
use crate::report::{PodView, State};
use crate::store::Store;

pub(super) fn list(pods: &PodArgs, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(&pods.selectors)?;
    let store = generations::store(&context.store, pods.generation)?;
    let Stored { checkpoints, damaged, mut problems } = load(&store, &selection)?;
    let chosen = checkpoints.iter().filter(|(info, checkpoint)| selection.wants_checkpoint(info, checkpoint));
    let mut pods: Vec<PodView> =
        chosen.map(|(info, checkpoint)| stored_view(info, checkpoint, State::Stored)).collect();
    pods.extend(damaged);
    tell_seen(&mut pods, &store, &mut problems);
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let exit = Outcome::judge(&pods, &problems);
    Ok(Outcome { exit, node: node_view(), pods, problems, ..Outcome::default() })
}

/// When each pod was last seen true, as the node's state says.
pub(super) fn tell_seen(pods: &mut [PodView], store: &Store, problems: &mut Vec<Problem>) {
    match store.load_node() {
        Ok(Some(node)) => {
            for pod in pods {
                pod.seen = node.seen(&pod.info.id).map(str::to_owned);
            }
        }
        Ok(None) => {}
        Err(error) => {
            let mut problem = error.problem().demoted();
            problem.message.push_str("; when the pods were last seen true is not known");
            problems.push(problem);
        }
    }
}
