//! `netfix list` and `netfix show`: what is stored.

use super::select::Selection;
use super::session::{self, Stored, load, no_checkpoints, stored_view};
use super::{Context, Early, Exit, Outcome};
use crate::cli::{PodArgs, Selectors};
use crate::model::{Code, Problem};
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

pub(super) fn show(pod: &str, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(&Selectors::default())?;
    let Stored { checkpoints, damaged: _, problems } = load(&context.store, &selection)?;
    let names = |view: &PodView| {
        let full = view
            .info
            .namespace
            .as_ref()
            .zip(view.info.name.as_ref())
            .map(|(space, name)| format!("{space}/{name}"));
        [Some(view.info.id.to_string()), view.info.name.clone(), full]
    };
    let mut views: Vec<PodView> = checkpoints
        .into_iter()
        .map(|(info, checkpoint)| {
            let mut view = stored_view(&info, &checkpoint, State::Stored);
            view.checkpoint = Some(Box::new(checkpoint));
            view
        })
        .collect();
    let exactly = |view: &PodView| names(view).iter().flatten().any(|name| name == pod);
    if views.iter().any(exactly) {
        views.retain(exactly);
    } else {
        views.retain(|view| names(view).iter().flatten().any(|name| name.starts_with(pod)));
    }
    let missing = |selection: &Selection| {
        Box::new(Outcome::failed(Problem { object: pod.to_owned(), ..no_checkpoints(selection) }))
    };
    match views.len() {
        1 => Ok(Outcome {
            exit: Exit::Done,
            node: node_view(),
            pods: views,
            problems: Vec::new(),
            ..Outcome::default()
        }),
        // The one that was asked for may be among those that cannot be read.
        0 => {
            let about =
                |problem: &Problem| problem.pod.as_ref().is_some_and(|id| id.as_str().starts_with(pod));
            let problems: Vec<Problem> = problems.into_iter().filter(about).collect();
            if problems.is_empty() {
                return Err(missing(&selection));
            }
            Ok(Outcome {
                exit: Exit::Failed,
                node: node_view(),
                pods: Vec::new(),
                problems,
                ..Outcome::default()
            })
        }
        several => {
            let message = format!("{several} pods begin like that; give more of the id");
            Err(Box::new(Outcome::failed(Problem::error(Code::NotFound, pod, message))))
        }
    }
}

fn node_view() -> NodeView {
    NodeView { hostname: node_identity().hostname, ..NodeView::default() }
}
